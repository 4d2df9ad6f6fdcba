/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are put beside a job and named by their SHA-256. */
#ifndef CLI_BLOB_H
#define CLI_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/crypto/hash.h"

/* Hashes the file from its beginning. name is for errors. */
bool blob_hash_file(FILE *file, const char *name, char ret_hex[HASH_HEX + 1], size_t *ret_length,
                    struct err *err);

/* true when the controller has it already; an answer that does not come means no. */
bool blob_is_there(struct api *api, const char hex[HASH_HEX + 1]);

/* Sends all of a file of that length, or bytes, unless the controller has them. With api NULL nothing is
 * sent. */
bool blob_put_file(struct api *api, const char hex[HASH_HEX + 1], FILE *file, size_t length, struct err *err);
bool blob_put_bytes(struct api *api, const void *bytes, size_t length, char ret_hex[HASH_HEX + 1],
                    struct err *err);

#endif
