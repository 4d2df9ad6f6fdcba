/* SPDX-License-Identifier: Apache-2.0 */
/* Computes SHA-256 over bytes in memory, whole or in pieces. It uses Nettle, the library below GnuTLS,
 * because Nettle's state lives on the stack, which is cheap for one hash a request. */
#include "proto/base/hash.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text.h"

struct hash {
    struct sha256_ctx state;
};

void hash_bytes(const void *bytes, size_t length, uint8_t out[HASH_BYTES])
{
    struct sha256_ctx state;
    sha256_init(&state);
    sha256_update(&state, length, bytes);
    sha256_digest(&state, HASH_BYTES, out);
}

void hash_hex(const void *bytes, size_t length, char out[HASH_HEX + 1])
{
    uint8_t digest[HASH_BYTES];
    hash_bytes(bytes, length, digest);
    text_to_hex(digest, sizeof digest, out);
}

void hash_keyed(const uint8_t key[HASH_BYTES], const void *bytes, size_t length, uint8_t out[HASH_BYTES])
{
    struct hmac_sha256_ctx state;
    hmac_sha256_set_key(&state, HASH_BYTES, key);
    hmac_sha256_update(&state, length, bytes);
    hmac_sha256_digest(&state, HASH_BYTES, out);
    explicit_bzero(&state, sizeof state);
}

struct hash *hash_create(void)
{
    struct hash *hash = xzalloc(sizeof *hash);
    sha256_init(&hash->state);
    return hash;
}

void hash_update(struct hash *hash, const void *bytes, size_t length)
{
    sha256_update(&hash->state, length, bytes);
}

void hash_finish(struct hash *hash, uint8_t out[HASH_BYTES])
{
    sha256_digest(&hash->state, HASH_BYTES, out);
    free(hash);
}

bool hash_equal(const uint8_t a[HASH_BYTES], const uint8_t b[HASH_BYTES])
{
    return memeql_sec(a, b, HASH_BYTES) != 0;
}
