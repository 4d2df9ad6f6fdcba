/* SPDX-License-Identifier: Apache-2.0 */
/* Constraints: the nodes that a resource request allows by their labels, and the nodes that it avoids. */
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
    CONSTRAINT_NOT_IN,  /* the label has none of them; nodes without the label fit */
    CONSTRAINT_AVOID,   /* the node is none of these, unless only these fit */
    CONSTRAINT_EXCLUDE, /* the node is none of these */
};

/* One word of the terms. */
struct constraint {
    enum constraint_kind kind;
    enum built_in_label built_in; /* BUILT_IN_COUNT: a label set by operators */
    const char *key;
    const char **values;
    size_t value_count;
};

struct constraints {
    struct constraint *items;
    size_t count;
    bool avoids;       /* it has an AVOID */
    bool by_type;      /* it tests the GPU type, of which a node may have several */
    uint8_t *grades;   /* owned: cached results, by the index of the node ... */
    uint64_t registry; /* ... valid for this stamp of the registry */
    char *terms;       /* owned: the text that they were parsed from */
    char *words;       /* owned: the text split; keys and values point into it */
};

/* Parses terms of proto/spec/jobspec_place.h; NULL for NULL. */
struct constraints *constraints_create(const char *terms);
void constraints_destroy(struct constraints *constraints);

/* Whether the node capacity may be used at all; NULL allows every one. The result is cached. */
bool constraints_allow(struct constraints *constraints, const struct core *core,
                       const struct capacity *capacity);
/* Whether the node capacity may be used only if nothing else fits. */
bool constraints_avoid(struct constraints *constraints, const struct core *core,
                       const struct capacity *capacity);

bool constraint_holds(const struct constraint *constraint, const struct capacity *capacity);
/* The volume that it asks for; NULL: it asks for none. */
const char *constraint_volume(const struct constraint *constraint);
/* Appends the constraint as people write it: "zone=a,b", "disk!=hdd", "exclude n1", "volume data". */
void constraint_write(const struct constraint *constraint, struct text *out);

#endif
