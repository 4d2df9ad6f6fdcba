/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the disk has room for more. */
#ifndef HTTP_SPACE_H
#define HTTP_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct space;

/* folder is borrowed. min_free_bytes 0: there is always room. */
struct space *space_create(const char *folder, int64_t min_free_bytes);
void space_destroy(struct space *space);

/* true when something of length bytes may be taken in; ERR_DISK_FULL when less than the margin would be left.
 * The file system is asked once in SPACE_LOOK_MS. */
bool space_allows(struct space *space, int64_t length, int64_t now_ms, struct err *err);

#endif
