/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and makes experiments. */
#ifndef MLFLOW_EXPERIMENTS_H
#define MLFLOW_EXPERIMENTS_H

#include <stdlib.h>

#include "daemon/mlflow/call/call.h"

struct experiment {
    int64_t id; /* -1: there is none */
    bool deleted;
    char *artifact_location; /* owned */
};

static inline void cleanup_experiment(struct experiment *experiment)
{
    free(experiment->artifact_location);
}
#define autoexperiment __attribute__((cleanup(cleanup_experiment)))

/* The experiment of the member experiment_id, else the standard one; standard NULL: the member is required.
 * Fails the call with RESOURCE_DOES_NOT_EXIST if there is no such experiment. */
struct experiment experiment_of_request(struct call *call, const char *standard);
/* Fails the call if the experiment is deleted. */
void experiment_check_active(struct call *call, const struct experiment *experiment);

/* Finds an experiment by the text of its id. */
struct experiment experiment_by_id(struct call *call, const char *id);
struct experiment experiment_by_name(struct call *call, const char *name);

/* Makes an experiment and returns its id; the name must be free. location "": on the server. */
int64_t experiment_insert(struct call *call, const char *name, const char *location);

/* Restores the experiment with the runs that were deleted with it. */
void experiment_restore(struct call *call, int64_t id);

#endif
