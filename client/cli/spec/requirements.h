/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements files of pip, as the nodes can use them. */
#ifndef CLI_REQUIREMENTS_H
#define CLI_REQUIREMENTS_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/err.h"

/* The lines of a file, or lines that were written by hand with local files named from folder: an array of
 * strings, flat, without comments and empty lines. What nodes cannot install is ERR_USAGE, with the line and
 * the remedy. New reference; NULL on failure. Of `field` errors are about. */
json_t *requirements_read(const char *path, const char *field, struct err *err);
json_t *requirements_take(const char *folder, const json_t *lines, const char *field, struct err *err);

#endif
