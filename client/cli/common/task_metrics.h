/* SPDX-License-Identifier: Apache-2.0 */
/* The last values of the metrics that the tasks of an array have logged. */
#ifndef CLI_TASK_METRICS_H
#define CLI_TASK_METRICS_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"

/* Adds to each task that has logged some an object "metrics" with numbers by name: those of its newest run on
 * this controller, among the newest CLIENT_METRIC_RUNS of its experiment. */
bool task_metrics_add(struct api *api, json_t *tasks, struct err *err);

#endif
