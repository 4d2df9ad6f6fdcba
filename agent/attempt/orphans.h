/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of an attempt whose shim was killed. */
#ifndef AGENT_ORPHANS_H
#define AGENT_ORPHANS_H

#include <stdbool.h>
#include <stdint.h>

/* Kills it: the cgroup, or where that is NULL every process whose environment names the attempt id and a
 * socket in the attempt's run folder. False while something is left. */
bool orphans_kill(const char *cgroup, int cgroup_version, uint64_t attempt_id, const char *run);

#endif
