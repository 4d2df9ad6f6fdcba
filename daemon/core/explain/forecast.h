/* SPDX-License-Identifier: Apache-2.0 */
/* Forecasts: when a waiting job will start, by the estimates of run times. */
#ifndef CORE_EXPLAIN_FORECAST_H
#define CORE_EXPLAIN_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/states.h"

struct ahead;
struct core;
struct job;
struct text;

/* Times are of the core's clock. */
struct forecast {
    bool known;          /* false: it cannot start on the nodes that take work now */
    bool beyond;         /* it is later than at_ms by an unknown time */
    int64_t at_ms;       /* by the estimates */
    int64_t earliest_ms; /* if all run times are shorter by their usual error */
    int64_t latest_ms;   /* if they are longer by that error */
    enum confidence confidence;
};

/* Forecasts the start of the job if the jobs ahead of it start first and no new ones arrive. Counts GPUs per
 * pool and type; only for the job itself it considers which nodes they are on. */
struct forecast forecast_start(struct core *core, const struct job *job, const struct ahead *ahead);
/* Of a job that the next pass places. */
struct forecast forecast_now(const struct core *core);

/* Forecasts for many jobs of one moment, which together cost little more than one. */
struct forecasts;
struct forecasts *forecasts_begin(struct core *core);
void forecasts_finish(struct forecasts *forecasts);
/* By the estimates, and by run times that are shorter and longer; NEVER: it cannot start. */
struct starts {
    int64_t at_ms, short_ms, long_ms;
    bool beyond;
};
/* The starts of the next job of the queue; every job is given once, in queue order. */
struct starts forecasts_next(struct forecasts *forecasts, const struct job *job);
/* What follows from them. Considers which nodes the job could be on. */
struct forecast forecast_of(struct core *core, const struct job *job, const struct starts *starts);

/* Appends a forecast as JSON; null if it is not known. */
void forecast_write(const struct core *core, const struct forecast *forecast, struct text *out);

#endif
