/* SPDX-License-Identifier: Apache-2.0 */
/* Logs values of metrics, inside a transaction. */
#ifndef MLFLOW_METRICS_H
#define MLFLOW_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/mlflow/tracking.h"

/* Logs one object {key, value, timestamp, step} for a client. Logging the same point again changes
 * nothing. */
bool metric_put(struct tracking *tracking, int64_t run, const json_t *metric, struct tracking_error *error);
/* Like metric_put, for a point of the job's own metrics, which tracking_job_points leaves out. */
bool metric_copy(struct tracking *tracking, int64_t run, const json_t *metric, struct tracking_error *error);

#endif
