/* SPDX-License-Identifier: Apache-2.0 */
/* Logs values of metrics. */
#ifndef MLFLOW_METRICS_H
#define MLFLOW_METRICS_H

#include "daemon/mlflow/call/call.h"

struct metric_point {
    const char *name; /* allowed by name_check */
    double value;     /* may be NaN or infinite */
    int64_t step, at_ms;
};

/* Logs a point for a client. Logging the same point again changes nothing. */
void metric_put(struct call *call, int64_t run, const struct metric_point *point);
/* Like metric_put, for a point of the job's own metrics, which is no point that a client has logged. */
void metric_copy(struct call *call, int64_t run, const struct metric_point *point);

#endif
