/* SPDX-License-Identifier: Apache-2.0 */
/* Serves tokens: list, make, revoke. A secret is shown once, in the answer that made it, and is stored
 * nowhere. A revocation counts from its answer on. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/auth/projects.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"
#include "proto/wire/views.h"

static void write_token(const struct token_row *row, const char *secret, struct text *out)
{
    const struct token_view view = {.id = row->id,
                                    .role = row->role,
                                    .owner = row->owner,
                                    .created_ms = row->created_ms,
                                    .expires_ms = row->expires_ms,
                                    .revoked = row->revoked,
                                    .used_ms = row->used_ms,
                                    .node = row->node,
                                    .project = row->project,
                                    .subject = row->subject,
                                    .groups = row->groups,
                                    .secret = secret};
    token_view_encode(&view, out);
}

/* --- list ----------------------------------------------------------------------------------------------- */

/* One row more than the page has tells whether there is a next one. The cursor is the id of the last. */
static bool write_page(struct reader *reader, const char *after, int64_t limit, struct text *out,
                       struct err *err)
{
    autofree char *last = NULL;
    autorows struct rows rows = reader_tokens(reader, after, limit + 1, err);
    struct token_row row;
    bool more;
    text_append(out, "{\"tokens\":[");
    while ((more = rows_token(&rows, &row)) && limit-- > 0) {
        member_separate(out);
        write_token(&row, NULL, out);
        free(last);
        last = xstrdup(row.id);
    }
    member_write_text(out, "],\"next\":", more ? last : NULL);
    text_append(out, "}");
    return !rows.failed;
}

static bool find_token(struct reader *reader, const char *id, bool *ret_found, struct err *err)
{
    autorows struct rows rows = reader_token(reader, id, err);
    struct token_row row;
    *ret_found = rows_token(&rows, &row);
    return !rows.failed;
}

bool tokens_list(struct request *request, struct err *err)
{
    struct reader *reader = request->server->reader;
    const char *after = query_text(request->query, "cursor");
    int64_t limit = LIMIT_LIST_ROWS;
    bool known = true;
    autotext struct text json = {0};
    if (!query_int(request->query, "limit", 1, LIMIT_LIST_ROWS, &limit, err) ||
        (after != NULL && !find_token(reader, after, &known, err))) {
        return false;
    }
    return (known || err_field(err, ERR_FIELD, "cursor", "take it from \"next\" of the page before",
                               "the cursor is not one of ours")) &&
           write_page(reader, after != NULL ? after : "", limit, &json, err) &&
           request_reply_json(request, 200, &json);
}

/* --- changes -------------------------------------------------------------------------------------------- */

/* One change to one token. */
struct token_ask {
    struct ask ask;
    struct change change;
    struct token token; /* of a new one */
    char *owner;        /* owned; NULL: the change's is the request's */
};

/* Updates the copy in memory after the commit. */
static void token_committed(struct ask *ask)
{
    struct token_ask *asked = (struct token_ask *)ask;
    struct server *server = ask->request->server;
    struct err err;
    if (!auth_load(server->auth, server->reader, &err)) {
        /* A change of ours is known without reading. */
        log_error("tokens unreadable", "text=\"%s\"", err.text);
        auth_put(server->auth, &asked->change.token);
    }
}

static void token_ask_finish(struct ask *ask)
{
    free(((struct token_ask *)ask)->owner);
}

static struct token_ask *token_ask_create(struct request *request, enum change_kind kind,
                                          int (*render)(const struct writer_request *, const struct step *,
                                                        struct text *))
{
    struct token_ask *asked = ask_create(request, sizeof *asked, render);
    asked->change.kind = kind;
    asked->ask.writer.kind = WRITER_RECORD;
    asked->ask.writer.records = &asked->change;
    asked->ask.writer.record_count = 1;
    asked->ask.committed = token_committed;
    asked->ask.finish = token_ask_finish;
    return asked;
}

static int render_made(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct token_ask *asked = writer->asker;
    write_token(&asked->change.token, asked->token.text, out);
    return 201;
}

static bool read_owner(const json_t *json, struct token_row *row, struct err *err)
{
    return json_need_text(json, "owner", &row->owner, err) &&
           (text_is_name(row->owner, LIMIT_NAME_BYTES) ||
            err_field(err, ERR_FIELD, "owner", NULL,
                      "the owner must be 1 to %d letters, digits and . _ -, and start with a letter or digit",
                      LIMIT_NAME_BYTES));
}

