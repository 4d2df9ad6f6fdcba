/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and checks the sessions of browsers, and the codes that begin them. What a browser has of a session
 * is derived from it with the controller's secret. Only codes that nobody has used yet, and sessions that
 * were ended before their time, are kept, in memory. */
#include "daemon/http/auth/session.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

#define COOKIE_NAME_DIGITS 8

struct code {
    char text[SESSION_NONCE_HEX + 1];
    char token[TOKEN_ID_LENGTH + 1];
    int64_t until_ms; /* CLOCK_BOOTTIME */
    struct code *prev, *next;
};

struct ended {
    struct session session;
    struct ended *prev, *next;
};

struct sessions {
    const uint8_t *key;
    char cookie[sizeof "gpuctl_" + COOKIE_NAME_DIGITS];
    struct code *codes; /* the oldest first */
    struct ended *ended;
    size_t ended_count;
};

static void derive(const struct sessions *sessions, const char *purpose, const struct session *session,
                   char out[HASH_HEX + 1])
{
    uint8_t digest[HASH_BYTES];
    char text[128];
    int length = snprintf(text, sizeof text, "%s %s %lld %s", purpose, session->token,
                          (long long)session->expires_s, session->nonce);
    hash_keyed(sessions->key, HASH_BYTES, text, (size_t)length, digest);
    text_to_hex(digest, HASH_BYTES, out);
}

struct sessions *sessions_create(const uint8_t key[HASH_BYTES])
{
    struct sessions *sessions = xzalloc(sizeof *sessions);
    char name[HASH_HEX + 1];
    sessions->key = key;
    derive(sessions, "name", &(struct session){0}, name);
    snprintf(sessions->cookie, sizeof sessions->cookie, "gpuctl_%.*s", COOKIE_NAME_DIGITS, name);
    return sessions;
}

static void drop_code(struct sessions *sessions, struct code *code)
{
    DL_DELETE(sessions->codes, code);
    explicit_bzero(code, sizeof *code);
    free(code);
}

static void drop_ended(struct sessions *sessions, struct ended *ended)
{
    DL_DELETE(sessions->ended, ended);
    sessions->ended_count--;
    free(ended);
}

void sessions_destroy(struct sessions *sessions)
{
    if (sessions == NULL) {
        return;
    }
    while (sessions->codes != NULL) {
        drop_code(sessions, sessions->codes);
    }
    while (sessions->ended != NULL) {
        drop_ended(sessions, sessions->ended);
    }
    free(sessions);
}

const char *sessions_cookie_name(const struct sessions *sessions)
{
    return sessions->cookie;
}

/* --- the two halves ------------------------------------------------------------------------------------- */

void session_begin(const struct identity *who, int64_t wall_ms, const uint8_t *random,
                   struct session *ret_session)
{
    int64_t expires_s = wall_ms / 1000 + SESSION_LIFE_S;
    int64_t token_s = identity_expires_ms(who) / 1000;
    *ret_session = (struct session){.expires_s = token_s != 0 && token_s < expires_s ? token_s : expires_s};
    memcpy(ret_session->token, identity_id(who), TOKEN_ID_LENGTH);
    text_to_hex(random, SESSION_NONCE_BYTES, ret_session->nonce);
}

void session_cookie(const struct sessions *sessions, const struct session *session,
                    char out[SESSION_COOKIE_BYTES])
{
    char mac[HASH_HEX + 1];
    derive(sessions, "cookie", session, mac);
    snprintf(out, SESSION_COOKIE_BYTES, "%s.%lld.%s.%s", session->token, (long long)session->expires_s,
             session->nonce, mac);
}

void session_proof(const struct sessions *sessions, const struct session *session, char out[HASH_HEX + 1])
{
    derive(sessions, "proof", session, out);
}

/* The value of our cookie in a Cookie header; NULL: it has none. Its length is told. */
static const char *cookie_value(const struct sessions *sessions, const char *header, size_t *ret_length)
{
    size_t name = strlen(sessions->cookie);
    for (const char *at = header; at != NULL; at = strchr(at, ';')) {
        at += strspn(at, "; ");
        if (strncmp(at, sessions->cookie, name) == 0 && at[name] == '=') {
            *ret_length = strcspn(at + name + 1, "; ");
            return at + name + 1;
        }
    }
    return NULL;
}

bool sessions_has_cookie(const struct sessions *sessions, const char *cookie_header)
{
    size_t length;
    return cookie_value(sessions, cookie_header, &length) != NULL;
}

/* One part of a cookie, up to its dot or the end. false: it is not as long as that. */
static bool take_part(const char **at, char *out, size_t least, size_t most)
{
    size_t length = strcspn(*at, ".");
    if (length < least || length > most) {
        return false;
    }
    memcpy(out, *at, length);
    out[length] = '\0';
    *at += length + ((*at)[length] == '.');
    return true;
}

static bool same_text(const char *left, const char *right)
{
    uint8_t ours[HASH_BYTES], theirs[HASH_BYTES];
    return text_from_hex(left, ours, HASH_BYTES) && text_from_hex(right, theirs, HASH_BYTES) &&
           hash_equal(ours, theirs);
}

