/* SPDX-License-Identifier: Apache-2.0 */
/* The resource of joining: the authority's certificate, tokens that a node joins with, and the trade of one
 * for a token of the node's own. It promises that a join token is traded once, but that the node which traded
 * it gets the same answer again; that a name which is in use is not given to a second machine; and that the
 * database knows hashes alone. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/http/ask.h"
#include "daemon/http/parts.h"
#include "daemon/http/resources.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/base/log.h"
#include "proto/base/pin.h"
#include "proto/limits.h"
#include "proto/wire/messages.h"
#include "proto/wire/views.h"

#define HINT_ANOTHER "have an administrator make another with gpuctl nodes join-command"

/* --- the authority -------------------------------------------------------------------------------------- */

void joins_authority(struct request *request)
{
    const char *authority = request->server->config.tls_authority;
    if (authority == NULL) {
        request_fail_with(request, ERR_NOT_FOUND,
                          "this controller has no certificate authority of its own: others sign for it");
        return;
    }
    request_reply(request, 200, "application/x-pem-file", xstrdup(authority), strlen(authority));
}

/* --- making a join token -------------------------------------------------------------------------------- */

struct making {
    struct ask ask;
    struct change change;
    struct token token;
    const struct server *server;
};

/* Where nodes reach this controller, as far as it knows; NULL: it does not. The caller frees it. */
static char *url_of(const struct server *server)
{
    const char *scheme = server->config.tls_certificate != NULL ? "https" : "http";
    return server->names.count > 0 ? xprintf("%s://%s:%u", scheme, server->names.items[0], server->port)
                                   : NULL;
}

static int render_made(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct making *making = writer->asker;
    const struct join_row *row = &making->change.join;
    const char *authority = making->server->config.tls_authority;
    char pin[PIN_BYTES];
    autofree char *url = url_of(making->server);
    const struct join_token_view view = {.token = making->token.text,
                                         .expires_ms = row->expires_ms,
                                         .pool = row->pool,
                                         .reserved = row->reserved,
                                         .ca_pin = authority != NULL && pin_of(authority, pin) ? pin : NULL,
                                         .url = url};
    join_token_view_encode(&view, out);
    return 201;
}

static bool read_order(const json_t *json, struct join_row *row, struct err *err)
{
    int64_t life_s = DEFAULT_JOIN_LIFE_S;
    if (!request_only_fields(json, "pool reserved expires_in_s", err) ||
        !json_read_text(json, "pool", &row->pool, err) ||
        !json_read_bool(json, "reserved", &row->reserved, err) ||
        !json_read_int(json, "expires_in_s", 1, LIMIT_JOIN_LIFE_S, &life_s, err)) {
        return false;
    }
    if (row->pool != NULL && !text_is_name(row->pool, LIMIT_NAME_BYTES)) {
        return err_field(err, ERR_FIELD, "pool", "use letters, digits, '.', '_' and '-'",
                         "\"%.64s\" cannot be the name of a pool", row->pool);
    }
    row->expires_ms = row->created_ms + 1000 * life_s;
    return true;
}

void joins_make(struct request *request)
{
    struct server *server = request->server;
    struct err err;
    struct join_row row = {.created_ms = server->wall_ms, .owner = identity_owner(request->who)};
    if (!read_order(request->json, &row, &err)) {
        request_fail(request, &err);
        return;
    }
    struct making *making = ask_create(request, sizeof *making, render_made);
    uint8_t random[TOKEN_RANDOM_BYTES];
    server_random(server, random, sizeof random);
    token_make(random, &making->token);
    memcpy(making->token.text, TOKEN_JOIN_PREFIX, strlen(TOKEN_JOIN_PREFIX));
    row.id = making->token.id;
    memcpy(row.secret, making->token.secret, sizeof row.secret);
    making->server = server;
    making->change = (struct change){.kind = CHANGE_JOIN_INSERT, .join = row};
    making->ask.writer.kind = WRITER_RECORD;
    making->ask.writer.records = &making->change;
    making->ask.writer.record_count = 1;
    ask_writer(&making->ask);
}

