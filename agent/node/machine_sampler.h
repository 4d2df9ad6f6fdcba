/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring of the whole node: a sample rides with a heartbeat once each --sample-interval. */
#ifndef AGENT_MACHINE_SAMPLER_H
#define AGENT_MACHINE_SAMPLER_H

#include <stdint.h>

#include "agent/devices/devices.h"
#include "proto/wire/messages.h"

/* CPU time of the machine since its boot, in ticks; -1: not known. */
struct cpu_ticks {
    int64_t busy, all;
};

struct machine_sampler {
    struct cpu_ticks before; /* at the last sample */
    int64_t due_ms;          /* of the next sample, CLOCK_BOOTTIME */
    int64_t carrier;         /* the number of the heartbeat that carries the last one */
};

/* Counts CPU time from now on. proc is "/proc". */
void machine_sampler_init(struct machine_sampler *sampler, const char *proc);

/* The sample that the heartbeat with this number is to carry, also when it is made anew; NULL: none, always
 * with interval_s 0. The caller frees it with machine_sample_free. */
struct machine_sample *machine_sampler_take(struct machine_sampler *sampler, const char *proc,
                                            const struct devices *devices, int64_t interval_s, int64_t number,
                                            int64_t now_ms);

#endif
