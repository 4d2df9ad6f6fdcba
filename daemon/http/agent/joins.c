/* SPDX-License-Identifier: Apache-2.0 */
/* Lets nodes join: the authority's certificate, tokens that a node joins with, and the trade of one for a
 * token of the node's own. A join token is traded once, and the node that traded it gets the same answer
 * again. A second machine does not get a name that is in use. The database has only hashes. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/base/crypto/pin.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/wire/messages.h"
#include "proto/wire/views.h"

#define HINT_ANOTHER "have an administrator make another with gpuctl nodes join-command"

/* --- the authority -------------------------------------------------------------------------------------- */

bool joins_authority(struct request *request, struct err *err)
{
    const char *authority = request->server->config.tls_authority;
    if (authority == NULL) {
        return err_set(err, ERR_NOT_FOUND,
                       "this controller has no certificate authority of its own: others sign for it");
    }
    return request_reply(request, 200, "application/x-pem-file", xstrdup(authority), strlen(authority));
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

bool joins_make(struct request *request, struct err *err)
{
    struct server *server = request->server;
    struct join_row row = {.created_ms = server->wall_ms, .owner = identity_owner(request->who)};
    if (!read_order(request->json, &row, err)) {
        return false;
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
    making->ask.subject = making->token.id;
    making->ask.writer.kind = WRITER_RECORD;
    making->ask.writer.records = &making->change;
    making->ask.writer.record_count = 1;
    return ask_writer(making, err);
}

/* --- joining -------------------------------------------------------------------------------------------- */

/* One trade, while it is with the writer. */
struct join {
    struct ask ask;
    struct join_message message;
    char pool[LIMIT_NAME_BYTES + 1]; /* "": none */
    bool reserved;
    struct token token; /* its id and the hash that the node sent */
    char join_id[TOKEN_ID_LENGTH + 1];
    char detail[LIMIT_NAME_BYTES + TOKEN_ID_LENGTH + 32]; /* for the audit */
    struct change changes[2];
    struct join *prev, *next; /* of the server: those under way */
};

static bool refuse_token(const char *why, struct err *err)
{
    err_field(err, ERR_UNAUTHENTICATED, "token", HINT_ANOTHER, "the join token %s", why);
    return false;
}

/* The message's join token is the row's, if there is one, and has not expired. */
static bool check_token(const struct server *server, const char *token, const struct join_row *row,
                        struct err *err)
{
    uint8_t secret[HASH_BYTES];
    hash_bytes(token + TOKEN_ID_LENGTH + 1, TOKEN_SECRET_LENGTH, secret);
    if (!hash_equal(secret, row->secret) || row->id == NULL) {
        return refuse_token("is not known to this controller", err);
    }
    return server->wall_ms < row->expires_ms || refuse_token("has expired", err);
}

/* A node whose answer was lost asks again: the token that it got, unless it was revoked. */
static bool is_repeat(struct server *server, const struct join_message *message, const struct join_row *join,
                      bool *ret_repeat, struct err *err)
{
    struct token_row row;
    *ret_repeat = false;
    if (join->node == NULL || strcmp(join->node, message->name) != 0) {
        return true;
    }
    autorows struct rows rows = reader_token(server->reader, join->token, err);
    *ret_repeat = rows_token(&rows, &row) && !row.revoked && hash_equal(row.secret, message->secret);
    return !rows.failed;
}

static bool check_name(struct server *server, const char *name, struct err *err)
{
    autorows struct rows rows = reader_node(server->reader, name, err);
    struct node_row row;
    struct node_used used;
    if (!auth_has_node(server->auth, name, server->wall_ms) &&
        (!rows_node(&rows, &row, &used) || row.state == NODE_LOST)) {
        return !rows.failed;
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

static void write_reply(const char *token_id, const char *pool, bool reserved, struct text *out)
{
    const struct join_reply reply = {.token_id = token_id, .pool = pool, .reserved = reserved};
    autojson json_t *json = join_reply_encode(&reply);
    autofree char *text = json_text(json);
    text_append(out, text);
}

static int render_joined(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct join *join = writer->asker;
    write_reply(join->token.id, join->pool[0] != '\0' ? join->pool : NULL, join->reserved, out);
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

/* Writes both rows in one transaction. Takes over the memory of the message. */
static bool trade(struct request *request, struct join_message *message, const struct join_row *row,
                  struct err *err)
{
    struct server *server = request->server;
    struct join *join = ask_create(request, sizeof *join, render_joined);
    uint8_t random[TOKEN_RANDOM_BYTES];
    server_random(server, random, sizeof random);
    token_make(random, &join->token); /* for its id: the secret is the node's */
    join->message = *message;
    *message = (struct join_message){0};
    join->reserved = row->reserved;
    snprintf(join->pool, sizeof join->pool, "%s", row->pool != NULL ? row->pool : "");
    snprintf(join->join_id, sizeof join->join_id, "%s", row->id);
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
    join->ask.subject = join->token.id;
    snprintf(join->detail, sizeof join->detail, "{\"node\":\"%s\",\"join_token\":\"%s\"}", join->message.name,
             join->join_id);
    join->ask.detail = join->detail;
    join->ask.committed = join_committed;
    join->ask.finish = join_finish;
    return ask_writer(join, err);
}

static bool join_or_repeat(struct request *request, struct join_message *message, struct err *err)
{
    struct server *server = request->server;
    const char *token = token_after_prefix(message->token, TOKEN_JOIN_PREFIX);
    char id[TOKEN_ID_LENGTH + 1];
    struct join_row row = {0};
    bool repeat;
    if (token == NULL) {
        return refuse_token("is not whole: it begins with " TOKEN_JOIN_PREFIX " and has 56 characters", err);
    }
    snprintf(id, sizeof id, "%s", token);
    autorows struct rows rows = reader_join(server->reader, id, err);
    rows_join(&rows, &row);
    if (rows.failed || !check_token(server, token, &row, err) ||
        !is_repeat(server, message, &row, &repeat, err)) {
        return false;
    }
    if (repeat) {
        struct text json = {0};
        write_reply(row.token, row.pool, row.reserved, &json);
        return request_reply_json(request, 201, &json);
    }
    if (row.node != NULL) {
        return err_field(err, ERR_CONFLICT, "token", HINT_ANOTHER,
                         "the join token was used already, by node %s", row.node);
    }
    return check_under_way(server, id, message->name, err) && check_name(server, message->name, err) &&
           trade(request, message, &row, err);
}

bool joins_join(struct request *request, struct err *err)
{
    struct join_message message;
    if (!join_message_decode(give(request->json), &message, err)) {
        return false;
    }
    bool good = join_or_repeat(request, &message, err);
    join_message_finish(&message);
    return good;
}
