/* SPDX-License-Identifier: Apache-2.0 */
/* Parses JSON strictly, writes it compactly, and reads single members. Input nested deeper than
 * LIMIT_JSON_DEPTH never reaches jansson's recursive parser, and errors name the place or the member. Callers
 * limit the size of bodies and handle unknown fields. */
#include "proto/base/text/json.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

void json_begin(void)
{
    json_set_alloc_funcs(xalloc, free);
}

/* The position of a scan, for messages. */
struct place {
    unsigned line;
    size_t line_start;
};

/* The index of the quote that ends the string starting at `at`; length when the string does not end. */
static size_t string_end(const char *bytes, size_t length, size_t at)
{
    for (at++; at < length && bytes[at] != '"'; at++) {
        at += bytes[at] == '\\';
    }
    return at < length ? at : length;
}

/* Finds the first byte that must not reach the parser: a NUL, or the bracket that goes one level too deep.
 * Returns length when there is none. Malformed JSON needs no check here: the parser stops at its first fault,
 * and up to there scan and parser see the same depth. */
static size_t find_refused(const char *bytes, size_t length, struct place *place)
{
    int depth = 0;
    for (size_t at = 0; at < length; at++) {
        switch (bytes[at]) {
        case '"':
            at = string_end(bytes, length, at);
            break;
        case '[':
        case '{':
            if (++depth > LIMIT_JSON_DEPTH) {
                return at;
            }
            break;
        case ']':
        case '}':
            depth--;
            break;
        case '\n':
            place->line++;
            place->line_start = at + 1;
            break;
        default:
            break;
        }
    }
    return length;
}

json_t *json_parse(const char *bytes, size_t length, struct err *err)
{
    if (length > 0 && memchr(bytes, '\0', length) != NULL) {
        err_set(err, ERR_MALFORMED, "the JSON text holds a NUL byte");
        return NULL;
    }
    struct place place = {.line = 1};
    size_t refused = find_refused(bytes, length, &place);
    if (refused < length) {
        err_set(err, ERR_MALFORMED, "line %u, column %zu: JSON is nested deeper than %d levels", place.line,
                refused - place.line_start + 1, LIMIT_JSON_DEPTH);
        return NULL;
    }
    json_error_t fault;
    json_t *value = json_loadb(bytes, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &fault);
    if (value == NULL) {
        err_set(err, ERR_MALFORMED, "line %d, column %d: %s", fault.line, fault.column, fault.text);
    }
    return value;
}

/* Whether the value contains numbers with decimals. */
static bool has_reals(const json_t *value)
{
    const char *name;
    size_t index;
    json_t *item;
    bool found = json_is_real(value);
    json_object_foreach ((json_t *)(uintptr_t)value, name, item) {
        found = found || has_reals(item);
    }
    json_array_foreach (value, index, item) {
        found = found || has_reals(item);
    }
    return found;
}

/* Writes 0.1, not 0.10000000000000001: 15 digits where they read back as the same numbers, otherwise 17. */
char *json_text(const json_t *value)
{
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY;
    if (has_reals(value)) {
        char *brief = json_dumps(value, flags | JSON_REAL_PRECISION(15));
        autojson json_t *again = brief != NULL ? json_loads(brief, JSON_DECODE_ANY, NULL) : NULL;
        if (again != NULL && json_equal(again, value)) {
            return brief;
        }
        free(brief);
    }
    char *text = json_dumps(value, flags);
    if (text == NULL) {
        abort();
    }
    return text;
}

const char *json_string_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

json_t *json_object_in(json_t *object, const char *name)
{
    if (!json_is_object(json_object_get(object, name))) {
        json_object_set_new(object, name, json_object());
    }
    return json_object_get(object, name);
}

json_t *json_seconds(int64_t ms)
{
    return ms % 1000 == 0 ? json_integer(ms / 1000) : json_real((double)ms / 1000);
}

/* The member; NULL when it is absent or null. */
static const json_t *member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

static bool refuse(struct err *err, const char *name, const char *wanted)
{
    return err_field(err, ERR_FIELD, name, NULL, "%s must be %s", name, wanted);
}

static bool refuse_missing(struct err *err, const char *name)
{
    return err_field(err, ERR_FIELD, name, NULL, "%s is missing", name);
}

bool json_read_text(const json_t *object, const char *name, const char **ret_value, struct err *err)
{
    const json_t *value = member(object, name);
    if (value == NULL) {
        return true;
    }
    if (!json_is_string(value)) {
        return refuse(err, name, "a string");
    }
    *ret_value = json_string_value(value);
    return true;
}

bool json_whole(const json_t *value, int64_t *ret_value)
{
    const double exact = 9007199254740992.0; /* 2^53: beyond it a double stands for several integers */
    if (json_is_integer(value)) {
        *ret_value = json_integer_value(value);
        return true;
    }
    double number = json_real_value(value);
    if (!json_is_real(value) || number != trunc(number) || fabs(number) > exact) {
        return false;
    }
    *ret_value = (int64_t)number;
    return true;
}

bool json_read_int(const json_t *object, const char *name, int64_t min, int64_t max, int64_t *ret_value,
                   struct err *err)
{
    const json_t *value = member(object, name);
    if (value == NULL) {
        return true;
    }
    int64_t number;
    if (!json_whole(value, &number) || number < min || number > max) {
        return err_field(err, ERR_FIELD, name, NULL, "%s must be a whole number from %lld to %lld", name,
                         (long long)min, (long long)max);
    }
    *ret_value = number;
    return true;
}

bool json_read_bool(const json_t *object, const char *name, bool *ret_value, struct err *err)
{
    const json_t *value = member(object, name);
    if (value == NULL) {
        return true;
    }
    if (!json_is_boolean(value)) {
        return refuse(err, name, "true or false");
    }
    *ret_value = json_is_true(value);
    return true;
}

/* Converts seconds to milliseconds; false when the value is no number or does not fit. Whole seconds are
 * converted exactly. */
static bool seconds_to_ms(const json_t *value, int64_t *ret_ms)
{
    if (json_is_integer(value)) {
        return !__builtin_mul_overflow(json_integer_value(value), 1000, ret_ms);
    }
    double ms = round(json_number_value(value) * 1000);
    if (!json_is_real(value) || !(fabs(ms) < 9e18)) {
        return false;
    }
    *ret_ms = (int64_t)ms;
    return true;
}

bool json_read_seconds(const json_t *object, const char *name, int64_t min_ms, int64_t max_ms,
                       int64_t *ret_ms, struct err *err)
{
    const json_t *value = member(object, name);
    if (value == NULL) {
        return true;
    }
    int64_t ms = 0;
    if (!seconds_to_ms(value, &ms) || ms < min_ms || ms > max_ms) {
        return err_field(err, ERR_FIELD, name, NULL, "%s must be a number of seconds from %.15g to %.15g",
                         name, (double)min_ms / 1000, (double)max_ms / 1000);
    }
    *ret_ms = ms;
    return true;
}

bool json_need_text(const json_t *object, const char *name, const char **ret_value, struct err *err)
{
    if (member(object, name) == NULL) {
        return refuse_missing(err, name);
    }
    return json_read_text(object, name, ret_value, err);
}

bool json_need_int(const json_t *object, const char *name, int64_t min, int64_t max, int64_t *ret_value,
                   struct err *err)
{
    if (member(object, name) == NULL) {
        return refuse_missing(err, name);
    }
    return json_read_int(object, name, min, max, ret_value, err);
}
