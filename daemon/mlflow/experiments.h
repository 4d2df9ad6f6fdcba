/* SPDX-License-Identifier: Apache-2.0 */
/* Experiments inside a transaction: how they are found and made. */
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

/* The experiment of the member experiment_id, else the standard one; without a standard the member must be
 * there. False with RESOURCE_DOES_NOT_EXIST where there is none. */
bool experiment_of_request(struct tracking *tracking, const json_t *body, const char *standard,
                           struct experiment *experiment, struct tracking_error *error);

/* By the text of its id; *ret_there false: there is none. */
bool experiment_by_id(struct tracking *tracking, const char *id, struct experiment *experiment,
                      bool *ret_there, struct tracking_error *error);

bool experiment_by_name(struct tracking *tracking, const char *name, struct experiment *experiment,
                        bool *ret_there, struct tracking_error *error);

/* Makes one of a name that is free. location may be NULL: on the server. */
bool experiment_insert(struct tracking *tracking, const char *name, const char *location, int64_t now_ms,
                       int64_t *ret_id, struct tracking_error *error);

/* Brings it back with the runs that were deleted with it. */
bool experiment_restore(struct tracking *tracking, int64_t id, int64_t now_ms, struct tracking_error *error);

#endif
