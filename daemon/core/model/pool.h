/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes offer: the devices of one type on one node, and the nodes of one pool that have the type. */
#ifndef CORE_MODEL_POOL_H
#define CORE_MODEL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/states.h"

struct node;

/* The devices of one type on one node; or, of the type NO_GPU, how many ranks without GPU it takes, which
 * count as held devices do. */
#define NO_GPU ""
struct capacity {
    struct node *node;
    struct partition *partition;
    int64_t total, free;
    int64_t unavailable;   /* of total, whether held or not */
    struct capacity *next; /* of the node */

    /* in the current scheduling pass */
    int64_t free_then; /* free at the time that prospect.c looks at */
    int64_t spare;     /* devices that a gang may hold beyond the start of a reservation */
};

/* The nodes of one pool with one GPU type: a gang may spread over them. */
struct partition {
    char *pool, *type;
    enum pool_kind kind;
    int64_t total, free;
    int64_t free_then;            /* free at the time that prospect.c looks at */
    int64_t widest;               /* the largest total of a node capacity */
    struct capacity **capacities; /* by node name */
    size_t count;
    size_t loopback_count; /* nodes that other hosts cannot reach */
    size_t index;
    struct partition *prev, *next; /* by pool, then type */
};

static inline bool partition_is_gpuless(const struct partition *partition)
{
    return partition->type[0] == '\0';
}

#endif
