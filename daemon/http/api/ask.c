/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of a change from a request to the writer and back. It promises that what the change borrows
 * from the request lives until the writer has answered, and that a request with an Idempotency-Key is told
 * apart from every other owner's, route's and key's. What is asked, and what the answer says, is the
 * resource's part. */
#include "daemon/http/api/ask.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/audit/audit.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/blocks.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/senders.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/limits.h"

static int render_answer(const struct writer_request *writer, const struct step *step, struct text *out)
{
    text_append(out, step->answer);
    return 200;
}

void *ask_create(struct request *request, size_t size,
                 int (*render)(const struct writer_request *writer, const struct step *step,
                               struct text *out))
{
    struct ask *ask = blocks_take(&request->server->ask_blocks, size);
    ask->request = request;
    ask->size = size;
    ask->writer.kind = WRITER_INPUT;
    ask->writer.render = render != NULL ? render : render_answer;
    ask->writer.asker = ask;
    ask->writer.input.wall_ms = request->server->wall_ms;
    ask->writer.arrived_ms = request->server->now_ms;
    ask->writer.arrived_us = request->whole_us;
    return ask;
}

void ask_destroy(struct ask *ask)
{
    if (ask == NULL) {
        return;
    }
    struct server *server = ask->request->server;
    if (ask->finish != NULL) {
        ask->finish(ask);
    }
    text_finish(&ask->writer.answer);
    blocks_give(&server->ask_blocks, ask, ask->size);
}

/* Owner, route and key with a NUL between them: none of them holds one. */
static void make_scope(const struct request *request, const char *key, uint8_t out[HASH_BYTES])
{
    autotext struct text scope = {0};
    const char *owner = identity_owner(request->who);
    text_append_bytes(&scope, owner, strlen(owner) + 1);
    text_append_bytes(&scope, request->path, strlen(request->path) + 1);
    text_append(&scope, key);
    hash_bytes(scope.bytes, scope.length, out);
}

static bool read_key(struct ask *ask, struct err *err)
{
    const struct request *request = ask->request;
    const char *key = request->headers.idempotency_key;
    if (!request->route->keyed || key == NULL) {
        return true;
    }
    if (*key == '\0' || strnlen(key, LIMIT_IDEMPOTENCY_KEY + 1) > LIMIT_IDEMPOTENCY_KEY) {
        return err_field(err, ERR_FIELD, "Idempotency-Key", NULL,
                         "the Idempotency-Key must have 1 to %d characters", LIMIT_IDEMPOTENCY_KEY);
    }
    ask->writer.keyed = true;
    make_scope(request, key, ask->writer.scope);
    hash_bytes(request->body != NULL ? request->body : "", request->body_length, ask->writer.body);
    return true;
}

static bool hand_over(struct server *server, struct ask *ask, struct err *err)
{
    if (!writer_ask(server->config.writer, &ask->writer)) {
        return err_set(err, ERR_UNAVAILABLE, "too many changes wait to be stored");
    }
    server->asks++;
    return true;
}

bool ask_alone(struct server *server, struct ask *ask, struct err *err)
{
    ask->writer.input.wall_ms = server->wall_ms;
    ask->writer.arrived_ms = server->now_ms;
    return hand_over(server, ask, err);
}

bool ask_writer(void *asked, struct err *err)
{
    autoask struct ask *ask = asked;
    struct server *server = ask->request->server;
    if (!read_key(ask, err)) {
        return false;
    }
    if (ask->writer.kind != WRITER_INPUT || ask->writer.input.kind != INPUT_ASK) {
        ask->writer.audit = audit_of_change(ask->request, ask->subject, ask->detail);
    }
    if (!hand_over(server, ask, err)) {
        return false;
    }
    senders_hand_on(ask->request);
    request_wait(give(ask)->request);
    return true;
}

static void reply_committed(struct ask *ask)
{
    bool refused = ask->writer.status >= 400; /* which was remembered */
    if (ask->committed != NULL && !refused) {
        ask->committed(ask);
    }
    if (refused) {
        request_reply_problem(ask->request, (unsigned)ask->writer.status, &ask->writer.answer);
    } else {
        request_reply_json(ask->request, (unsigned)ask->writer.status, &ask->writer.answer);
    }
    if (ask->writer.replayed) {
        request_header(ask->request, "Idempotency-Replayed", "true");
    }
}

void ask_answered(struct server *server, struct writer_request *writer)
{
    struct ask *ask = (struct ask *)writer; /* its first member */
    server->asks--;
    if (ask->request == NULL) {
        ask->answered(server, ask);
        return;
    }
    senders_take_back(ask->request, writer->took_us);
    if (writer->status != 0) {
        reply_committed(ask);
    } else if (ask->refused == NULL || !ask->refused(ask)) {
        request_fail(ask->request, &writer->error);
    }
    ask_destroy(ask);
}
