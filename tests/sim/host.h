/* SPDX-License-Identifier: Apache-2.0 */
/* A node: a machine with devices, an agent whose decisions are the real ones (agent/reconciler/reconciler.h),
 * and shims that outlive it.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "tests/sim/sim.h"

#define HOST_TYPES 2
extern const char *const host_types[HOST_TYPES];

/* Powered on, with an agent that registers. */
struct host *host_create(struct sim *sim, size_t index);
void host_destroy(struct host *host);

const char *host_name(const struct host *host);
struct link_state *host_link(struct host *host);
bool host_is_on(const struct host *host);
const char *host_type(const struct host *host);

/* Faults. Each comes back by itself after a while. */
void host_kill_agent(struct host *host);
void host_kill_shim(struct host *host);
/* Everything on it is gone; what is on its disk stays. False: it was off already. */
bool host_power_off(struct host *host, int64_t for_ms);

/* Nothing is held or known of any attempt, as it should be when all jobs are over. */
bool host_is_empty(const struct host *host);

#endif
