/* SPDX-License-Identifier: Apache-2.0 */
/* The archive of a tree: POSIX ustar, with pax records for names that do not fit. */
#ifndef CLI_TAR_H
#define CLI_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/cli/bundle/tree.h"
#include "proto/base/err.h"
#include "proto/base/crypto/hash.h"

/* Writes the tree of the folder root into out, and returns the archive's SHA-256 and length. Nothing in it
 * tells who made it or when: owners are 0, folders and links have no time, and their owner can fill folders.
 * ERR_IO for a file that is shorter than its entry says. */
bool tar_pack(const char *root, const struct tree *tree, FILE *out, char ret_hex[HASH_HEX + 1],
              size_t *ret_length, struct err *err);

#endif
