/* SPDX-License-Identifier: Apache-2.0 */
/* Constraints: which nodes a resource request allows by their labels, and which it would rather not have. */
#ifndef CORE_FLEET_CONSTRAINT_H
#define CORE_FLEET_CONSTRAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/spec/node_label.h"

struct core;
struct capacity;
struct text;

enum constraint_kind {
    CONSTRAINT_IN,      /* the label has one of these values */
    CONSTRAINT_NOT_IN,  /* it has none of them; a node without the label fits */
    CONSTRAINT_AVOID,   /* the node is not one of these, as long as others do */
    CONSTRAINT_EXCLUDE, /* the node is not one of these */
};

/* One word of the terms. */
struct constraint {
    enum constraint_kind kind;
    enum built_in_label built_in; /* BUILT_IN_COUNT: a label that nodes were given */
    const char *key;
    const char **values;
    size_t value_count;
};

struct constraints {
    struct constraint *items;
    size_t count;
    bool avoids;       /* one is AVOID */
    bool by_type;      /* one asks for a GPU type, of which a node may have several */
    uint8_t *grades;   /* owned: what was found out, by the index of the node ... */
    uint64_t registry; /* ... when the registry had this stamp */
    char *terms;       /* owned: the text that they are made of */
    char *words;       /* owned: the same, cut; keys and values point into it */
};

/* From terms as proto/spec/jobspec_place.h makes them; NULL for NULL. */
struct constraints *constraints_create(const char *terms);
void constraints_destroy(struct constraints *constraints);

/* Whether the node capacity may be used at all; NULL allows every one. The answer is remembered. */
bool constraints_allow(struct constraints *constraints, const struct core *core,
                       const struct capacity *capacity);
/* Whether it is to be used only when nothing else fits. */
bool constraints_avoid(struct constraints *constraints, const struct core *core,
                       const struct capacity *capacity);

bool constraint_holds(const struct constraint *constraint, const struct capacity *capacity);
/* Appends it as people write it: "zone=a,b", "disk!=hdd", "exclude n1". */
void constraint_write(const struct constraint *constraint, struct text *out);

#endif
