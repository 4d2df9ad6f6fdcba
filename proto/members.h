/* SPDX-License-Identifier: Apache-2.0 */
/* Readers and writers for the members of a JSON object, as this folder needs them beyond
 * proto/base/text/json.h. Running out of memory aborts. */
#ifndef PROTO_MEMBERS_H
#define PROTO_MEMBERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/states.h"

/* Writers of one member; name is ASCII. A NULL text writes nothing; bytes that are not UTF-8 become U+FFFD.
 * member_put takes over the value. */
void member_put(json_t *object, const char *name, json_t *value);
void member_put_text(json_t *object, const char *name, const char *value);
void member_put_int(json_t *object, const char *name, int64_t value);
void member_put_bool(json_t *object, const char *name, bool value);

/* Writers of one member straight into a text, for frequent answers. key is everything before the value:
 * ",\"name\":". A NULL string, and a number equal to none, become null. */
void member_write_text(struct text *out, const char *key, const char *value);
void member_write_int(struct text *out, const char *key, int64_t value);
void member_write_int_or_null(struct text *out, const char *key, int64_t value, int64_t none);
void member_write_bool(struct text *out, const char *key, bool value);
/* RFC 3339; 0 becomes null. */
void member_write_time(struct text *out, const char *key, int64_t wall_ms);
/* A comma, unless an array or an object has just begun. */
void member_separate(struct text *out);

/* Checks that json is an object; otherwise, also for NULL, ERR_MALFORMED. */
bool member_holder(const json_t *json, struct err *err);

/* A required member in 1..INT64_MAX. */
bool member_need_attempt_id(const json_t *object, const char *name, uint64_t *ret_attempt_id,
                            struct err *err);

/* Reads the member as an array of at most max items. NULL, and true, when the member is absent or null. */
bool member_read_array(const json_t *object, const char *name, size_t max, json_t **ret_array,
                       struct err *err);

/* Prefixes an error about a member with its place: "rank" becomes "ranks[2].rank", an empty field becomes
 * "ranks[2]". The text must begin with the member, or with a verb if there is no field. Returns false. */
bool member_err_inside(struct err *err, const char *array, size_t index);

/* Readers of a spelling of proto/states.h. need: an absent member is ERR_FIELD; without it an absent member
 * leaves *ret_value as it is. */
#define MEMBER_DECLARE(type)                                                                                 \
    bool member_read_##type(const json_t *object, const char *name, bool need, enum type *ret_value,         \
                            struct err *err);
MEMBER_DECLARE(job_state)
MEMBER_DECLARE(member_state)
MEMBER_DECLARE(node_state)
MEMBER_DECLARE(cause)
MEMBER_DECLARE(event_kind)
MEMBER_DECLARE(order_phase)
MEMBER_DECLARE(report_kind)
MEMBER_DECLARE(staging_state)
MEMBER_DECLARE(result_kind)
MEMBER_DECLARE(role)
MEMBER_DECLARE(stream)
MEMBER_DECLARE(pool_kind)
MEMBER_DECLARE(isolation)
MEMBER_DECLARE(early_signal)

/* Frees memory that we allocated and expose as const. */
void member_release(const void *pointer);

#endif
