/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a replay, as papers on schedulers report them. */
#ifndef SIMULATE_FIGURES_H
#define SIMULATE_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "daemon/simulate/replay.h"

/* The waits of those jobs that have one name in common. */
struct group_figures {
    const char *name; /* borrowed from the trace */
    size_t jobs;
    double avg_wait_s, p50_wait_s, p99_wait_s;
};

#define LIMIT_FIGURES_GROUPS 20 /* those with the most jobs: as many as a person compares */

struct groups {
    struct group_figures items[LIMIT_FIGURES_GROUPS]; /* the one with the most jobs first */
    size_t count;
};

struct figures {
    size_t jobs; /* jobs that ran */
    size_t refused;
    double avg_jct_s, p50_jct_s, p99_jct_s; /* job completion time: from submission to end */
    /* Completion time without the run time. */
    double avg_wait_s, p50_wait_s, p90_wait_s, p99_wait_s;
    double utilization; /* share of the GPU time between the first and the last submission; 0..1 */
    double makespan_s;  /* from the first submission to the last end */
    int64_t preemptions;
    int64_t *completions_ms; /* of the jobs that ran, the shortest first; owned */
    struct groups owners, projects;
};

struct figures figures_of(const struct trace *trace, const struct fleet *fleet,
                          const struct outcome *outcome);

/* The figures as people and programs are given them. New reference. */
json_t *figures_json(const struct figures *figures, const struct replay_options *options);

void figures_finish(struct figures *figures);

#endif
