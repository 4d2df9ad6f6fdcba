/* SPDX-License-Identifier: Apache-2.0 */
/* Moments as people write them on the command line. */
#ifndef CLI_MOMENT_H
#define CLI_MOMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

/* "2026-11-21T09:30:00Z", with any offset, or "+2h" from now. what names it in the error, hint is the remedy.
 */
bool moment_read(const char *what, const char *text, const char *hint, int64_t *ret_wall_ms, struct err *err);

/* As the API writes it. */
json_t *moment_json(int64_t wall_ms);

#endif
