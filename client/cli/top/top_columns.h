/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `gpuctl top`: which columns they have, and the cell and the sort value of a row in each. Rows
 * are JSON objects: nodes and jobs of the API, and the ranks that top_job.c makes. */
#ifndef CLI_TOP_COLUMNS_H
#define CLI_TOP_COLUMNS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/cli/top/data/top_data.h"
#include "client/cli/top/top_frame.h"
#include "proto/base/text/text.h"

struct top_column {
    const char *title;
    const char *help;   /* what the title does not say; or NULL */
    const char *member; /* of the row */
    /* Appends the cell; nothing where there is no value. */
    void (*show)(const json_t *row, const char *member, const struct top_look *look, struct text *out);
    /* Rows are sorted by this, NAN last; NULL: by the cell's text. */
    double (*value)(const json_t *row, const char *member);
    bool right;                             /* cells stand at the right of the column */
    bool optional;                          /* left out where the terminal is too narrow */
    const char *(*paint)(const char *cell); /* the escape of a cell; or NULL */
};

struct top_table {
    const char *name;
    const char *key; /* the member that tells rows apart */
    const struct top_column *columns;
    size_t count;
    size_t order; /* the column that it is sorted by at first ... */
    bool reverse; /* ... and how */
};

const struct top_table *top_table_of(enum top_table_id id);

/* GPUs of a node that jobs have: neither free nor unavailable. */
json_int_t top_node_used(const json_t *node);

#endif
