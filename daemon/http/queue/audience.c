/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps who waits for an answer, in the order in which they asked. A request that ends by itself leaves. */
#include "daemon/http/queue/audience.h"

#include <stdlib.h>

#include <utlist.h>

#include "daemon/http/request/connection.h"
#include "daemon/http/request/request.h"
#include "proto/base/text/text.h"

struct listener {
    struct request *request;
    struct audience *audience;
    struct listener *prev, *next;
};

static void leave(void *state)
{
    struct listener *listener = state;
    DL_DELETE(listener->audience->first, listener);
    free(listener);
}

bool audience_wait(struct audience *audience, struct request *request)
{
    struct listener *listener = xzalloc(sizeof *listener);
    listener->request = request;
    listener->audience = audience;
    DL_APPEND(audience->first, listener);
    request->state = listener;
    request->state_finish = leave;
    return request_wait(request);
}

static struct request *take(struct listener *listener)
{
    struct request *request = listener->request;
    request->state_finish = NULL;
    leave(listener);
    return request;
}

struct request *audience_take(struct audience *audience)
{
    return audience->first != NULL ? take(audience->first) : NULL;
}

struct request *audience_take_left(struct audience *audience)
{
    struct listener *listener;
    DL_FOREACH (audience->first, listener) {
        if (connection_client_left(listener->request->link)) {
            return take(listener);
        }
    }
    return NULL;
}
