/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes files that are too large for memory, by reading what is on disk now, up to the end. */
#include "daemon/backup/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text.h"

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

bool digest_file(const char *path, int64_t *ret_size, char ret_hash[HASH_HEX + 1], struct err *err)
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
