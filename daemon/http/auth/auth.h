/* SPDX-License-Identifier: Apache-2.0 */
/* The senders of requests, known by their bearer tokens. What they may do: authorize.h. */
#ifndef HTTP_AUTH_H
#define HTTP_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/http/auth/principal.h"
#include "daemon/store/store.h"
#include "proto/base/err.h"
#include "proto/base/crypto/hash.h"
#include "proto/states.h"
#include "proto/wire/token.h"

/* --- tokens: gct_<id>_<secret> -------------------------------------------------------------------------- */

struct token {
    char id[TOKEN_ID_LENGTH + 1];
    char text[TOKEN_LENGTH + 1]; /* the whole, shown once */
    uint8_t secret[HASH_BYTES];  /* SHA-256 of the secret's characters, which is stored */
};

/* Makes a token from 37 random bytes. */
#define TOKEN_RANDOM_BYTES 37
void token_make(const uint8_t random[TOKEN_RANDOM_BYTES], struct token *ret_token);

/* --- those that are known ------------------------------------------------------------------------------- */

/* One token's bearer. Lives as long as the auth that it comes from. */
struct identity;
const char *identity_id(const struct identity *who); /* of its token */
const char *identity_owner(const struct identity *who);
/* As what rules of projects know it. */
const struct principal *identity_principal(const struct identity *who);
/* Whether its token is of a login, and so another one is got by logging in again. */
bool identity_logged_in(const struct identity *who);
int64_t identity_expires_ms(const struct identity *who); /* 0: never */
enum role identity_role(const struct identity *who);
bool identity_is_admin(const struct identity *who);
/* The node that its token is bound to; NULL: none. */
const char *identity_node(const struct identity *who);
/* Whether the bearer may speak for the node: ERR_FORBIDDEN when its token is bound to another one. */
bool identity_acts_for(const struct identity *who, const char *node, struct err *err);
/* false once the token was revoked or has expired. */
bool identity_stands(const struct identity *who, int64_t wall_ms);

struct auth;

struct auth *auth_create(void);
void auth_destroy(struct auth *auth);

/* Takes one token in, or its revocation. */
void auth_put(struct auth *auth, const struct token_row *row);
/* Takes in all tokens of the store: at start, and after a change to them was committed. */
bool auth_load(struct auth *auth, struct reader *reader, struct err *err);

/* The bearer of the token with this id; NULL: there is none. It may be revoked. */
const struct identity *auth_find(const struct auth *auth, const char *id);

/* The owner as somebody who acts without a request: by the token with the highest role, or by the newest
 * login, even if that ended at most login_ms ago. NULL: there is neither, or it only looks. */
const struct identity *auth_of_owner(const struct auth *auth, const char *owner, int64_t login_ms,
                                     int64_t wall_ms);
/* Whether a token that stands is bound to the node. */
bool auth_has_node(const struct auth *auth, const char *node, int64_t wall_ms);
/* Whether the use of a token is to be noted, because none was for an hour; it counts as noted from then on.
 * *ret_first: it is the first. */
bool auth_use(struct auth *auth, const char *id, int64_t wall_ms, bool *ret_first);
/* Whether the name is another's: a token of it that nobody has revoked is of a login of another subject. */
bool auth_is_of_another(const struct auth *auth, const char *owner, const char *subject);
/* Whether there is, or was, a service account of that name in another project. */
bool auth_serves_another(const struct auth *auth, const char *owner, const char *project);
/* The token with this id stands no longer than until then. */
void auth_end(struct auth *auth, const char *id, int64_t wall_ms);
/* Revokes the tokens that are bound to the node, but the one with this id. */
void auth_retire(struct auth *auth, const char *node, const char *id);

/* The token that an Authorization header carries: `Bearer TOKEN`, or `Basic` with the token as the password
 * of any name. "" for anything else. */
#define CREDENTIAL_BYTES 128 /* the longest token is one of ranks, 85 */
void auth_credential(const char *authorization, char out[CREDENTIAL_BYTES]);

/* The identity of the ranks of an attempt, whose token is not stored: it belongs to nobody and has no role.
 */
const struct identity *auth_ranks(void);

/* ERR_UNAUTHENTICATED in the words that hold for every token that does not stand. false. */
bool auth_refuse(struct err *err);

/* The bearer of a token ("": there was none). NULL with ERR_UNAUTHENTICATED: the same words
 * and the same work whether the token is unknown or wrong. */
const struct identity *auth_check(struct auth *auth, const char *credential, int64_t wall_ms,
                                  struct err *err);

#endif
