/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments: idle devices of a node that are too few for the requests of jobs. */
#ifndef CORE_QUEUE_FRAGMENT_H
#define CORE_QUEUE_FRAGMENT_H

#include <stdint.h>

#include "proto/limits.h"

struct core;
struct partition;

struct resource_request;

/* Counts a live job more, or less, that asks for this many devices. */
void fragment_demand(struct core *core, const struct resource_request *request, int change);

/* How many idle devices of a node count as fragments, by its number of idle devices: summed over the live
 * jobs. */
struct fragments {
    int64_t of[LIMIT_NODE_DEVICES + 1];
};

/* Calculates the table for the nodes of a partition from the requests of live jobs. */
void fragments_count(const struct core *core, const struct partition *partition,
                     struct fragments *ret_fragments);

/* How much the fragments of a node with this many idle devices grow when some are taken. */
static inline int64_t fragments_growth(const struct fragments *fragments, int64_t idle, int64_t taken)
{
    return fragments->of[idle - taken] - fragments->of[idle];
}

#endif
