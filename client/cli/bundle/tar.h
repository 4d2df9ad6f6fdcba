/* SPDX-License-Identifier: Apache-2.0 */
/* A tar archive that is written: POSIX ustar, with pax records for names that do not fit. */
#ifndef CLI_TAR_H
#define CLI_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "proto/base/err.h"
#include "proto/base/hash.h"

struct tar;

/* Writes into out, which is the caller's. */
struct tar *tar_create(FILE *out);
void tar_destroy(struct tar *tar);

/* Each adds one entry; paths are relative. Nothing tells who made the archive or when: owners are 0, folders
 * and links have no time, and folders can be filled by who unpacks them. */
bool tar_add_folder(struct tar *tar, const char *path, mode_t mode, struct err *err);
bool tar_add_link(struct tar *tar, const char *path, const char *target, struct err *err);
/* From the file as many bytes are read as size says; ERR_IO when there are fewer. */
bool tar_add_file(struct tar *tar, const char *path, FILE *file, int64_t size, mode_t mode,
                  int64_t modified_s, struct err *err);

/* Ends the archive; the SHA-256 of all of it, and its length. */
bool tar_end(struct tar *tar, char ret_hex[HASH_HEX + 1], size_t *ret_length, struct err *err);

static inline void cleanup_tar(struct tar **tar)
{
    tar_destroy(*tar);
}
#define autotar __attribute__((cleanup(cleanup_tar)))

#endif
