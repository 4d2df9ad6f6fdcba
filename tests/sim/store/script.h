/* SPDX-License-Identifier: Apache-2.0 */
/* A script of transactions like those of a controller: jobs with their events and first answers, attempts,
 * ends with results, nodes, tokens, limits, windows; some are larger than the cache. */
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
    char **texts; /* texts that rows borrow */
    size_t text_count;
};

/* The same seed gives the same script. At most 1,000 batches; large: the third from the end is larger than
 * the cache. */
struct script *script_create(uint64_t seed, size_t batches, bool large);
void script_destroy(struct script *script);

#endif