/* A service account is of one project, for good: so whatever is its own is there. */
static bool check_service(const struct server *server, const struct token_row *row, struct err *err)
{
    if (row->role != ROLE_VIEWER && row->role != ROLE_USER) {
        return err_field(err, ERR_FIELD, "role", "write viewer or user",
                         "a service account cannot have the role %s", role_text(row->role));
    }
    if (projects_find(server->projects, row->project) == NULL) {
        err_field(err, ERR_FIELD, "project", NULL, "there is no project %.64s", row->project);
        return err_hint(err, "set it up with gpuctl quotas set project %.64s", row->project);
    }
    return !auth_serves_another(server->auth, row->owner, row->project) ||
           err_field(err, ERR_CONFLICT, "service", "take another name",
                     "%s is a service account of another project", row->owner);
}

/* service is the name without its prefix; the owner, which the caller frees, has it. */
static bool read_service(const struct server *server, const json_t *json, const char *service,
                         struct token_row *row, char **ret_owner, struct err *err)
{
    if (json_object_get(json, "owner") != NULL) {
        return err_field(err, ERR_FIELD, "owner", "send one of them",
                         "a token is of an owner or of a service account");
    }
    row->owner = *ret_owner = xprintf(TEXT_SERVICE "%s", service);
    if (!text_is_owner(row->owner, LIMIT_NAME_BYTES)) {
        return err_field(
            err, ERR_FIELD, "service", NULL,
            "the name of a service account must be 1 to %zu letters, digits and . _ -, and start "
            "with a letter or digit",
            LIMIT_NAME_BYTES - strlen(TEXT_SERVICE));
    }
    return json_need_text(json, "project", &row->project, err) && check_service(server, row, err);
}

static bool read_whose(const struct server *server, const json_t *json, struct token_row *row,
                       char **ret_owner, struct err *err)
{
    const char *service = NULL;
    if (!json_read_text(json, "service", &service, err)) {
        return false;
    }
    if (service != NULL) {
        return read_service(server, json, service, row, ret_owner, err);
    }
    if (json_object_get(json, "project") != NULL) {
        return err_field(err, ERR_FIELD, "project", "name the service account: service",
                         "only tokens of service accounts are bound to a project");
    }
    return read_owner(json, row, err);
}

static bool read_order(const struct server *server, const json_t *json, struct token_row *row,
                       char **ret_owner, int64_t *ret_life_s, struct err *err)
{
    const char *role = NULL;
    if (!request_only_fields(json, "role owner service project expires_in_s", err) ||
        !json_need_text(json, "role", &role, err)) {
        return false;
    }
    if (!role_from_text(role, &row->role) || row->role == ROLE_NONE) {
        return err_field(err, ERR_FIELD, "role", "write viewer, user, operator, admin, node or monitor",
                         "there is no role \"%s\"", role);
    }
    if (!read_whose(server, json, row, ret_owner, err)) {
        return false;
    }
    *ret_life_s = row->role == ROLE_NODE ? 0 : DEFAULT_TOKEN_LIFE_S;
    return json_read_int(json, "expires_in_s", 1, LIMIT_TOKEN_LIFE_S, ret_life_s, err);
}

bool tokens_make(struct request *request, struct err *err)
{
    struct server *server = request->server;
    struct token_row row = {.created_ms = server->wall_ms};
    int64_t life_s;
    autofree char *owner = NULL; /* of a service account */
    if (!read_order(server, request->json, &row, &owner, &life_s, err)) {
        return false;
    }
    struct token_ask *asked = token_ask_create(request, CHANGE_TOKEN_INSERT, render_made);
    asked->owner = give(owner);
    uint8_t random[TOKEN_RANDOM_BYTES];
    server_random(server, random, sizeof random);
    token_make(random, &asked->token);
    row.id = asked->token.id;
    row.expires_ms = life_s > 0 ? server->wall_ms + 1000 * life_s : 0;
    memcpy(row.secret, asked->token.secret, sizeof row.secret);
    asked->change.token = row;
    asked->ask.subject = row.id;
    return ask_writer(asked, err);
}

static int render_revoked(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct token_ask *asked = writer->asker;
    member_write_text(out, "{\"id\":", asked->change.token.id);
    text_append(out, ",\"revoked\":true}");
    return 200;
}

bool tokens_revoke(struct request *request, struct err *err)
{
    bool found;
    if (!request_only_fields(request->json, "", err) ||
        !find_token(request->server->reader, request->argument, &found, err)) {
        return false;
    }
    if (!found) {
        return err_set(err, ERR_NOT_FOUND, "there is no token %s", request->argument);
    }
    struct token_ask *asked = token_ask_create(request, CHANGE_TOKEN_REVOKE, render_revoked);
    asked->change.token.id = request->argument;
    asked->change.token.owner = "";
    asked->change.token.revoked = true;
    return ask_writer(asked, err);
}
