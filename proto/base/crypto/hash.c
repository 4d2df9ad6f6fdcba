/* SPDX-License-Identifier: Apache-2.0 */
/* Computes SHA-256 over bytes in memory, whole or in pieces, and over files. It uses Nettle, the library
 * below GnuTLS, because Nettle's state lives on the stack, which is cheap for one hash a request. */
#include "proto/base/crypto/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/hmac.h>
#include <nettle/md5.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

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

void hash_keyed(const void *key, size_t key_length, const void *bytes, size_t length, uint8_t out[HASH_BYTES])
{
    struct hmac_sha256_ctx state;
    hmac_sha256_set_key(&state, key_length, key);
    hmac_sha256_update(&state, length, bytes);
    hmac_sha256_digest(&state, HASH_BYTES, out);
    explicit_bzero(&state, sizeof state);
}

void hash_md5_hex(const void *bytes, size_t length, char out[HASH_MD5_HEX + 1])
{
    uint8_t digest[MD5_DIGEST_SIZE];
    struct md5_ctx state;
    md5_init(&state);
    md5_update(&state, length, bytes);
    md5_digest(&state, sizeof digest, digest);
    text_to_hex(digest, sizeof digest, out);
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

/* --- files ---------------------------------------------------------------------------------------------- */

#define PIECE_BYTES (256 * 1024)

static bool read_all(int fd, struct hash *hash, int64_t *ret_size)
{
    autofree char *piece = xalloc(PIECE_BYTES);
    int64_t size = 0;
    ssize_t got;
    while ((got = read(fd, piece, PIECE_BYTES)) > 0 || (got < 0 && errno == EINTR)) {
        hash_update(hash, piece, got > 0 ? (size_t)got : 0);
        size += got > 0 ? got : 0;
    }
    *ret_size = size;
    return got == 0;
}

bool hash_file(const char *path, int64_t *ret_size, char ret_hash[HASH_HEX + 1], struct err *err)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return err_errno(err, "cannot open %s", path);
    }
    uint8_t digest[HASH_BYTES];
    struct hash *hash = hash_create();
    bool read = read_all(fd, hash, ret_size);
    int failure = errno;
    hash_finish(hash, digest);
    text_to_hex(digest, sizeof digest, ret_hash);
    errno = failure;
    return read || err_errno(err, "cannot read %s", path);
}
