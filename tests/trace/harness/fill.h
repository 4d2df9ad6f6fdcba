/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster that is filled until it has been asked for more than it has. */
#ifndef TRACE_FILL_H
#define TRACE_FILL_H

#include <stdint.h>

enum fill_way {
    FILL_CORE,     /* the core chooses */
    FILL_BEST_FIT, /* always the node with the least left over */
};

/* The share of GPUs that are taken when jobs on one node each have asked for 130 % of those of 1,000 nodes.
 * nodes and jobs are lists of sizes that end with 0, from which each is drawn; the seed says which. */
double fill_share(uint64_t seed, const int64_t *nodes, const int64_t *jobs, enum fill_way way);

#endif
