/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and makes runs, inside a transaction. */
#ifndef MLFLOW_RUNS_H
#define MLFLOW_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/mlflow/experiments.h"
#include "daemon/mlflow/tracking.h"

struct run {
    int64_t key, experiment;
    int deleted; /* enum run_deleted */
};

/* Finds a run. ret_there NULL: false with RESOURCE_DOES_NOT_EXIST if there is no such run. */
bool run_find(struct tracking *tracking, const char *run_id, struct run *run, bool *ret_there,
              struct tracking_error *error);
/* Finds the run that a request names; the run must not be deleted. */
bool run_find_active(struct tracking *tracking, const struct tracking_request *request, struct run *run,
                     struct tracking_error *error);

struct new_run {
    const char *id;
    const char *name;
    const char *user_id;
    int64_t start_ms;
};

/* Makes a run in RUNNING, with its name as the tag mlflow.runName. The experiment must not be deleted. */
bool run_insert(struct tracking *tracking, const struct experiment *experiment, const struct new_run *new_run,
                int64_t *ret_key, struct tracking_error *error);

#endif
