/* SPDX-License-Identifier: Apache-2.0 */
/* ID tokens of OpenID Connect: whether one is of our identity provider, for us and new, and who it is of. */
#ifndef IDENTITY_ID_TOKEN_H
#define IDENTITY_ID_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/identity/keys.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* What an ID token must say, and where it says who somebody is. Borrowed. */
struct id_token_rules {
    const char *issuer;
    const char *client_id;
    const char *user_claim;  /* the name of the person */
    const char *user_domain; /* the name ends with @ and this, which is left away; NULL: it has no such end */
    const char *groups_claim; /* their groups: a list of texts, or one */
};

/* Who the token is of. */
struct claims {
    char *name;         /* a name of ours */
    char *subject;      /* the issuer, a space, and their id there, which never changes */
    struct text groups; /* groups.h */
    int64_t until_ms;   /* the token cannot be used after this, wall clock */
};

void claims_finish(struct claims *claims);

/* Checks the token against the keys, the rules and the clock. ERR_UNAUTHENTICATED says what is wrong;
 * ERR_FORBIDDEN: it is sound, and its bearer can have no name here. *ret_unknown: it was signed with a key
 * that is not among these. *ret_claims is set only with true; then the caller finishes it. */
bool id_token_check(const char *token, const struct keys *keys, const struct id_token_rules *rules,
                    int64_t wall_ms, struct claims *ret_claims, bool *ret_unknown, struct err *err);

#endif
