/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and makes experiments, inside a transaction. */
#ifndef MLFLOW_EXPERIMENTS_H
#define MLFLOW_EXPERIMENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "daemon/mlflow/tracking.h"

struct experiment {
    int64_t id;
    bool deleted;
    char *artifact_location; /* owned */
};

static inline void cleanup_experiment(struct experiment *experiment)
{
    free(experiment->artifact_location);
}
#define autoexperiment __attribute__((cleanup(cleanup_experiment)))

/* The experiment of the member experiment_id, else the standard one; standard NULL: the member is required.
 * False with RESOURCE_DOES_NOT_EXIST if there is no such experiment. */
bool experiment_of_request(struct tracking *tracking, const json_t *body, const char *standard,
                           struct experiment *experiment, struct tracking_error *error);

/* Finds an experiment by the text of its id; *ret_there false: there is none. */
bool experiment_by_id(struct tracking *tracking, const char *id, struct experiment *experiment,
                      bool *ret_there, struct tracking_error *error);

bool experiment_by_name(struct tracking *tracking, const char *name, struct experiment *experiment,
                        bool *ret_there, struct tracking_error *error);

/* Makes an experiment; the name must be free. location NULL: on the server. */
bool experiment_insert(struct tracking *tracking, const char *name, const char *location, int64_t now_ms,
                       int64_t *ret_id, struct tracking_error *error);

/* Restores the experiment with the runs that were deleted with it. */
bool experiment_restore(struct tracking *tracking, int64_t id, int64_t now_ms, struct tracking_error *error);

#endif
