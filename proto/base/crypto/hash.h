/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, by Nettle. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

#define HASH_BYTES 32
#define HASH_HEX   64

void hash_bytes(const void *bytes, size_t length, uint8_t out[HASH_BYTES]);
void hash_hex(const void *bytes, size_t length, char out[HASH_HEX + 1]);

/* HMAC-SHA-256. */
void hash_keyed(const void *key, size_t key_length, const void *bytes, size_t length,
                uint8_t out[HASH_BYTES]);

/* MD5 in hex: proves nothing, but stores of objects name the parts of an upload by it. */
#define HASH_MD5_HEX 32
void hash_md5_hex(const void *bytes, size_t length, char out[HASH_MD5_HEX + 1]);

/* Incremental: create, update, then finish, which frees it. */
struct hash;
struct hash *hash_create(void);
void hash_update(struct hash *hash, const void *bytes, size_t length);
void hash_finish(struct hash *hash, uint8_t out[HASH_BYTES]);

/* The size and the hash, in hex, of a file of any size: of the bytes on disk now, up to the end. */
bool hash_file(const char *path, int64_t *ret_size, char ret_hash[HASH_HEX + 1], struct err *err);

/* Compares in constant time. */
bool hash_equal(const uint8_t a[HASH_BYTES], const uint8_t b[HASH_BYTES]);

#endif
