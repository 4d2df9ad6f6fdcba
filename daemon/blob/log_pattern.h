/* SPDX-License-Identifier: Apache-2.0 */
/* What a search looks for in a line of output: a text, a regular expression, or the signs of an error. */
#ifndef BLOB_LOG_PATTERN_H
#define BLOB_LOG_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

struct log_pattern;

/* A text, or an extended regular expression of POSIX; ignore_case: of ASCII letters. ERR_FIELD for `q` when
 * it is empty, too long, of several lines, or an expression that is wrong or whose work has no bound. */
struct log_pattern *log_pattern_create(const char *text, bool regex, bool ignore_case, struct err *err);
/* Lines that look like an error. */
struct log_pattern *log_pattern_errors(void);
void log_pattern_destroy(struct log_pattern *pattern);

/* Whether the line, of at most LIMIT_SEARCH_LINE_BYTES, has it. One thread at a time. */
bool log_pattern_finds(struct log_pattern *pattern, const char *line, size_t length);

#endif
