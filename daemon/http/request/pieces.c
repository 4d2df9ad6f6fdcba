/* SPDX-License-Identifier: Apache-2.0 */
/* Goes on with an answer until something else has come to the loop; the others take turns. */
#include "daemon/http/request/pieces.h"

#include <poll.h>
#include <utlist.h>

#include "daemon/http/base/state.h"
#include "daemon/http/request/senders.h"
#include "proto/base/clock.h"

static bool others_come(const struct server *server)
{
    struct pollfd loop = {.fd = server->loop_fd, .events = POLLIN};
    return poll(&loop, 1, 0) > 0;
}

static enum pieces_state work(const struct server *server, struct pieces *pieces, struct err *err)
{
    enum pieces_state state;
    do {
        state = pieces->work(pieces, err);
    } while (state == PIECES_MORE && !others_come(server));
    return state;
}

static void leave(struct pieces *pieces)
{
    DL_DELETE(pieces->request->server->pieces, pieces);
    pieces->waits = false;
}

static void request_gone(void *state)
{
    struct pieces *pieces = state;
    if (pieces->waits) {
        leave(pieces);
    }
    pieces->free(pieces);
}

bool pieces_begin(struct request *request, struct pieces *pieces, struct err *err)
{
    pieces->request = request;
    request->state = pieces;
    request->state_finish = request_gone;
    enum pieces_state state = work(request->server, pieces, err);
    if (state != PIECES_MORE) {
        return state == PIECES_DONE;
    }
    DL_APPEND(request->server->pieces, pieces);
    pieces->waits = true;
    senders_hand_on(request);
    return request_wait(request);
}

bool pieces_wait(const struct server *server)
{
    return server->pieces != NULL;
}

void pieces_turn(struct server *server)
{
    struct err err;
    struct pieces *pieces = server->pieces;
    if (pieces == NULL) {
        return;
    }
    const int64_t begin_us = clock_boot_us();
    leave(pieces);
    enum pieces_state state = work(server, pieces, &err);
    senders_charge(pieces->request, clock_boot_us() - begin_us);
    if (state == PIECES_MORE) {
        DL_APPEND(server->pieces, pieces);
        pieces->waits = true;
        return;
    }
    senders_take_back(pieces->request, 0);
    if (state == PIECES_FAILED) {
        request_fail(pieces->request, &err);
    }
}
