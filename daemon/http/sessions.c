/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the sessions of browsers: sign in with a token or a code, renew, look, sign out. A token that a
 * person types goes through here once; the browser then keeps a cookie that no script can read. */
#include <string.h>

#include "daemon/http/auth/auth.h"
#include "daemon/http/auth/session.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

static bool must_be_person(const struct identity *who, struct err *err)
{
    return authorize_route(ACCESS_VIEWER, identity_role(who), err);
}

static void set_cookie(struct request *request, const char *value, int64_t life_s)
{
    const struct server *server = request->server;
    bool secure = server->config.tls_certificate != NULL;
    autofree char *cookie =
        xprintf("%s=%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Strict%s",
                sessions_cookie_name(server->sessions), value, (long long)life_s, secure ? "; Secure" : "");
    request_header(request, "Set-Cookie", cookie);
    request_header(request, "Cache-Control", "no-store");
}

/* proof NULL: it is not told again. */
static void write_session(const struct identity *who, int64_t expires_ms, const char *proof, struct text *out)
{
    member_write_text(out, "{\"owner\":", identity_owner(who));
    member_write_text(out, ",\"role\":", role_text(identity_role(who)));
    member_write_time(out, ",\"expires_at\":", expires_ms);
    if (proof != NULL) {
        member_write_text(out, ",\"proof\":", proof);
    }
    text_append(out, "}");
}

/* --- sign in -------------------------------------------------------------------------------------------- */

/* The bearer whose token or code the body has; with neither, the one whose session is to be renewed. */
static const struct identity *who_signs_in(struct request *request, struct err *err)
{
    struct server *server = request->server;
    const char *token = NULL, *code = NULL;
    struct session session;
    if (!request_only_fields(request->json, "token code", err) ||
        !json_read_text(request->json, "token", &token, err) ||
        !json_read_text(request->json, "code", &code, err)) {
        return NULL;
    }
    if (token != NULL && code != NULL) {
        err_field(err, ERR_FIELD, "code", "send one of them",
                  "a session is made with a token or with a code");
        return NULL;
    }
    if (token != NULL) {
        return auth_check(server->auth, token, server->wall_ms, err);
    }
    if (code != NULL) {
        return session_code_take(server->sessions, server->auth, code, server->now_ms, server->wall_ms, err);
    }
    return request_session(request, &session, err);
}

bool sessions_make(struct request *request, struct err *err)
{
    struct server *server = request->server;
    const struct identity *who = who_signs_in(request, err);
    if (who == NULL || !must_be_person(who, err)) {
        return false;
    }
    request->who = who; /* for the audit */
    request->changes_more = true;
    uint8_t random[SESSION_NONCE_BYTES];
    struct session session;
    char cookie[SESSION_COOKIE_BYTES], proof[HASH_HEX + 1];
    server_random(server, random, sizeof random);
    session_begin(who, server->wall_ms, random, &session);
    session_cookie(server->sessions, &session, cookie);
    session_proof(server->sessions, &session, proof);
    struct text json = {0};
    write_session(who, 1000 * session.expires_s, proof, &json);
    request_reply_json(request, 201, &json);
    set_cookie(request, cookie, session.expires_s - server->wall_ms / 1000);
    return true;
}

/* --- codes ---------------------------------------------------------------------------------------------- */

bool sessions_make_code(struct request *request, struct err *err)
{
    struct server *server = request->server;
    uint8_t random[SESSION_NONCE_BYTES];
    char code[SESSION_NONCE_HEX + 1];
    server_random(server, random, sizeof random);
    if (!request_only_fields(request->json, "", err) ||
        !session_code_make(server->sessions, request->who, server->now_ms, random, code, err)) {
        return false;
    }
    request->changes_more = true;
    struct text json = {0};
    member_write_text(&json, "{\"code\":", code);
    member_write_time(&json, ",\"expires_at\":", server->wall_ms + 1000 * SESSION_CODE_S);
    text_append(&json, "}");
    request_reply_json(request, 201, &json);
    request_header(request, "Cache-Control", "no-store");
    return true;
}

/* --- look, and sign out --------------------------------------------------------------------------------- */

bool sessions_show(struct request *request, struct err *err)
{
    struct text json = {0};
    int64_t expires_ms = request->session.expires_s != 0 ? 1000 * request->session.expires_s
                                                         : identity_expires_ms(request->who);
    write_session(request->who, expires_ms, NULL, &json);
    return request_reply_json(request, 200, &json);
}

bool sessions_end(struct request *request, struct err *err)
{
    struct server *server = request->server;
    if (request->session.expires_s == 0) {
        return err_set(err, ERR_CONFLICT, "the request was made with a token, not in a session");
    }
    request->changes_more = true;
    session_end(server->sessions, &request->session, server->wall_ms);
    request_reply_literal(request, 200, "{}");
    set_cookie(request, "", 0);
    return true;
}
