/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes single members of JSON objects as members of our structs. Output is UTF-8, and errors name
 * the member. Messages, specs and views decide which members exist. */
#include "proto/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"

void member_put(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new_nocheck(object, name, value) != 0) {
        abort();
    }
}

/* A JSON string with U+FFFD for each byte that is not UTF-8. */
static json_t *mended_string(const char *value)
{
    autotext struct text quoted = {0};
    text_json_string(&quoted, value, strlen(value));
    return json_loadb(quoted.bytes, quoted.length, JSON_DECODE_ANY, NULL);
}

void member_put_text(json_t *object, const char *name, const char *value)
{
    if (value == NULL) {
        return;
    }
    json_t *string = json_string(value);
    member_put(object, name, string != NULL ? string : mended_string(value));
}

void member_put_int(json_t *object, const char *name, int64_t value)
{
    member_put(object, name, json_integer(value));
}

void member_put_bool(json_t *object, const char *name, bool value)
{
    member_put(object, name, json_boolean(value));
}

void member_write_text(struct text *out, const char *key, const char *value)
{
    text_append(out, key);
    if (value == NULL) {
        text_append(out, "null");
    } else {
        text_json_string(out, value, strlen(value));
    }
}

void member_write_int(struct text *out, const char *key, int64_t value)
{
    text_append(out, key);
    text_append_int(out, value);
}

void member_write_int_or_null(struct text *out, const char *key, int64_t value, int64_t none)
{
    if (value == none) {
        member_write_text(out, key, NULL);
    } else {
        member_write_int(out, key, value);
    }
}

void member_write_bool(struct text *out, const char *key, bool value)
{
    text_append(out, key);
    text_append(out, value ? "true" : "false");
}

void member_write_time(struct text *out, const char *key, int64_t wall_ms)
{
    char at[32];
    clock_format_wall(wall_ms, at, sizeof at);
    member_write_text(out, key, wall_ms != 0 ? at : NULL);
}

void member_separate(struct text *out)
{
    char last = out->length > 0 ? out->bytes[out->length - 1] : '[';
    text_append(out, last == '[' || last == '{' ? "" : ",");
}

bool member_holder(const json_t *json, struct err *err)
{
    return json_is_object(json) || err_set(err, ERR_MALFORMED, "the body must be a JSON object");
}

bool member_need_attempt_id(const json_t *object, const char *name, uint64_t *ret_attempt_id, struct err *err)
{
    int64_t attempt_id;
    if (!json_need_int(object, name, 1, INT64_MAX, &attempt_id, err)) {
        return false;
    }
    *ret_attempt_id = (uint64_t)attempt_id;
    return true;
}

bool member_read_array(const json_t *object, const char *name, size_t max, json_t **ret_array,
                       struct err *err)
{
    json_t *array = json_object_get(object, name);
    if (array == NULL || json_is_null(array)) {
        *ret_array = NULL;
        return true;
    }
    if (!json_is_array(array)) {
        return err_field(err, ERR_FIELD, name, NULL, "%s must be an array", name);
    }
    if (json_array_size(array) > max) {
        return err_field(err, ERR_FIELD, name, NULL, "%s has %zu items, the limit is %zu", name,
                         json_array_size(array), max);
    }
    *ret_array = array;
    return true;
}

bool member_err_inside(struct err *err, const char *array, size_t index)
{
    if (err == NULL) {
        return false;
    }
    struct err inner = *err;
    bool member = inner.field[0] != '\0';
    autofree char *field = xprintf("%s[%zu]%s%s", array, index, member ? "." : "", inner.field);
    return err_field(err, inner.code, field, inner.hint, "%s[%zu]%s%s", array, index, member ? "." : " ",
                     inner.text);
}

#define DEFINE_READ(type)                                                                                    \
    bool member_read_##type(const json_t *object, const char *name, bool need, enum type *ret_value,         \
                            struct err *err)                                                                 \
    {                                                                                                        \
        const char *text = NULL;                                                                             \
        if (need ? !json_need_text(object, name, &text, err) : !json_read_text(object, name, &text, err)) {  \
            return false;                                                                                    \
        }                                                                                                    \
        if (text != NULL && !type##_from_text(text, ret_value)) {                                            \
            return err_field(err, ERR_FIELD, name, NULL, "%s is not known: %s", name, text);                 \
        }                                                                                                    \
        return true;                                                                                         \
    }
DEFINE_READ(job_state)
DEFINE_READ(member_state)
DEFINE_READ(node_state)
DEFINE_READ(cause)
DEFINE_READ(event_kind)
DEFINE_READ(order_phase)
DEFINE_READ(report_kind)
DEFINE_READ(staging_state)
DEFINE_READ(result_kind)
DEFINE_READ(role)
DEFINE_READ(stream)
DEFINE_READ(pool_kind)
DEFINE_READ(isolation)
DEFINE_READ(early_signal)

void member_release(const void *pointer)
{
    free((void *)(uintptr_t)pointer);
}
