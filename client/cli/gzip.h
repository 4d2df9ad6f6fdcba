/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are packed with gzip, as a whole. */
#ifndef CLI_GZIP_H
#define CLI_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"
#include "proto/base/text.h"

/* Does the name say that the file is packed: does it end in ".gz"? */
bool gzip_is_named(const char *path);
/* Appends what the file holds, which is not more than max bytes; a file that is not packed as it is. */
bool gzip_read(const char *path, size_t max, struct text *out, struct err *err);
/* Appends the bytes, packed. */
void gzip_pack(const void *bytes, size_t length, struct text *out);

#endif
