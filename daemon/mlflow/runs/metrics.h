/* SPDX-License-Identifier: Apache-2.0 */
/* Logs values of metrics. */
#ifndef MLFLOW_METRICS_H
#define MLFLOW_METRICS_H

#include "daemon/mlflow/call/call.h"

/* Logs one object {key, value, timestamp, step} for a client. Logging the same point again changes
 * nothing. */
void metric_put(struct call *call, int64_t run, const json_t *metric);
/* Like metric_put, for a point of the job's own metrics, which is no point that a client has logged. */
void metric_copy(struct call *call, int64_t run, const json_t *metric);

#endif
