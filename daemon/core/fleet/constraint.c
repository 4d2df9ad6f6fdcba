/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a node fits the constraints of a resource request. The result depends only on the registry,
 * and texts are compared once per node and registry stamp. fit.c chooses among the nodes that fit. */
#include "daemon/core/fleet/constraint.h"

#include <string.h>
#include <strings.h>

#include "daemon/core/model/label.h"
#include "daemon/core/model/state.h"

/* --- from terms ----------------------------------------------------------------------------------------- */

/* Splits a word, "zone=a,b", in place. */
static struct constraint parse(char *word)
{
    struct constraint constraint = {.kind = CONSTRAINT_IN, .key = word};
    char *sign = word + strcspn(word, "=!:");
    char *values = sign + 1;
    if (*sign == ':') {
        constraint.kind = *word == 'a' ? CONSTRAINT_AVOID : CONSTRAINT_EXCLUDE;
        constraint.key = "node";
    } else if (*sign == '!') {
        constraint.kind = CONSTRAINT_NOT_IN;
        values++;
    }
    *sign = '\0';
    constraint.built_in = node_label_built_in(constraint.key);
    for (char *value; (value = strsep(&values, ",")) != NULL;) {
        constraint.values = xrealloc(constraint.values, (constraint.value_count + 1) * sizeof(char *));
        constraint.values[constraint.value_count++] = value;
    }
    return constraint;
}

struct constraints *constraints_create(const char *terms)
{
    if (terms == NULL) {
        return NULL;
    }
    struct constraints *constraints = xzalloc(sizeof *constraints);
    constraints->terms = xstrdup(terms);
    constraints->words = xstrdup(terms);
    char *rest = constraints->words;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        constraints->items =
            xrealloc(constraints->items, (constraints->count + 1) * sizeof *constraints->items);
        struct constraint *item = &constraints->items[constraints->count++];
        *item = parse(word);
        constraints->avoids = constraints->avoids || item->kind == CONSTRAINT_AVOID;
        constraints->by_type = constraints->by_type || item->built_in == BUILT_IN_GPU_TYPE;
    }
    return constraints;
}

void constraints_destroy(struct constraints *constraints)
{
    if (constraints == NULL) {
        return;
    }
    for (size_t i = 0; i < constraints->count; i++) {
        free(constraints->items[i].values);
    }
    free(constraints->items);
    free(constraints->terms);
    free(constraints->words);
    free(constraints->grades);
    free(constraints);
}

/* --- fits ----------------------------------------------------------------------------------------------- */

/* NULL: the node has no such label. */
static const char *value_of(const struct constraint *constraint, const struct capacity *capacity)
{
    switch (constraint->built_in) {
    case BUILT_IN_NODE:
        return capacity->node->name;
    case BUILT_IN_POOL:
        return capacity->node->pool;
    case BUILT_IN_GPU_TYPE:
        return capacity->partition->type;
    case BUILT_IN_HOST:
        return capacity->node->host_id;
    case BUILT_IN_COUNT:
        return label_value(capacity->node, constraint->key);
    }
    abort();
}

/* GPU types are compared ignoring case. */
static bool is_listed(const struct constraint *constraint, const char *value)
{
    bool any_case = constraint->built_in == BUILT_IN_GPU_TYPE;
    for (size_t i = 0; i < constraint->value_count; i++) {
        const char *listed = constraint->values[i];
        if ((any_case ? strcasecmp(listed, value) : strcmp(listed, value)) == 0) {
            return true;
        }
    }
    return false;
}

bool constraint_holds(const struct constraint *constraint, const struct capacity *capacity)
{
    const char *value = value_of(constraint, capacity);
    bool listed = value != NULL && is_listed(constraint, value);
    return listed == (constraint->kind == CONSTRAINT_IN);
}

/* The cached result for a node. */
enum grade { GRADE_UNKNOWN, GRADE_FORBIDDEN, GRADE_AVOIDED, GRADE_WANTED };

/* Judges the node by all constraints but the GPU type. */
static enum grade judge(const struct constraints *constraints, const struct capacity *capacity)
{
    enum grade grade = GRADE_WANTED;
    for (size_t i = 0; i < constraints->count; i++) {
        const struct constraint *constraint = &constraints->items[i];
        if (constraint->built_in == BUILT_IN_GPU_TYPE || constraint_holds(constraint, capacity)) {
            continue;
        }
        if (constraint->kind != CONSTRAINT_AVOID) {
            return GRADE_FORBIDDEN;
        }
        grade = GRADE_AVOIDED;
    }
    return grade;
}

static enum grade grade_of(struct constraints *constraints, const struct core *core,
                           const struct capacity *capacity)
{
    if (constraints->grades == NULL || constraints->registry != core->registry) {
        free(constraints->grades);
        constraints->grades = xzalloc(core->node_count * sizeof *constraints->grades);
        constraints->registry = core->registry;
    }
    uint8_t *grade = &constraints->grades[capacity->node->index];
    if (*grade == GRADE_UNKNOWN) {
        *grade = (uint8_t)judge(constraints, capacity);
    }
    return (enum grade) * grade;
}

static bool type_fits(const struct constraints *constraints, const struct capacity *capacity)
{
    for (size_t i = 0; constraints->by_type && i < constraints->count; i++) {
        const struct constraint *constraint = &constraints->items[i];
        if (constraint->built_in == BUILT_IN_GPU_TYPE && !constraint_holds(constraint, capacity)) {
            return false;
        }
    }
    return true;
}

bool constraints_allow(struct constraints *constraints, const struct core *core,
                       const struct capacity *capacity)
{
    return constraints == NULL ||
           (grade_of(constraints, core, capacity) != GRADE_FORBIDDEN && type_fits(constraints, capacity));
}

bool constraints_avoid(struct constraints *constraints, const struct core *core,
                       const struct capacity *capacity)
{
    return grade_of(constraints, core, capacity) == GRADE_AVOIDED;
}

const char *constraint_volume(const struct constraint *constraint)
{
    size_t length = strlen(VOLUME_LABEL);
    return strncmp(constraint->key, VOLUME_LABEL, length) == 0 ? constraint->key + length : NULL;
}

void constraint_write(const struct constraint *constraint, struct text *out)
{
    if (constraint_volume(constraint) != NULL) {
        text_printf(out, "volume %s", constraint_volume(constraint));
        return;
    }
    switch (constraint->kind) {
    case CONSTRAINT_IN:
        text_printf(out, "%s=", constraint->key);
        break;
    case CONSTRAINT_NOT_IN:
        text_printf(out, "%s!=", constraint->key);
        break;
    case CONSTRAINT_EXCLUDE:
        text_append(out, "exclude ");
        break;
    case CONSTRAINT_AVOID: /* refuses no node, so it is never reported */
        abort();
    }
    for (size_t i = 0; i < constraint->value_count; i++) {
        text_printf(out, "%s%s", i > 0 ? "," : "", constraint->values[i]);
    }
}