/* The session that a cookie of ours names. */
static bool read_cookie(const struct sessions *sessions, const char *value, size_t length,
                        struct session *session)
{
    char text[SESSION_COOKIE_BYTES], expires[21], given[HASH_HEX + 1], right[HASH_HEX + 1];
    const char *at = text;
    if (length >= sizeof text) {
        return false;
    }
    memcpy(text, value, length);
    text[length] = '\0';
    if (!take_part(&at, session->token, TOKEN_ID_LENGTH, TOKEN_ID_LENGTH) ||
        !take_part(&at, expires, 1, sizeof expires - 1) ||
        !take_part(&at, session->nonce, SESSION_NONCE_HEX, SESSION_NONCE_HEX) ||
        !take_part(&at, given, HASH_HEX, HASH_HEX) || *at != '\0' || !isdigit((unsigned char)expires[0]) ||
        !text_to_int(expires, 0, INT64_MAX, &session->expires_s)) {
        return false;
    }
    derive(sessions, "cookie", session, right);
    return same_text(given, right);
}

static bool has_ended(const struct sessions *sessions, const struct session *session)
{
    const struct ended *ended;
    DL_FOREACH (sessions->ended, ended) {
        if (strcmp(ended->session.nonce, session->nonce) == 0) {
            return true;
        }
    }
    return false;
}

static const struct identity *refuse(struct err *err, const char *text, const char *hint)
{
    err_set(err, ERR_UNAUTHENTICATED, "%s", text);
    err_hint(err, "%s", hint);
    return NULL;
}

const struct identity *session_check(const struct sessions *sessions, const struct auth *auth,
                                     const struct session_headers *headers, int64_t wall_ms,
                                     struct session *ret_session, struct err *err)
{
    size_t length;
    char proof[HASH_HEX + 1];
    const char *value = cookie_value(sessions, headers->cookie, &length);
    struct session session = {0};
    if (value == NULL || !read_cookie(sessions, value, length, &session) ||
        wall_ms / 1000 >= session.expires_s || has_ended(sessions, &session)) {
        return refuse(err, "the session is over", "sign in again");
    }
    session_proof(sessions, &session, proof);
    if (headers->proof == NULL || !same_text(headers->proof, proof)) {
        return refuse(err, "the request carries the cookie of a session without its proof",
                      "send the header Gpuctl-Session with the proof that POST /v1/session gave");
    }
    const struct identity *who = auth_find(auth, session.token);
    if (who == NULL || !identity_stands(who, wall_ms)) {
        return refuse(err, "the token that the session was made with is revoked or has expired",
                      "sign in with another token");
    }
    *ret_session = session;
    return who;
}

void session_end(struct sessions *sessions, const struct session *session, int64_t wall_ms)
{
    struct ended *ended, *next;
    DL_FOREACH_SAFE (sessions->ended, ended, next) {
        if (ended->session.expires_s <= wall_ms / 1000) {
            drop_ended(sessions, ended);
        }
    }
    if (sessions->ended_count == LIMIT_SESSIONS_ENDED) {
        drop_ended(sessions, sessions->ended);
    }
    ended = xzalloc(sizeof *ended);
    ended->session = *session;
    DL_APPEND(sessions->ended, ended);
    sessions->ended_count++;
}

/* --- codes ---------------------------------------------------------------------------------------------- */

static void drop_old_codes(struct sessions *sessions, int64_t now_ms)
{
    while (sessions->codes != NULL && sessions->codes->until_ms <= now_ms) {
        drop_code(sessions, sessions->codes);
    }
}

bool session_code_make(struct sessions *sessions, const struct identity *who, int64_t now_ms,
                       const uint8_t *random, char out[SESSION_NONCE_HEX + 1], struct err *err)
{
    size_t count = 0;
    struct code *code;
    drop_old_codes(sessions, now_ms);
    DL_FOREACH (sessions->codes, code) {
        count += strcmp(code->token, identity_id(who)) == 0;
    }
    if (count >= LIMIT_SESSION_CODES) {
        return err_set(err, ERR_TOO_MANY, "%d codes of this token wait to be used", LIMIT_SESSION_CODES);
    }
    code = xzalloc(sizeof *code);
    text_to_hex(random, SESSION_NONCE_BYTES, code->text);
    memcpy(code->token, identity_id(who), TOKEN_ID_LENGTH);
    code->until_ms = now_ms + 1000 * SESSION_CODE_S;
    DL_APPEND(sessions->codes, code);
    memcpy(out, code->text, sizeof code->text);
    return true;
}

/* Compares in constant time; of codes there are few. */
static struct code *find_code(const struct sessions *sessions, const char *text)
{
    uint8_t given[HASH_BYTES], own[HASH_BYTES];
    struct code *code, *found = NULL;
    hash_bytes(text, strlen(text), given);
    DL_FOREACH (sessions->codes, code) {
        hash_bytes(code->text, SESSION_NONCE_HEX, own);
        found = hash_equal(given, own) ? code : found;
    }
    return found;
}

const struct identity *session_code_take(struct sessions *sessions, const struct auth *auth, const char *text,
                                         int64_t now_ms, int64_t wall_ms, struct err *err)
{
    drop_old_codes(sessions, now_ms);
    struct code *code = find_code(sessions, text);
    const struct identity *who = code != NULL ? auth_find(auth, code->token) : NULL;
    if (code != NULL) {
        drop_code(sessions, code);
    }
    if (who == NULL || !identity_stands(who, wall_ms)) {
        return refuse(err, "the link is too old, or was used already",
                      "make another one: gpuctl open, within a minute");
    }
    return who;
}