/* --- joining -------------------------------------------------------------------------------------------- */

/* A join token as the database has it. */
struct known {
    uint8_t secret[HASH_BYTES];
    int64_t expires_ms;
    bool reserved;
    char pool[LIMIT_NAME_BYTES + 1]; /* "": none */
    char node[LIMIT_NAME_BYTES + 1]; /* "": not used */
    char token[TOKEN_ID_LENGTH + 1];
};

/* One trade, while it is with the writer. */
struct join {
    struct ask ask;
    struct join_message message;
    struct known known;
    struct token token; /* its id and the hash that the node sent */
    char join_id[TOKEN_ID_LENGTH + 1];
    struct change changes[2];
    struct join *prev, *next; /* of the server: those under way */
};

static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text != NULL ? text : "");
}

static void see_join(const struct join_row *row, void *closure)
{
    struct known *known = closure;
    memcpy(known->secret, row->secret, sizeof known->secret);
    known->expires_ms = row->expires_ms;
    known->reserved = row->reserved;
    copy_text(known->pool, sizeof known->pool, row->pool);
    copy_text(known->node, sizeof known->node, row->node);
    copy_text(known->token, sizeof known->token, row->token);
}

static bool refuse_token(const char *why, struct err *err)
{
    err_field(err, ERR_UNAUTHENTICATED, "token", HINT_ANOTHER, "the join token %s", why);
    return false;
}

/* The join token of the message, if its secret fits and it has not expired. */
static bool find_join(struct server *server, const struct join_message *message, struct known *ret_known,
                      char ret_id[TOKEN_ID_LENGTH + 1], struct err *err)
{
    const char *token = token_after_prefix(message->token, TOKEN_JOIN_PREFIX);
    uint8_t secret[HASH_BYTES];
    bool found = false;
    *ret_known = (struct known){0};
    if (token == NULL) {
        return refuse_token("is not whole: it begins with " TOKEN_JOIN_PREFIX " and has 56 characters", err);
    }
    memcpy(ret_id, token, TOKEN_ID_LENGTH);
    ret_id[TOKEN_ID_LENGTH] = '\0';
    hash_bytes(token + TOKEN_ID_LENGTH + 1, TOKEN_SECRET_LENGTH, secret);
    if (!reader_join(server->reader, ret_id, see_join, ret_known, &found, err)) {
        return false;
    }
    if (!hash_equal(secret, ret_known->secret) || !found) {
        return refuse_token("is not known to this controller", err);
    }
    return server->wall_ms < ret_known->expires_ms || refuse_token("has expired", err);
}

struct repeat {
    const struct join_message *message;
    bool same;
};

static bool see_own_token(const struct token_row *row, void *closure)
{
    struct repeat *repeat = closure;
    repeat->same = !row->revoked && hash_equal(row->secret, repeat->message->secret);
    return false;
}

/* A node whose answer was lost asks again: the token that it got, unless it was revoked. */
static bool is_repeat(struct server *server, const struct join_message *message, const struct known *known,
                      bool *ret_repeat, struct err *err)
{
    struct repeat repeat = {.message = message};
    if (strcmp(known->node, message->name) == 0 &&
        !reader_tokens(server->reader, known->token, see_own_token, &repeat, err)) {
        return false;
    }
    *ret_repeat = repeat.same;
    return true;
}

static bool see_node(const struct node_row *row, int64_t used_gpus, void *closure)
{
    bool *taken = closure;
    *taken = row->state != NODE_LOST;
    return false;
}

static bool check_name(struct server *server, const char *name, struct err *err)
{
    bool taken = auth_has_node(server->auth, name, server->wall_ms);
    if (!taken && !reader_nodes(server->reader, name, see_node, &taken, err)) {
        return false;
    }
    if (!taken) {
        return true;
    }
    err_field(err, ERR_CONFLICT, "name", NULL, "there is a node named %s already", name);
    return err_hint(err, "give this one another --name, or, if it is the same machine made anew, have an "
                         "administrator run gpuctl nodes remove first");
}

