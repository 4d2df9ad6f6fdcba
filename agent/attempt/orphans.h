/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of an attempt whose shim was killed. */
#ifndef AGENT_ORPHANS_H
#define AGENT_ORPHANS_H

#include <stdbool.h>
#include <stdint.h>

/* Kills them: those in the cgroup, or, if cgroup is NULL, every process whose environment names the attempt
 * id and a socket in the attempt's run folder. False while some are left. */
bool orphans_kill(const char *cgroup, uint64_t attempt_id, const char *run);

#endif
