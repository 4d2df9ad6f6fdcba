/* SPDX-License-Identifier: Apache-2.0 */
/* History: how long jobs of a pattern have run, and estimates for further jobs. */
#ifndef CORE_QUEUE_HISTORY_H
#define CORE_QUEUE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

struct attempt;
struct core;
struct job_spec;
struct pattern;

/* The pattern of jobs with the same project, owner, name without the digits at its end, and GPUs, and all
 * with or all without a time limit. Borrowed until history_leave. */
struct pattern *history_join(struct core *core, const struct job_spec *spec, const char *owner, bool limited);
/* Borrows the pattern once more, for a further job of it. */
struct pattern *history_share(struct pattern *pattern);
void history_leave(struct core *core, struct pattern *pattern);

/* The pattern of jobs that differ only in these; borrowed in the same way. */
struct pattern *history_vary(struct core *core, struct pattern *pattern, int64_t gpus, bool limited);

/* Estimates how long a job of this pattern will run, at least 1. limit_ms 0: no limit. Without history of the
 * pattern, the next larger family gives the estimate: the owner's jobs of that size, all jobs of that size,
 * all jobs. */
int64_t history_estimate_ms(const struct core *core, const struct pattern *pattern, int64_t limit_ms);

/* How reliable an estimate is. */
struct history_trust {
    int64_t runs;          /* of this pattern */
    int64_t error_percent; /* average error of the estimates: 100 is a factor of two */
};
struct history_trust history_trust(const struct pattern *pattern);

/* Learns the run time of an attempt that ended by itself. */
void history_learn(struct core *core, const struct attempt *attempt);

/* A row of what was learned before. */
struct history_row;
void history_load(struct core *core, const struct history_row *row);
void history_clear(struct core *core);

#endif
