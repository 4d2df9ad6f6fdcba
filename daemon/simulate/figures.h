/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a replay, as papers on schedulers report them. */
#ifndef SIMULATE_FIGURES_H
#define SIMULATE_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/simulate/replay.h"

struct figures {
    size_t jobs; /* jobs that ran */
    size_t refused;
    double avg_jct_s, p50_jct_s, p99_jct_s; /* job completion time: from submission to end */
    double avg_wait_s, p99_wait_s;          /* completion time without the run time */
    double utilization; /* share of the GPU time between the first and the last submission; 0..1 */
    double makespan_s;  /* from the first submission to the last end */
    int64_t preemptions;
    int64_t *completions_ms; /* of the jobs that ran, the shortest first; owned */
};

struct figures figures_of(const struct trace *trace, const struct fleet *fleet,
                          const struct outcome *outcome);

void figures_finish(struct figures *figures);

#endif
