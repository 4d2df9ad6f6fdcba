/* SPDX-License-Identifier: Apache-2.0 */
/* A script of transactions such as a controller writes: jobs with their events and first answers, attempts,
 * ends with results, nodes, tokens, limits, windows; now and then one that is larger than the cache. */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include "daemon/core/model/change.h"

/* One transaction. */
struct batch {
    struct change *changes;
    size_t count;
};

struct script {
    struct batch *batches;
    size_t count;
    char **texts; /* what rows borrow */
    size_t text_count;
};

/* The same for the same seed. At most 1,000 batches; large: the third from the end is larger than the cache.
 */
struct script *script_create(uint64_t seed, size_t batches, bool large);
void script_destroy(struct script *script);

#endif
