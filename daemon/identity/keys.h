/* SPDX-License-Identifier: Apache-2.0 */
/* The public keys of an identity provider, and the check of what it has signed. */
#ifndef IDENTITY_KEYS_H
#define IDENTITY_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

/* The algorithms of signatures that are taken: X(name, JWS). A name that is not here is refused: "none", and
 * those with a shared secret, for which anybody could take a public key. */
#define SIGNATURES(X)                                                                                        \
    X(RS256, "RS256")                                                                                        \
    X(PS256, "PS256")                                                                                        \
    X(ES256, "ES256")                                                                                        \
    X(EDDSA, "EdDSA")

#define AS_ENUM_SIGNATURE(name, text) SIGNATURE_##name,
enum signature { SIGNATURES(AS_ENUM_SIGNATURE) SIGNATURE_COUNT };
#undef AS_ENUM_SIGNATURE

bool signature_from_text(const char *text, enum signature *ret_signature);

struct keys;

/* Reads a JWK set. Keys that are of another kind, too weak or not sound are left out. NULL with
 * ERR_UNAVAILABLE: none is left. */
struct keys *keys_parse(const char *bytes, size_t length, struct err *err);
void keys_destroy(struct keys *keys);
size_t keys_count(const struct keys *keys);

enum keys_answer { KEYS_FIT, KEYS_WRONG, KEYS_UNKNOWN };

/* Whether a key of that id made the signature. id NULL: the only one that can make such signatures.
 * KEYS_UNKNOWN: there is no such key. */
enum keys_answer keys_check(const struct keys *keys, enum signature signature, const char *id,
                            const char *signed_bytes, size_t signed_length, const uint8_t *bytes,
                            size_t length);

#endif
