/* SPDX-License-Identifier: Apache-2.0 */
/* Serves logins by an identity provider: where it is, the trade of an ID token for a token of ours, and the
 * end of a token that its bearer wants no more. An ID token is checked on a thread of its own, because that
 * may wait for the provider, and is traded once. */
#include "daemon/http/logins.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/blob/worker.h"
#include "daemon/http/api/ask.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/request/routes.h"
#include "daemon/identity/issuer.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"
#include "proto/members.h"
#include "proto/wire/views.h"

#define RESERVED "admin" /* the owner of the controller's first token */

/* An ID token that was traded. */
struct traded {
    uint8_t hash[HASH_BYTES];
    int64_t until_ms; /* wall clock; it cannot be used after this */
};

struct logins {
    const struct issuer_config *config;
    struct issuer *issuer;
    struct worker *worker;
    struct watch watch;
    size_t waiting;
    struct login *with_writer; /* those whose token is being made */
    struct traded traded[LIMIT_LOGINS_KEPT];
};

/* One login. It is the state of its request. */
struct login {
    struct request_work work; /* first */
    struct logins *logins;
    char *id_token;
    int64_t wall_ms;
    struct claims claims;
    bool sound;
    struct err err; /* why it is not */
    struct login *prev, *next;
};

/* --- opening and closing -------------------------------------------------------------------------------- */

static void worker_ready(struct watch *watch)
{
    worker_collect(watch->closure);
}

bool logins_open(struct server *server, struct err *err)
{
    const struct issuer_config *config = server->config.issuer;
    if (config == NULL) {
        return true;
    }
    struct logins *logins = xzalloc(sizeof *logins);
    server->logins = logins;
    logins->config = config;
    logins->issuer = issuer_create(config);
    logins->worker = worker_open(err);
    if (logins->worker == NULL) {
        return false;
    }
    logins->watch =
        (struct watch){.fd = worker_fd(logins->worker), .ready = worker_ready, .closure = logins->worker};
    return server_watch(server, &logins->watch, err);
}

void logins_close(struct server *server)
{
    struct logins *logins = server->logins;
    if (logins == NULL) {
        return;
    }
    issuer_stop(logins->issuer);
    if (logins->worker != NULL) {
        worker_close(logins->worker);
    }
    issuer_destroy(logins->issuer);
    free(logins);
}

/* --- where people log in -------------------------------------------------------------------------------- */

bool logins_show(struct request *request, struct err *err)
{
    const struct issuer_config *config = request->server->config.issuer;
    struct text json = {0};
    member_write_text(&json, "{\"issuer\":", config != NULL ? config->rules.issuer : NULL);
    member_write_text(&json, ",\"client_id\":", config != NULL ? config->rules.client_id : NULL);
    member_write_text(&json, ",\"scopes\":", config != NULL ? config->scopes : NULL);
    text_append(&json, "}");
    return request_reply_json(request, 200, &json);
}

/* --- once ----------------------------------------------------------------------------------------------- */

/* Remembers it; ERR_UNAUTHENTICATED: it was traded before. Those that could be used longest stay. */
static bool trade_once(struct logins *logins, const struct login *login, struct err *err)
{
    uint8_t hash[HASH_BYTES];
    struct traded *place = &logins->traded[0];
    hash_bytes(login->id_token, strlen(login->id_token), hash);
    for (size_t i = 0; i < LIMIT_LOGINS_KEPT; i++) {
        struct traded *one = &logins->traded[i];
        if (one->until_ms != 0 && memcmp(one->hash, hash, HASH_BYTES) == 0) {
            return err_field(err, ERR_UNAUTHENTICATED, "id_token", "log in again with gpuctl login",
                             "the ID token was used already");
        }
        place = one->until_ms < place->until_ms ? one : place;
    }
    if (place->until_ms > login->wall_ms) {
        return err_set(err, ERR_TOO_MANY, "too many people log in at once");
    }
    memcpy(place->hash, hash, HASH_BYTES);
    place->until_ms = login->claims.until_ms;
    return true;
}

/* --- a token of ours ------------------------------------------------------------------------------------ */

struct login_ask {
    struct ask ask;
    struct change change;
    struct token token;
    struct login *login;
    char *detail; /* owned */
};

