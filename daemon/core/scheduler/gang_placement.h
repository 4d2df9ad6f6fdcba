/* SPDX-License-Identifier: Apache-2.0 */
/* Gang placement: the nodes of a partition that form a gang, and the number of devices from each. */
#ifndef CORE_SCHEDULER_GANG_PLACEMENT_H
#define CORE_SCHEDULER_GANG_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

struct fit;
struct fragments;
struct partition;
struct search;

/* The largest gang that nodes of the partition could form. */
int64_t gang_placement_largest(const struct search *search, const struct partition *partition);

/* Finds the best placement of the search's gang on nodes of the partition. false: there are not enough. */
bool gang_placement_fit(const struct search *search, const struct partition *partition,
                        const struct fragments *fragments, struct fit *ret_fit);

#endif
