/* SPDX-License-Identifier: Apache-2.0 */
/* Writes members of the JSON objects of answers. key is everything before the value: ",\"name\":". */
#ifndef CORE_EXPLAIN_FIELD_H
#define CORE_EXPLAIN_FIELD_H

#include <stdint.h>

#include "proto/base/text/text.h"

struct core;

/* NULL becomes null. */
void field_write_text(struct text *out, const char *key, const char *value);
/* A time of the wall clock, RFC 3339. */
void field_write_wall(struct text *out, const char *key, int64_t wall_ms);
/* The same of a time of the core's clock. */
void field_write_time(const struct core *core, struct text *out, const char *key, int64_t ms);
/* Seconds with three decimals. */
void field_write_seconds(struct text *out, const char *key, int64_t ms);

#endif
