/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes where a job may run. Demands that no cluster could ever fulfil are refused. Equal demands become
 * equal texts, in whatever order and form they were written. The core decides which registered nodes fulfil
 * them. */
#include "proto/spec/jobspec_place.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/limits.h"
#include "proto/spec/node_label.h"

/* --- GPU types --- */

static bool refuse_type(struct err *err)
{
    return err_field(err, ERR_FIELD, "gpu_type",
                     "letters, digits, '.', '_' and '-', a letter or digit first; H100|A100 for the first "
                     "of these that fits",
                     "gpu_type must be a name of 1 to %d characters, or up to %d of them", LIMIT_NAME_BYTES,
                     LIMIT_TYPE_ALTERNATIVES);
}

/* Whether this type is one of the alternatives in the text. */
static bool has_type(const char *types, const char *type)
{
    autofree char *copy = xstrdup(types);
    char *rest = copy;
    for (char *word = strsep(&rest, "|"); word != NULL; word = strsep(&rest, "|")) {
        if (strcasecmp(word, type) == 0) {
            return true;
        }
    }
    return false;
}

static bool add_type(const char *type, size_t count, struct text *types, struct err *err)
{
    if (!text_is_name(type, LIMIT_NAME_BYTES) || count == LIMIT_TYPE_ALTERNATIVES) {
        return refuse_type(err);
    }
    if (count > 0 && has_type(types->bytes, type)) {
        return err_field(err, ERR_FIELD, "gpu_type", "name each type once, the one that you prefer first",
                         "gpu_type names %s twice", type);
    }
    text_append(types, count > 0 ? "|" : "");
    text_append(types, type);
    return true;
}

static bool split_types(const char *alternatives, struct text *types, struct err *err)
{
    autofree char *copy = xstrdup(alternatives);
    char *rest = copy;
    size_t count = 0;
    for (char *word = strsep(&rest, "|"); word != NULL; word = strsep(&rest, "|")) {
        if (!add_type(word, count++, types, err)) {
            return false;
        }
    }
    return true;
}

static bool join_types(const json_t *array, struct text *types, struct err *err)
{
    size_t count = json_array_size(array);
    for (size_t i = 0; i < count; i++) {
        const char *type = json_string_value(json_array_get(array, i));
        if (!add_type(type != NULL ? type : "", i, types, err)) {
            return false;
        }
    }
    return count > 0 || refuse_type(err);
}

bool jobspec_decode_types(const json_t *value, char **ret_types, struct err *err)
{
    autotext struct text types = {0};
    bool good = json_is_string(value)  ? split_types(json_string_value(value), &types, err)
                : json_is_array(value) ? join_types(value, &types, err)
                                       : refuse_type(err);
    if (good) {
        *ret_types = text_take(&types);
    }
    return good;
}

/* --- constraints --- */

#define FORMS "\"a\", [\"a\", \"b\"] for any of them, or {\"not\": ...}"

/* The number of values, which are written as a single value or as an array. */
static size_t value_count(const json_t *values)
{
    return json_is_array(values) ? json_array_size(values) : values != NULL;
}

static const char *value_at(const json_t *values, size_t index)
{
    return json_string_value(json_is_array(values) ? json_array_get(values, index) : values);
}

static bool check_values(const char *field, const json_t *values, struct err *err)
{
    size_t count = value_count(values);
    if (count == 0 || count > LIMIT_CONSTRAINT_VALUES) {
        return err_field(err, ERR_FIELD, field, "write it as " FORMS, "%s must have 1 to %d values", field,
                         LIMIT_CONSTRAINT_VALUES);
    }
    for (size_t i = 0; i < count; i++) {
        const char *value = value_at(values, i);
        if (value == NULL || !node_label_is_value(value)) {
            return err_field(err, ERR_FIELD, field, "write it as " FORMS "; neither blanks nor commas",
                             "%s must have values of 1 to %d printable characters", field,
                             LIMIT_LABEL_VALUE_BYTES);
        }
    }
    return true;
}

/* The two sides of a constraint: a node must have one of the values in `in` and none of those in `not_in`. */
struct sides {
    const json_t *in, *not_in; /* or NULL */
};

static struct sides sides_of(const json_t *constraint)
{
    if (!json_is_object(constraint)) {
        return (struct sides){.in = constraint};
    }
    return (struct sides){.in = json_object_get(constraint, "in"),
                          .not_in = json_object_get(constraint, "not")};
}

static bool check_sides(const char *field, const json_t *constraint, struct err *err)
{
    const char *name;
    json_t *value;
    if (json_is_object(constraint) && json_object_size(constraint) == 0) {
        return err_field(err, ERR_FIELD, field, "write it as " FORMS, "%s says nothing", field);
    }
    json_object_foreach ((json_t *)(uintptr_t)constraint, name, value) {
        if (strcmp(name, "in") != 0 && strcmp(name, "not") != 0) {
            autofree char *path = xprintf("%s.%s", field, name);
            struct nearest nearest = nearest_to(name);
            nearest_try(&nearest, "not");
            nearest_try(&nearest, "in");
            return nearest_refuse(&nearest, path, err);
        }
    }
    struct sides sides = sides_of(constraint);
    return (sides.in == NULL || check_values(field, sides.in, err)) &&
           (sides.not_in == NULL || check_values(field, sides.not_in, err));
}

