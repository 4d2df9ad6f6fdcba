/* SPDX-License-Identifier: Apache-2.0 */
/* Makes files below a folder, at paths that are not trusted. */
#ifndef AGENT_STAGE_FILE_H
#define AGENT_STAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

/* Makes and opens an empty file for writing, with the folders on the way to it. The path is relative, without
 * empty, "." and ".." parts; links are not followed. -1 on error: ERR_FIELD when no folder with
 * the same content could have the file. */
int stage_file_open(int folder, const char *path, bool executable, struct err *err);

/* Makes a file of the agent's own, or replaces its content, without a sync. */
bool stage_file_put(const char *path, const void *bytes, size_t length, struct err *err);

/* Writes all bytes. */
bool stage_file_write(int file, const void *bytes, size_t length, const char *path, struct err *err);

#endif