static bool check_under_way(const struct server *server, const char *id, const char *name, struct err *err)
{
    for (const struct join *join = server->joins; join != NULL; join = join->next) {
        if (strcmp(join->join_id, id) == 0 || strcmp(join->message.name, name) == 0) {
            return err_set(err, ERR_UNAVAILABLE, "the same join is under way; try again");
        }
    }
    return true;
}

static int render_joined(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct join *join = writer->asker;
    const struct join_reply reply = {.token_id = join->token.id,
                                     .pool = join->known.pool[0] != '\0' ? join->known.pool : NULL,
                                     .reserved = join->known.reserved};
    autojson json_t *json = join_reply_encode(&reply);
    autofree char *text = json_text(json);
    text_append(out, text);
    return 201;
}

static void join_committed(struct ask *ask)
{
    const struct join *join = (struct join *)ask;
    auth_put(ask->request->server->auth, &join->changes[0].token);
    log_info("node join", "node=%s token=%s", join->message.name, join->token.id);
}

static void join_finish(struct ask *ask)
{
    struct join *join = (struct join *)ask;
    DL_DELETE(ask->request->server->joins, join);
    join_message_finish(&join->message);
}

/* Both rows in one transaction. Takes over what the message owns. */
static void trade(struct request *request, struct join_message *message, const struct known *known,
                  const char *id)
{
    struct server *server = request->server;
    struct join *join = ask_create(request, sizeof *join, render_joined);
    uint8_t random[TOKEN_RANDOM_BYTES];
    server_random(server, random, sizeof random);
    token_make(random, &join->token); /* for its id: the secret is the node's */
    join->message = *message;
    join->known = *known;
    memcpy(join->join_id, id, sizeof join->join_id);
    join->changes[0] = (struct change){.kind = CHANGE_TOKEN_INSERT,
                                       .token = {.id = join->token.id,
                                                 .role = ROLE_NODE,
                                                 .owner = join->message.name,
                                                 .created_ms = server->wall_ms,
                                                 .node = join->message.name}};
    memcpy(join->changes[0].token.secret, join->message.secret, HASH_BYTES);
    join->changes[1] =
        (struct change){.kind = CHANGE_JOIN_USE,
                        .join = {.id = join->join_id, .node = join->message.name, .token = join->token.id}};
    DL_APPEND(server->joins, join);
    join->ask.writer.kind = WRITER_RECORD;
    join->ask.writer.records = join->changes;
    join->ask.writer.record_count = 2;
    join->ask.committed = join_committed;
    join->ask.finish = join_finish;
    ask_writer(&join->ask);
}

static void reply_again(struct request *request, const struct known *known)
{
    const struct join_reply reply = {.token_id = known->token,
                                     .pool = known->pool[0] != '\0' ? known->pool : NULL,
                                     .reserved = known->reserved};
    autojson json_t *json = join_reply_encode(&reply);
    struct text text = {0};
    autofree char *bytes = json_text(json);
    text_append(&text, bytes);
    request_reply_json(request, 201, &text);
}

void joins_join(struct request *request)
{
    struct server *server = request->server;
    struct err err;
    struct join_message message;
    struct known known;
    char id[TOKEN_ID_LENGTH + 1];
    bool repeat = false;
    if (!join_message_decode(give(request->json), &message, &err)) {
        request_fail(request, &err);
        return;
    }
    bool good =
        find_join(server, &message, &known, id, &err) && is_repeat(server, &message, &known, &repeat, &err);
    if (good && !repeat && known.node[0] != '\0') {
        good = err_field(&err, ERR_CONFLICT, "token", HINT_ANOTHER,
                         "the join token was used already, by node %s", known.node);
    }
    good = good && (repeat || (check_under_way(server, id, message.name, &err) &&
                               check_name(server, message.name, &err)));
    if (good && !repeat) {
        trade(request, &message, &known, id);
        return;
    }
    join_message_finish(&message);
    if (good) {
        reply_again(request, &known);
    } else {
        request_fail(request, &err);
    }
}