static int render_made(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct login_ask *asked = writer->asker;
    const struct token_row *row = &asked->change.token;
    const struct token_view view = {.id = row->id,
                                    .role = row->role,
                                    .owner = row->owner,
                                    .created_ms = row->created_ms,
                                    .expires_ms = row->expires_ms,
                                    .secret = asked->token.text};
    token_view_encode(&view, out);
    return 201;
}

static void login_committed(struct ask *ask)
{
    const struct login_ask *asked = (struct login_ask *)ask;
    auth_put(ask->request->server->auth, &asked->change.token);
    log_info("login", "owner=%s role=%s token=%s", asked->change.token.owner,
             role_text(asked->change.token.role), asked->token.id);
}

static void login_ask_finish(struct ask *ask)
{
    struct login_ask *asked = (struct login_ask *)ask;
    DL_DELETE(asked->login->logins->with_writer, asked->login);
    explicit_bzero(&asked->token, sizeof asked->token);
    free(asked->detail);
}

/* What the audit says of it: who it was there, and by which groups. */
static char *describe(const struct login *login, enum role role)
{
    autojson json_t *json = json_object();
    const char *groups = login->claims.groups.bytes;
    json_object_set_new(json, "subject", json_string(login->claims.subject));
    json_object_set_new(json, "role", json_string(role_text(role)));
    json_object_set_new(json, "groups", json_string(groups != NULL ? groups + 1 : ""));
    char *text = json_text(json);
    if (strlen(text) > LIMIT_AUDIT_BYTES) {
        json_object_del(json, "groups");
        free(text);
        text = json_text(json);
    }
    return text;
}

/* The claims live as long as the request, and that as long as the writer has the ask. */
static bool make_token(struct request *request, struct login *login, enum role role, struct err *err)
{
    struct server *server = request->server;
    struct login_ask *asked = ask_create(request, sizeof *asked, render_made);
    uint8_t random[TOKEN_RANDOM_BYTES];
    server_random(server, random, sizeof random);
    token_make(random, &asked->token);
    explicit_bzero(random, sizeof random);
    asked->change = (struct change){.kind = CHANGE_TOKEN_INSERT,
                                    .token = {.id = asked->token.id,
                                              .role = role,
                                              .owner = login->claims.name,
                                              .created_ms = server->wall_ms,
                                              .expires_ms = server->wall_ms + login->logins->config->life_ms,
                                              .subject = login->claims.subject,
                                              .groups = login->claims.groups.bytes}};
    memcpy(asked->change.token.secret, asked->token.secret, HASH_BYTES);
    asked->detail = describe(login, role);
    asked->login = login;
    DL_APPEND(login->logins->with_writer, login);
    asked->ask.writer.kind = WRITER_RECORD;
    asked->ask.writer.records = &asked->change;
    asked->ask.writer.record_count = 1;
    asked->ask.subject = asked->token.id;
    asked->ask.detail = asked->detail;
    asked->ask.committed = login_committed;
    asked->ask.finish = login_ask_finish;
    return ask_writer(asked, err);
}

/* A name is one person's: the identity provider may let people choose theirs. */
static bool check_name(const struct server *server, const struct claims *claims, struct err *err)
{
    const struct login *other;
    DL_FOREACH (server->logins->with_writer, other) {
        if (strcmp(other->claims.name, claims->name) == 0) {
            return err_set(err, ERR_UNAVAILABLE, "%s logs in elsewhere at the same time; try again",
                           claims->name);
        }
    }
    if (strcmp(claims->name, RESERVED) == 0) {
        return err_set(err, ERR_FORBIDDEN, "the name %s is the controller's own", RESERVED);
    }
    if (!auth_is_of_another(server->auth, claims->name, claims->subject)) {
        return true;
    }
    err_set(err, ERR_FORBIDDEN, "the name %s is of another account of the identity provider", claims->name);
    return err_hint(
        err, "if that person is gone, have an administrator revoke the tokens of %s: see gpuctl token list",
        claims->name);
}

