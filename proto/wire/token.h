/* SPDX-License-Identifier: Apache-2.0 */
/* The form of tokens: gct_<id>_<secret>, and gcj_<id>_<secret> for join tokens. */
#ifndef PROTO_TOKEN_H
#define PROTO_TOKEN_H

#include <stdint.h>

#define TOKEN_PREFIX        "gct_"
#define TOKEN_JOIN_PREFIX   "gcj_"
#define TOKEN_ID_LENGTH     8  /* a-z2-7 */
#define TOKEN_SECRET_LENGTH 43 /* base64url of 32 bytes */
#define TOKEN_LENGTH        (4 + TOKEN_ID_LENGTH + 1 + TOKEN_SECRET_LENGTH)

/* Of answers to people whose token soon ends: when, in RFC 3339. */
#define TOKEN_EXPIRES_HEADER "Gpuctl-Token-Expires"

/* Makes the characters of a secret from random bytes. */
#define TOKEN_SECRET_RANDOM 32
void token_secret_make(const uint8_t random[TOKEN_SECRET_RANDOM], char out[TOKEN_SECRET_LENGTH + 1]);

/* Points at "<id>_<secret>" after the prefix; NULL when the text has another form. */
const char *token_after_prefix(const char *text, const char *prefix);

#endif
