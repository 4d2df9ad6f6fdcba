/* SPDX-License-Identifier: Apache-2.0 */
/* The identity provider: its keys, fetched when they are needed, and the check of ID tokens with them. */
#ifndef IDENTITY_ISSUER_H
#define IDENTITY_ISSUER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/identity/group_roles.h"
#include "daemon/identity/id_token.h"
#include "proto/base/err.h"

/* Borrowed for as long as the issuer lives. */
struct issuer_config {
    struct id_token_rules rules; /* .issuer NULL: there is no identity provider */
    const char *scopes;          /* that clients ask for */
    struct group_roles roles;
    int64_t life_ms; /* of the tokens that a login gives */
};

struct issuer;

struct issuer *issuer_create(const struct issuer_config *config);
/* Takes NULL. */
void issuer_destroy(struct issuer *issuer);
/* Any thread: a request that is under way ends soon, with an error. */
void issuer_stop(struct issuer *issuer);

/* Checks an ID token. One thread at a time; it waits for the provider where the keys are not known, are old,
 * or do not have the token's. ERR_UNAVAILABLE: the provider does not answer. The caller finishes *ret_claims.
 */
bool issuer_check(struct issuer *issuer, const char *token, int64_t wall_ms, struct claims *ret_claims,
                  struct err *err);

#endif