static bool admit(struct request *request, struct login *login, struct err *err)
{
    const struct server *server = request->server;
    const struct claims *claims = &login->claims;
    enum role role = group_roles_find(&login->logins->config->roles, claims->groups.bytes);
    request->signs_in = claims->name;
    if (role == ROLE_NONE) {
        err_set(err, ERR_FORBIDDEN, "%s is in no group of the identity provider that has a role here",
                claims->name);
        return err_hint(err,
                        "have an administrator give a group of yours a role: gpuctld --oidc-role GROUP=user");
    }
    return check_name(server, claims, err) && trade_once(login->logins, login, err) &&
           make_token(request, login, role, err);
}

/* --- logging in ----------------------------------------------------------------------------------------- */

static void login_free(struct request_work *work)
{
    struct login *login = (struct login *)work;
    explicit_bzero(login->id_token, strlen(login->id_token));
    free(login->id_token);
    claims_finish(&login->claims);
    free(login);
}

/* On the thread of logins. */
static void check(struct task *task)
{
    struct login *login = (struct login *)task;
    login->sound =
        issuer_check(login->logins->issuer, login->id_token, login->wall_ms, &login->claims, &login->err);
}

static void returned(struct request_work *work)
{
    ((struct login *)work)->logins->waiting--;
}

static void reply(struct request_work *work)
{
    struct login *login = (struct login *)work;
    struct err err = login->err;
    if (!login->sound || !admit(work->request, login, &err)) {
        request_fail(work->request, &err);
    }
}

bool logins_make(struct request *request, struct err *err)
{
    struct logins *logins = request->server->logins;
    const char *token = NULL;
    if (logins == NULL) {
        err_set(err, ERR_NOT_FOUND, "this controller has no identity provider");
        return err_hint(err, "have an administrator make you a token: gpuctl token create --owner NAME");
    }
    if (!request_only_fields(request->json, "id_token", err) ||
        !json_need_text(request->json, "id_token", &token, err)) {
        return false;
    }
    if (logins->waiting >= LIMIT_LOGINS_WAITING) {
        return err_set(err, ERR_TOO_MANY, "too many people log in at once");
    }
    struct login *login = xzalloc(sizeof *login);
    login->logins = logins;
    login->id_token = xstrdup(token);
    login->wall_ms = request->server->wall_ms;
    login->work.returned = returned;
    logins->waiting++;
    request_work_begin(&login->work, request, login_free);
    return request_work_give(&login->work, logins->worker, check, reply);
}

/* --- logging out ---------------------------------------------------------------------------------------- */

struct logout {
    struct ask ask;
    struct change change;
};

static int render_ended(const struct writer_request *writer, const struct step *step, struct text *out)
{
    text_append(out, "{}");
    return 200;
}

static void logout_committed(struct ask *ask)
{
    auth_end(ask->request->server->auth, identity_id(ask->request->who),
             ((struct logout *)ask)->change.token.expires_ms);
}

/* The request names the token that it is made with, so that none is ended by mistake. */
bool logins_end(struct request *request, struct err *err)
{
    const char *id = query_text(request->query, "token");
    if (request->session.expires_s != 0) {
        err_set(err, ERR_CONFLICT, "the request was made in a session, not with a token");
        return err_hint(err, "end the session with DELETE /v1/session");
    }
    if (id == NULL || strcmp(id, identity_id(request->who)) != 0) {
        return err_field(err, ERR_FIELD, "token", "write its id: the characters between gct_ and the next _",
                         "token must be the id of the token that the request is made with");
    }
    if (identity_is_admin(request->who) && !identity_logged_in(request->who)) {
        err_set(err, ERR_CONFLICT,
                "a token of an administrator that no login has made is not ended by logging out");
        return err_hint(err, "revoke it with gpuctl token revoke %s, if you have another", id);
    }
    struct logout *logout = ask_create(request, sizeof *logout, render_ended);
    logout->change = (struct change){
        .kind = CHANGE_TOKEN_END,
        .token = {.id = identity_id(request->who), .owner = "", .expires_ms = request->server->wall_ms}};
    logout->ask.writer.kind = WRITER_RECORD;
    logout->ask.writer.records = &logout->change;
    logout->ask.writer.record_count = 1;
    logout->ask.committed = logout_committed;
    return ask_writer(logout, err);
}
