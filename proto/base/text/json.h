/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all our uses of jansson: ownership by scope, strict parsing, and errors that name the field. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

static inline void cleanup_json(json_t **value)
{
    json_decref(*value);
}

#define autojson __attribute__((cleanup(cleanup_json)))

/* Call once, before any JSON: makes jansson's allocations end in out_of_memory, too. By itself jansson would
 * drop a member that has no room, or call a text malformed. */
void json_begin(void);

/* Parses exactly one JSON value of length bytes. Refuses duplicate keys and nesting deeper than
 * LIMIT_JSON_DEPTH. The caller owns the value; NULL with ERR_MALFORMED, naming line and column. */
json_t *json_parse(const char *bytes, size_t length, struct err *err);

/* The compact text of a value, which the caller frees. */
char *json_text(const json_t *value);

/* The text of a member, borrowed; NULL where it is none. */
const char *json_string_of(const json_t *object, const char *name);

/* The object that is a member, which is made where it is missing. Borrowed. */
json_t *json_object_in(json_t *object, const char *name);

/* Milliseconds as seconds: a whole number where they are some. New reference. */
json_t *json_seconds(int64_t ms);

/* true for a whole number in any spelling: 1.0 is a whole number to JSON Schema and to some languages. */
bool json_whole(const json_t *value, int64_t *ret_value);

/* Readers of one member. Each returns false with ERR_FIELD, naming the member, if the member has another type
 * or is outside its range. An absent or null member leaves *ret_value as it is. Strings are borrowed from the
 * object. */
bool json_read_text(const json_t *object, const char *name, const char **ret_value, struct err *err);
bool json_read_int(const json_t *object, const char *name, int64_t min, int64_t max, int64_t *ret_value,
                   struct err *err);
bool json_read_bool(const json_t *object, const char *name, bool *ret_value, struct err *err);
/* Reads seconds, whole or fractional, as milliseconds. */
bool json_read_seconds(const json_t *object, const char *name, int64_t min_ms, int64_t max_ms,
                       int64_t *ret_ms, struct err *err);

/* Like the readers above, but an absent member is ERR_FIELD, too. */
bool json_need_text(const json_t *object, const char *name, const char **ret_value, struct err *err);
bool json_need_int(const json_t *object, const char *name, int64_t min, int64_t max, int64_t *ret_value,
                   struct err *err);

#endif
