/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes the next pass would reserve for which waiting jobs, and from when. */
#ifndef CORE_EXPLAIN_RESERVED_NODES_H
#define CORE_EXPLAIN_RESERVED_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/scheduler/fit.h"

struct core;
struct job;
struct partition;
struct text;

/* One reservation, of GPUs of one pool and type. */
struct reserved_gpus {
    const struct job *job;
    const struct partition *partition;
    int64_t from_ms; /* of the core's clock: when the job takes them */
    bool firm;       /* others run before it only if their time limits end by then */
    bool all;        /* every GPU that the job could use, until it starts */
    struct fit fit;  /* the nodes; without shares: all of them, or nodes that others are leaving */
};

struct reserved_nodes {
    struct reserved_gpus *items; /* owned; one for each partition at most */
    size_t count;
};

void reserved_nodes_find(struct core *core, struct reserved_nodes *ret_nodes);
void reserved_nodes_finish(struct reserved_nodes *nodes);

/* Appends the reservations of one job as a JSON array. */
void reserved_nodes_write(const struct core *core, const struct reserved_nodes *nodes, const struct job *job,
                          struct text *out);

#endif
