/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of browsers. A session acts for the token that it was made with, and ends with it at the latest.
 * It has two halves, and a request needs both: a cookie, which no script can read, and a proof in a header,
 * which the page keeps for its own origin. Browsers send a cookie to every port of a host, and with requests
 * that other pages of the host make; neither of these has the proof. Both are made with a secret of the
 * controller, so nothing is stored, and a restart ends no session. */
#ifndef HTTP_SESSION_H
#define HTTP_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/http/auth/auth.h"

#define SESSION_NONCE_BYTES 16
#define SESSION_NONCE_HEX   (2 * SESSION_NONCE_BYTES)
/* TOKEN.EXPIRES.NONCE.MAC */
#define SESSION_COOKIE_BYTES (TOKEN_ID_LENGTH + 1 + 20 + 1 + SESSION_NONCE_HEX + 1 + HASH_HEX + 1)

struct session {
    char token[TOKEN_ID_LENGTH + 1]; /* id of the token that it acts for */
    char nonce[SESSION_NONCE_HEX + 1];
    int64_t expires_s; /* wall clock */
};

struct sessions;

/* key is the controller's secret, borrowed. */
struct sessions *sessions_create(const uint8_t key[HASH_BYTES]);
void sessions_destroy(struct sessions *sessions);

/* The name of the cookie: another one for each controller, because those of one host share their cookies. */
const char *sessions_cookie_name(const struct sessions *sessions);

/* A new session of a token's bearer. random: SESSION_NONCE_BYTES. */
void session_begin(const struct identity *who, int64_t wall_ms, const uint8_t *random,
                   struct session *ret_session);
void session_cookie(const struct sessions *sessions, const struct session *session,
                    char out[SESSION_COOKIE_BYTES]);
void session_proof(const struct sessions *sessions, const struct session *session, char out[HASH_HEX + 1]);

/* The headers of a request that matter to sessions; NULL: it has not this one. */
struct session_headers {
    const char *cookie; /* all cookies */
    const char *proof;
};

/* Whether the request has our cookie; then it was made in a session, or fails. */
bool sessions_has_cookie(const struct sessions *sessions, const char *cookie_header);

/* The bearer for whom a request with a cookie acts. NULL with ERR_UNAUTHENTICATED: a half is missing or
 * wrong, the session is over, or the token does not stand any more. */
const struct identity *session_check(const struct sessions *sessions, const struct auth *auth,
                                     const struct session_headers *headers, int64_t wall_ms,
                                     struct session *ret_session, struct err *err);

/* Ends a session before its time. Of these LIMIT_SESSIONS_ENDED are remembered, until they would be over
 * anyway; a restart forgets them. */
void session_end(struct sessions *sessions, const struct session *session, int64_t wall_ms);

/* --- codes ---------------------------------------------------------------------------------------------- */

/* A code signs in once, within SESSION_CODE_S, as the bearer of a token: a link that holds it can be given
 * to a browser without giving it the token. random: SESSION_NONCE_BYTES. ERR_TOO_MANY: the bearer has
 * LIMIT_SESSION_CODES that nobody has used. */
bool session_code_make(struct sessions *sessions, const struct identity *who, int64_t now_ms,
                       const uint8_t *random, char out[SESSION_NONCE_HEX + 1], struct err *err);
/* NULL with ERR_UNAUTHENTICATED: unknown, used, too old, or its token does not stand any more. */
const struct identity *session_code_take(struct sessions *sessions, const struct auth *auth, const char *code,
                                         int64_t now_ms, int64_t wall_ms, struct err *err);

#endif
