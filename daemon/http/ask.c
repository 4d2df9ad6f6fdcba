/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of a change from a request to the door and back. It promises that what the change borrows from
 * the request lives until the door has answered, and that a request with an Idempotency-Key is told apart
 * from every other owner's, route's and key's. What is asked, and what the answer says, is the resource's
 * part. */
#include "daemon/http/ask.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/parts.h"
#include "daemon/http/router.h"
#include "proto/base/hash.h"
#include "proto/limits.h"

void *ask_create(struct request *request, size_t size,
                 int (*render)(const struct door_request *door, const struct step *step, struct text *out))
{
    struct ask *ask = blocks_take(&request->server->ask_blocks, size);
    ask->request = request;
    ask->size = size;
    ask->door.kind = DOOR_INPUT;
    ask->door.render = render;
    ask->door.asker = ask;
    ask->door.input.wall_ms = request->server->wall_ms;
    ask->door.arrived_ms = request->server->now_ms;
    ask->door.arrived_us = request->whole_us;
    return ask;
}

void ask_destroy(struct ask *ask)
{
    struct server *server = ask->request->server;
    if (ask->finish != NULL) {
        ask->finish(ask);
    }
    text_finish(&ask->door.answer);
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
    ask->door.keyed = true;
    make_scope(request, key, ask->door.scope);
    hash_bytes(request->body != NULL ? request->body : "", request->body_length, ask->door.body);
    return true;
}

void ask_door(struct ask *ask)
{
    struct request *request = ask->request;
    struct server *server = request->server;
    struct err err;
    if (!read_key(ask, &err)) {
        request_fail(request, &err);
        ask_destroy(ask);
        return;
    }
    if (!door_ask(server->config.door, &ask->door)) {
        request_fail_with(request, ERR_UNAVAILABLE, "too many changes wait to be stored");
        ask_destroy(ask);
        return;
    }
    server->asks++;
    request_wait(request);
}

static void reply_committed(struct ask *ask)
{
    bool refused = ask->door.status >= 400; /* which was remembered */
    if (ask->committed != NULL && !refused) {
        ask->committed(ask);
    }
    if (refused) {
        request_reply_problem(ask->request, (unsigned)ask->door.status, &ask->door.answer);
    } else {
        request_reply_json(ask->request, (unsigned)ask->door.status, &ask->door.answer);
    }
    if (ask->door.replayed) {
        request_header(ask->request, "Idempotency-Replayed", "true");
    }
}

void ask_answered(struct server *server, struct door_request *door)
{
    struct ask *ask = (struct ask *)door; /* its first member */
    server->asks--;
    if (door->status != 0) {
        reply_committed(ask);
    } else if (ask->refused == NULL || !ask->refused(ask)) {
        request_fail(ask->request, &door->error);
    }
    ask_destroy(ask);
}
