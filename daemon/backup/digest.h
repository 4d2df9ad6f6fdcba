/* SPDX-License-Identifier: Apache-2.0 */
/* Size and SHA-256 of a file of any size. */
#ifndef BACKUP_DIGEST_H
#define BACKUP_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/hash.h"

bool digest_file(const char *path, int64_t *ret_size, char ret_hash[HASH_HEX + 1], struct err *err);

#endif
