/* SPDX-License-Identifier: Apache-2.0 */
/* The things that can be searched for: their tables, columns, order and limits. */
#ifndef MLFLOW_SUBJECTS_H
#define MLFLOW_SUBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/mlflow/database/statements.h"

/* A name of the search language for a column. */
struct attribute {
    const char *name; /* NULL ends a list */
    const char *column;
    bool is_number;
};

struct subject {
    const char *table;
    const char *join;                 /* of another table; NULL: none */
    const char *key;                  /* the column by which rows are numbered in the order of creation */
    const char *seen;                 /* the condition for rows that the sender may see */
    const char *experiment;           /* the column of the experiment; NULL: searches name no experiments */
    const char *newest;               /* the order that comes first unless the request has one; NULL: none */
    const char *order;                /* the order among rows that are equal otherwise */
    const char *member;               /* of the answer */
    const char *view;                 /* the member that selects deleted rows; NULL: these are never shown */
    enum query show;                  /* of a row, by its key */
    int64_t standard_rows, most_rows; /* of a page */
    /* Tables of further values, NULL: it has none, and the condition for their rows. */
    const char *metrics, *params, *tags;
    const char *owner;
    const char *lacks; /* for errors: which of them it has not */
    const struct attribute *attributes;
    const struct attribute *datasets; /* NULL: none */
    bool orders_by_objects;           /* order_by has {field_name, ascending}; else texts */
    bool of_registry;                 /* prompts are hidden in it */
};

extern const struct subject subject_runs, subject_experiments, subject_models, subject_registry,
    subject_versions;

#endif
