/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups in which warm workers of other users have waited. */
#ifndef AGENT_WARM_CGROUPS_H
#define AGENT_WARM_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>

/* One whose shim was handed out or has ended; a list of utlist. */
struct left_cgroup {
    char *path; /* owned */
    int64_t kill_ms;
    struct left_cgroup *prev, *next;
};

/* Takes the path over; NULL is no cgroup. It is removed once it is empty. What still is in it at kill_ms, by
 * CLOCK_BOOTTIME, is killed. */
void left_cgroup_add(struct left_cgroup **left, char *path, int64_t kill_ms);

/* Removes those that can be. True while some are left. */
bool left_cgroups_step(struct left_cgroup **left, int64_t now_ms);

/* Kills what is in them. */
void left_cgroups_finish(struct left_cgroup **left);

#endif
