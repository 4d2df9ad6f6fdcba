/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: which waiting job gets which devices. Another policy would replace this file and queue.c. */
#ifndef CORE_PLACE_H
#define CORE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct group;
struct lane;
struct wish;

/* Places every job that is at the front and fits: the one scheduling function. */
void place_pass(struct core *core);

/* Whether place_pass would place something. */
bool place_would(const struct core *core);

/* The largest gang that the registered nodes, busy or not, could ever hold for such a wish; *ret_group,
 * unless NULL, is where, NULL for 0. */
int64_t place_largest(const struct core *core, const struct wish *wish, const struct group **ret_group);

/* The same number for a lane, remembered until the registry changes. */
int64_t place_lane_largest(const struct core *core, struct lane *lane);

#endif
