/* SPDX-License-Identifier: Apache-2.0 */
/* Reads members of requests: tolerant of the spellings of numbers by clients of all versions, strict
 * otherwise. Callers check the values. */
#include "daemon/mlflow/call/field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

static const json_t *member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

static void wrong(struct call *call, const char *name, const char *wanted)
{
    call_refuse(call, "Invalid value for parameter '%s': it must be %s.", name, wanted);
}

static void missing(struct call *call, const char *name)
{
    call_refuse(call, "Missing value for required parameter '%s'.", name);
}

const char *field_text(struct call *call, const json_t *object, const char *name, const char *absent)
{
    const json_t *value = member(object, name);
    if (value != NULL && !json_is_string(value)) {
        wrong(call, name, "a string");
    }
    return json_is_string(value) ? json_string_value(value) : absent;
}

static bool whole(const json_t *value, int64_t *ret_value)
{
    if (json_is_integer(value)) {
        *ret_value = json_integer_value(value);
        return true;
    }
    if (json_is_real(value)) {
        double number = json_real_value(value);
        if (number != floor(number) || fabs(number) > 9007199254740992.0) {
            return false;
        }
        *ret_value = (int64_t)number;
        return true;
    }
    return json_is_string(value) && text_to_int(json_string_value(value), INT64_MIN, INT64_MAX, ret_value);
}

int64_t field_int(struct call *call, const json_t *object, const char *name, int64_t absent)
{
    const json_t *value = member(object, name);
    if (value != NULL && !whole(value, &absent)) {
        wrong(call, name, "a whole number of 64 bits");
    }
    return absent;
}

static bool number_of_text(const char *string, double *ret_value)
{
    static const struct {
        const char *name;
        double value;
    } names[] = {
        {"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY},
        {"nan", NAN}, {"inf", INFINITY},      {"-inf", -INFINITY},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(string, names[i].name) == 0) {
            *ret_value = names[i].value;
            return true;
        }
    }
    char *rest;
    double value = strtod(string, &rest);
    if (string[0] == '\0' || *rest != '\0' || strspn(string, "+-.0123456789eE") != strlen(string)) {
        return false;
    }
    *ret_value = value;
    return true;
}

double field_double(struct call *call, const json_t *object, const char *name)
{
    const json_t *value = member(object, name);
    double number = json_number_value(value);
    if (value != NULL && !json_is_number(value) &&
        !(json_is_string(value) && number_of_text(json_string_value(value), &number))) {
        wrong(call, name, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"");
    }
    return number;
}

static void wrong_word(struct call *call, const char *name, const char *const *words, size_t count)
{
    autotext struct text wanted = {0};
    text_append(&wanted, "one of");
    for (size_t i = 0; i < count; i++) {
        text_printf(&wanted, "%s %s", i > 0 ? "," : "", words[i]);
    }
    wrong(call, name, wanted.bytes);
}

size_t field_word(struct call *call, const char *name, const char *const *words, size_t count, size_t absent)
{
    const json_t *value = member(call->request.body, name);
    int64_t number;
    if (value == NULL) {
        return absent;
    }
    if (whole(value, &number) && number >= 1 && number <= (int64_t)count) {
        return (size_t)number - 1;
    }
    for (size_t i = 0; json_is_string(value) && i < count; i++) {
        if (strcmp(json_string_value(value), words[i]) == 0) {
            return i;
        }
    }
    wrong_word(call, name, words, count);
    return absent;
}

/* Whether the value is an array whose items have the type. */
static bool is_array_of(const json_t *value, json_type type)
{
    size_t i;
    const json_t *item;
    json_array_foreach (value, i, item) {
        if (json_typeof(item) != type) {
            return false;
        }
    }
    return json_is_array(value);
}

const json_t *field_objects(struct call *call, const json_t *object, const char *name)
{
    const json_t *value = member(object, name);
    if (value == NULL || is_array_of(value, JSON_OBJECT)) {
        return value;
    }
    wrong(call, name, "an array of objects");
    return NULL;
}

json_t *field_texts(struct call *call, const char *name)
{
    const json_t *value = member(call->request.body, name);
    if (value == NULL) {
        return json_array();
    }
    if (json_is_string(value)) {
        return json_pack("[O]", value);
    }
    if (is_array_of(value, JSON_STRING)) {
        return json_copy((json_t *)(uintptr_t)value); /* shallow; json_copy should take a const pointer */
    }
    wrong(call, name, "an array of strings");
    return json_array();
}

const char *field_need_text(struct call *call, const json_t *object, const char *name)
{
    const char *value = field_text(call, object, name, NULL);
    if (value == NULL) {
        missing(call, name);
    }
    return value != NULL ? value : "";
}

int64_t field_need_int(struct call *call, const json_t *object, const char *name)
{
    if (member(object, name) == NULL) {
        missing(call, name);
    }
    return field_int(call, object, name, 0);
}

const char *field_need_run_id(struct call *call)
{
    const char *run_id = field_text(call, call->request.body, "run_id", "");
    if (run_id[0] == '\0') {
        run_id = field_text(call, call->request.body, "run_uuid", "");
    }
    if (run_id[0] == '\0') {
        missing(call, "run_id");
    }
    return run_id;
}

int64_t field_max_results(struct call *call, int64_t absent, int64_t limit)
{
    int64_t value = field_int(call, call->request.body, "max_results", absent);
    if (value < 1 || value > limit) {
        call_refuse(call,
                    "Invalid value for parameter 'max_results': it must be from 1 to %lld, but is %lld.",
                    (long long)limit, (long long)value);
    }
    return value;
}

/* Reads exactly count numbers with dots between them. */
static bool split_numbers(char *part, int64_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *dot = strchr(part, '.');
        if ((dot == NULL) != (i + 1 == count)) {
            return false;
        }
        if (dot != NULL) {
            *dot = '\0';
        }
        if (!text_to_int(part, INT64_MIN, INT64_MAX, &out[i])) {
            return false;
        }
        part = dot != NULL ? dot + 1 : part;
    }
    return true;
}

void field_page_token(struct call *call, int64_t *out, size_t count)
{
    const char *token = field_text(call, call->request.body, "page_token", "");
    autofree char *copy = xstrdup(token);
    if (token[0] != '\0' && !split_numbers(copy, out, count)) {
        call_refuse(call, "Invalid page_token '%.100s': it is not one of this list.", token);
    }
}

void page_token_append(struct text *out, const int64_t *numbers, size_t count)
{
    text_append(out, ",\"next_page_token\":\"");
    for (size_t i = 0; i < count; i++) {
        text_append(out, i > 0 ? "." : "");
        text_append_int(out, numbers[i]);
    }
    text_append(out, "\"");
}
