/* SPDX-License-Identifier: Apache-2.0 */
/* Reads members of requests: tolerant of the spellings of numbers by clients of all versions, strict
 * otherwise. Callers check the values. */
#include "daemon/mlflow/field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const json_t *member(const json_t *body, const char *name)
{
    const json_t *value = json_object_get(body, name);
    return json_is_null(value) ? NULL : value;
}

static bool wrong(const char *name, const char *wanted, struct tracking_error *error)
{
    return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                         "Invalid value for parameter '%s': it must be %s.", name, wanted);
}

static bool missing(const char *name, struct tracking_error *error)
{
    return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                         "Missing value for required parameter '%s'.", name);
}

bool field_text(const json_t *body, const char *name, const char **ret_value, struct tracking_error *error)
{
    const json_t *value = member(body, name);
    if (value == NULL) {
        return true;
    }
    if (!json_is_string(value)) {
        return wrong(name, "a string", error);
    }
    *ret_value = json_string_value(value);
    return true;
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

bool field_int(const json_t *body, const char *name, int64_t *ret_value, struct tracking_error *error)
{
    const json_t *value = member(body, name);
    return value == NULL || whole(value, ret_value) || wrong(name, "a whole number of 64 bits", error);
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

bool field_double(const json_t *body, const char *name, double *ret_value, struct tracking_error *error)
{
    const json_t *value = member(body, name);
    if (value == NULL) {
        return true;
    }
    if (json_is_number(value)) {
        *ret_value = json_number_value(value);
        return true;
    }
    return (json_is_string(value) && number_of_text(json_string_value(value), ret_value)) ||
           wrong(name, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"", error);
}

bool field_word(const json_t *body, const char *name, const char *const *words, size_t count,
                size_t *ret_index, struct tracking_error *error)
{
    const json_t *value = member(body, name);
    if (value == NULL) {
        return true;
    }
    int64_t number;
    if (whole(value, &number) && number >= 1 && number <= (int64_t)count) {
        *ret_index = (size_t)number - 1;
        return true;
    }
    for (size_t i = 0; json_is_string(value) && i < count; i++) {
        if (strcmp(json_string_value(value), words[i]) == 0) {
            *ret_index = i;
            return true;
        }
    }
    autotext struct text wanted = {0};
    text_append(&wanted, "one of");
    for (size_t i = 0; i < count; i++) {
        text_printf(&wanted, "%s %s", i > 0 ? "," : "", words[i]);
    }
    return wrong(name, wanted.bytes, error);
}

bool field_objects(const json_t *body, const char *name, const json_t **ret_value,
                   struct tracking_error *error)
{
    const json_t *value = member(body, name);
    if (value == NULL) {
        return true;
    }
    if (!json_is_array(value)) {
        return wrong(name, "an array of objects", error);
    }
    size_t i;
    const json_t *item;
    json_array_foreach (value, i, item) {
        if (!json_is_object(item)) {
            return wrong(name, "an array of objects", error);
        }
    }
    *ret_value = value;
    return true;
}

bool field_texts(const json_t *body, const char *name, json_t **ret_value, struct tracking_error *error)
{
    const json_t *value = member(body, name);
    if (value == NULL) {
        return true;
    }
    if (json_is_string(value)) {
        *ret_value = json_array();
        json_array_append_new(*ret_value, json_string(json_string_value(value)));
        return true;
    }
    if (!json_is_array(value)) {
        return wrong(name, "an array of strings", error);
    }
    size_t i;
    const json_t *item;
    json_array_foreach (value, i, item) {
        if (!json_is_string(item)) {
            return wrong(name, "an array of strings", error);
        }
    }
    *ret_value = json_copy((json_t *)(uintptr_t)value); /* shallow; json_copy should take a const pointer */
    return true;
}

bool field_need_text(const json_t *body, const char *name, const char **ret_value,
                     struct tracking_error *error)
{
    const char *value = NULL;
    if (!field_text(body, name, &value, error)) {
        return false;
    }
    if (value == NULL) {
        return missing(name, error);
    }
    *ret_value = value;
    return true;
}

bool field_need_int(const json_t *body, const char *name, int64_t *ret_value, struct tracking_error *error)
{
    return member(body, name) != NULL ? field_int(body, name, ret_value, error) : missing(name, error);
}

bool field_need_run_id(const json_t *body, const char **ret_run_id, struct tracking_error *error)
{
    const char *run_id = "";
    if (!field_text(body, "run_id", &run_id, error) ||
        (run_id[0] == '\0' && !field_text(body, "run_uuid", &run_id, error))) {
        return false;
    }
    if (run_id[0] == '\0') {
        return missing("run_id", error);
    }
    *ret_run_id = run_id;
    return true;
}

bool field_status(const json_t *body, const char **ret_status, struct tracking_error *error)
{
    static const char *const words[] = {
#define AS_WORD(name) #name,
        TRACKING_STATUSES(AS_WORD)
#undef AS_WORD
    };
    size_t index = sizeof words / sizeof words[0];
    if (!field_word(body, "status", words, index, &index, error)) {
        return false;
    }
    if (index < sizeof words / sizeof words[0]) {
        *ret_status = words[index];
    }
    return true;
}

bool field_max_results(const json_t *body, int64_t standard, int64_t limit, int64_t *ret_value,
                       struct tracking_error *error)
{
    int64_t value = standard;
    if (!field_int(body, "max_results", &value, error)) {
        return false;
    }
    if (value < 1 || value > limit) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "Invalid value for parameter 'max_results': it must be from 1 to %lld, but is "
                             "%lld.",
                             (long long)limit, (long long)value);
    }
    *ret_value = value;
    return true;
}
