/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements files of pip, as the nodes can use them. */
#ifndef CLI_REQUIREMENTS_H
#define CLI_REQUIREMENTS_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/err.h"

/* Return the lines of a file, or of an array whose local files are named from folder: an array of strings,
 * without comments, empty lines and inclusions. A line that nodes cannot install is ERR_USAGE, with the
 * remedy. New reference; NULL on failure. Errors name `field`. */
json_t *requirements_read(const char *path, const char *field, struct err *err);
json_t *requirements_take(const char *folder, const json_t *lines, const char *field, struct err *err);

#endif
