/* SPDX-License-Identifier: Apache-2.0 */
/* History: how long jobs of one kind have run, and how long one more of them will. */
#ifndef CORE_QUEUE_HISTORY_H
#define CORE_QUEUE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

struct attempt;
struct core;
struct job_spec;
struct pattern;

/* What jobs are like each other by: project, owner, name without the digits at its end, GPUs, and whether
 * they have a time limit. Borrowed until history_leave. */
struct pattern *history_join(struct core *core, const struct job_spec *spec, const char *owner, bool limited);
/* The same for one more job that is like others of the pattern. */
struct pattern *history_share(struct pattern *pattern);
void history_leave(struct core *core, struct pattern *pattern);

/* The pattern of jobs that differ from one in nothing but that; likewise borrowed. */
struct pattern *history_vary(struct core *core, struct pattern *pattern, int64_t gpus, bool limited);

/* How long a job of this pattern will run, 1 at least. limit_ms 0: without a limit. What there is no history
 * of is guessed from the next larger family: the owner's jobs of that size, all of that size, all. */
int64_t history_estimate_ms(const struct core *core, const struct pattern *pattern, int64_t limit_ms);

/* How much there is to go by. */
struct history_trust {
    int64_t runs;          /* of this very pattern */
    int64_t error_percent; /* how far their estimates were off on the average: 100 is a factor of two */
};
struct history_trust history_trust(const struct pattern *pattern);

/* An attempt ended by itself: what it took is learned. */
void history_learn(struct core *core, const struct attempt *attempt);

/* A row of what was learned before. */
struct history_row;
void history_load(struct core *core, const struct history_row *row);
void history_clear(struct core *core);

#endif
