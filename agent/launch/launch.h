/* SPDX-License-Identifier: Apache-2.0 */
/* The launch file of agent/shim/shimwire.h: written for the shim, and read by an agent that adopts an
 * attempt. */
#ifndef AGENT_LAUNCH_H
#define AGENT_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text.h"

/* Appends one key and its value. */
void launch_put(struct text *launch, const char *key, const char *value);
void launch_put_int(struct text *launch, const char *key, int64_t value);
/* Appends env NAME=VALUE. */
void launch_put_env(struct text *launch, const char *name, const char *value);

/* What an adopting agent needs to know about an attempt. */
struct launch_facts {
    int64_t *ranks; /* owned */
    size_t rank_count;
    char *devices; /* owned: the GPUs that the ranks see, by UUID (by index if an earlier agent wrote it); or
                      NULL */
    char *cgroup;  /* owned, or NULL */
    bool holds_port;
    int64_t granted;     /* devices or slots of the attempt on this node; 0: unknown */
    int64_t received_us; /* CLOCK_BOOTTIME: when the order arrived; 0: unknown */
};

/* Reads the launch file in a run folder. ERR_MALFORMED when it is cut short. */
bool launch_read(const char *run_folder, struct launch_facts *ret_facts, struct err *err);
void launch_facts_finish(struct launch_facts *facts);

#endif
