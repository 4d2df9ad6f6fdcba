/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring of an attempt while its ranks run: one sample each --sample-interval, of which the last waits
 * for a heartbeat that carries it and is answered. */
#ifndef AGENT_SAMPLER_H
#define AGENT_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/loop.h"
#include "agent/attempt/usage.h"
#include "proto/limits.h"
#include "proto/wire/messages.h"

struct attempt;

struct sampler {
    struct loop_timer timer;
    struct usage before; /* at the last reading */
    struct usage ranks_before[LIMIT_SAMPLE_RANKS];
    int64_t read_us; /* when that was, CLOCK_BOOTTIME */
    bool sampled;    /* there was a sample */
    bool waits;      /* there is a sample that no answered heartbeat has carried */
    struct sample sample;
    int64_t carrier;                      /* the number of the last heartbeat that carried it */
    struct gpu_use use;                   /* since its ranks began, or the agent was started again */
    int64_t busy_us;                      /* CLOCK_BOOTTIME of the last look that saw a GPU in use */
    int64_t used_us;                      /* CLOCK_BOOTTIME up to which that counts */
    int64_t energy_mj[LIMIT_SAMPLE_GPUS]; /* of each GPU at that time; -1: not known */
};

/* The ranks of the attempt run. Does nothing where they are being measured, or the agent measures nothing. */
void sampler_begin(struct attempt *attempt);
/* They have ended: a sample that still waits is dropped. */
void sampler_end(struct attempt *attempt);

/* How long all its GPUs have been nearly unused, by the last look at them; 0: one is in use; -1: not known,
 * or it has none. Called with each heartbeat. */
int64_t sampler_idle_ms(struct attempt *attempt);

/* Of two attempts whose samples wait: whether that of the first was measured earlier, and is to go first. */
bool sampler_precedes(const struct attempt *attempt, const struct attempt *other);
/* A heartbeat is made anew, and has carried nothing yet. */
void sampler_unload(struct attempt *attempt, int64_t number);
/* A heartbeat was answered. */
void sampler_carried(struct attempt *attempt, int64_t number);

/* The time between two samples of an attempt of this age: sample_s, and more for old attempts. */
int64_t sampler_period_ms(int64_t sample_s, int64_t age_ms);

/* The share of all CPUs that was used between two readings, in percent; -1: not known. */
double sampler_cpu_percent(const struct usage *before, const struct usage *now, int64_t elapsed_us,
                           int64_t cpus);

#endif
