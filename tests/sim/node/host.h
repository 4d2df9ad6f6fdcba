/* SPDX-License-Identifier: Apache-2.0 */
/* A node: a machine with devices, an agent with the real decisions (agent/reconciler/reconciler.h), and shims
 * that outlive it. */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "tests/sim/world/sim.h"

#define HOST_TYPES 2
extern const char *const host_types[HOST_TYPES];

/* Powered on, with an agent that registers. */
struct host *host_create(struct sim *sim, size_t index);
void host_destroy(struct host *host);

const char *host_name(const struct host *host);
struct link_state *host_link(struct host *host);
bool host_is_on(const struct host *host);
const char *host_type(const struct host *host);

/* Faults. The agent, shim or machine comes back by itself after a while. */
void host_kill_agent(struct host *host);
void host_kill_shim(struct host *host);
/* Ends everything on the machine except the content of its disk. False: it was off already. */
bool host_power_off(struct host *host, int64_t for_ms);

/* The machine holds and knows no attempt, as it should after the end of all jobs. */
bool host_is_empty(const struct host *host);

#endif
