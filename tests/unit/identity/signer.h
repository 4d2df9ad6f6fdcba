/* SPDX-License-Identifier: Apache-2.0 */
/* An identity provider's keys, for tests: makes a key, says its public half as a JWK, and signs tokens. */
#ifndef TESTS_SIGNER_H
#define TESTS_SIGNER_H

#include <gnutls/abstract.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text/text.h"

enum signer_kind { SIGNER_RSA, SIGNER_P256, SIGNER_ED25519 };

struct signer {
    enum signer_kind kind;
    gnutls_privkey_t key;
};

/* bits 0: the usual ones. */
void signer_init(struct signer *signer, enum signer_kind kind, unsigned bits);
void signer_finish(struct signer *signer);

/* Appends base64url. */
void signer_encode(const void *bytes, size_t length, struct text *out);
/* The public half; more is put behind its members: ",\"kid\":\"one\"". The caller frees it. */
char *signer_jwk(const struct signer *signer, const char *more);
/* A token of these two JSON texts; pss: RSA by that. The caller frees it. */
char *signer_token(const struct signer *signer, bool pss, const char *header, const char *claims);

#endif