bool jobspec_check_constraints(const json_t *constraints, struct err *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(constraints) || json_object_size(constraints) > LIMIT_CONSTRAINTS) {
        return err_field(err, ERR_FIELD, "constraints", "{\"zone\": \"a\"} for instance",
                         "constraints must be an object of at most %d labels", LIMIT_CONSTRAINTS);
    }
    json_object_foreach ((json_t *)(uintptr_t)constraints, key, value) {
        autofree char *field = xprintf("constraints.%.*s", LIMIT_NAME_BYTES - 12, key);
        if (!text_is_name(key, LIMIT_NAME_BYTES)) {
            return err_field(err, ERR_FIELD, field,
                             "letters, digits, '.', '_' and '-', a letter or digit first",
                             "%s is not the key of a label", field);
        }
        if (!check_sides(field, value, err)) {
            return false;
        }
    }
    return true;
}

bool jobspec_check_nodes(const char *field, const json_t *nodes, struct err *err)
{
    size_t count = value_count(nodes);
    if (count > LIMIT_NODE_NAMES) {
        return err_field(err, ERR_FIELD, field, "label the nodes, and write a constraint",
                         "%s has %zu names, the limit is %d", field, count, LIMIT_NODE_NAMES);
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = value_at(nodes, i);
        if (name == NULL || !text_is_name(name, LIMIT_NAME_BYTES)) {
            return err_field(err, ERR_FIELD, field, "[\"node1\", \"node2\"] for instance",
                             "%s must be an array of names of nodes", field);
        }
    }
    return true;
}

/* --- terms --- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Appends "WORDv1,v2"; the values are sorted and unique. */
static void add_term(const char *word, const json_t *values, struct text *terms)
{
    size_t count = value_count(values);
    if (count == 0) {
        return;
    }
    autofree const char **sorted = xalloc(count * sizeof *sorted);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = value_at(values, i);
    }
    qsort(sorted, count, sizeof *sorted, by_text);
    text_append(terms, terms->length > 0 ? " " : "");
    text_append(terms, word);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(sorted[i - 1], sorted[i]) != 0) {
            text_append(terms, i > 0 ? "," : "");
            text_append(terms, sorted[i]);
        }
    }
}

static bool has_value(const json_t *values, const char *value)
{
    for (size_t i = 0; i < value_count(values); i++) {
        if (strcmp(value_at(values, i), value) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether every wanted value is also unwanted. */
static bool leaves_nothing(const json_t *wanted, const json_t *unwanted)
{
    size_t left = 0;
    for (size_t i = 0; i < value_count(wanted); i++) {
        left += !has_value(unwanted, value_at(wanted, i));
    }
    return wanted != NULL && left == 0;
}

static bool check_sense(const char *key, const struct sides *sides, const json_t *exclude, struct err *err)
{
    if (leaves_nothing(sides->in, sides->not_in)) {
        autofree char *field = xprintf("constraints.%.*s", LIMIT_NAME_BYTES - 12, key);
        return err_field(err, ERR_FIELD, field, "leave one of the two out",
                         "%s wants a value and forbids it: no node can have both", field);
    }
    if (strcmp(key, "node") == 0 && leaves_nothing(sides->in, exclude)) {
        return err_field(err, ERR_FIELD, "exclude", "leave one of the two out",
                         "exclude names every node that constraints.node allows");
    }
    return true;
}

static bool add_constraints(const json_t *constraints, const json_t *exclude, struct text *terms,
                            struct err *err)
{
    size_t count = json_object_size(constraints), at = 0;
    autofree const char **keys = xalloc((count + 1) * sizeof *keys);
    const char *name;
    json_t *unused;
    json_object_foreach ((json_t *)(uintptr_t)constraints, name, unused) {
        keys[at++] = name;
    }
    qsort(keys, count, sizeof *keys, by_text);
    for (size_t i = 0; i < count; i++) {
        struct sides sides = sides_of(json_object_get(constraints, keys[i]));
        if (!check_sense(keys[i], &sides, exclude, err)) {
            return false;
        }
        autofree char *in = xprintf("%s=", keys[i]), *not_in = xprintf("%s!=", keys[i]);
        add_term(in, sides.in, terms);
        add_term(not_in, sides.not_in, terms);
    }
    return true;
}

bool jobspec_make_terms(const json_t *constraints, const json_t *volumes, const json_t *avoid,
                        const json_t *exclude, char **ret_terms, struct err *err)
{
    autotext struct text terms = {0};
    if (!add_constraints(constraints, exclude, &terms, err) || !add_constraints(volumes, NULL, &terms, err)) {
        return false;
    }
    add_term("avoid:", avoid, &terms);
    add_term("exclude:", exclude, &terms);
    if (terms.length > LIMIT_TERMS_BYTES) {
        return err_field(err, ERR_FIELD, "constraints", "label the nodes so that fewer values say the same",
                         "constraints, avoid and exclude are %zu bytes, the limit is %lld", terms.length,
                         LIMIT_TERMS_BYTES);
    }
    *ret_terms = terms.length > 0 ? text_take(&terms) : NULL;
    return true;
}
