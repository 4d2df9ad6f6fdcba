/* SPDX-License-Identifier: Apache-2.0 */
/* The forecast: when a job that waits will start, as far as estimates of run times tell. */
#ifndef CORE_EXPLAIN_FORECAST_H
#define CORE_EXPLAIN_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/states.h"

struct ahead;
struct core;
struct job;

/* Times are of the core's clock. */
struct forecast {
    bool known;          /* false: it will not start with the nodes that take work now */
    bool beyond;         /* it is later than at_ms, by how much was not looked at */
    int64_t at_ms;       /* by the estimates */
    int64_t earliest_ms; /* if all run times are off as far as theirs usually are, to this side */
    int64_t latest_ms;   /* and to the other */
    enum confidence confidence;
};

/* When the job starts if those ahead of it do first, and none come. Counts the GPUs of each pool and type,
 * not which nodes they are on, but for the job itself. */
struct forecast forecast_start(struct core *core, const struct job *job, const struct ahead *ahead);

#endif
