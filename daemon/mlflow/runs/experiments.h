/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and makes experiments. */
#ifndef MLFLOW_EXPERIMENTS_H
#define MLFLOW_EXPERIMENTS_H

#include <stdlib.h>

#include "daemon/mlflow/call/rights.h"

struct experiment {
    int64_t id; /* -1: there is none */
    bool deleted;
    char *artifact_location, *owner, *project; /* owned */
};

static inline void cleanup_experiment(struct experiment *experiment)
{
    free(experiment->artifact_location);
    free(experiment->owner);
    free(experiment->project);
}
#define autoexperiment __attribute__((cleanup(cleanup_experiment)))

/* The experiment of the member experiment_id, else the standard one; standard NULL: the member is required.
 * Fails the call with RESOURCE_DOES_NOT_EXIST if the sender sees no such experiment, and with
 * PERMISSION_DENIED if the sender has not the right. */
struct experiment experiment_of_request(struct call *call, enum tracking_right right, const char *standard);
/* Fails the call if the experiment is deleted. */
void experiment_check_active(struct call *call, const struct experiment *experiment);

/* Finds an experiment by the text of its id, whosever it is. */
struct experiment experiment_by_id(struct call *call, const char *id);
/* Several people may have experiments of one name. The sender finds one in its project first, there its own,
 * then one of its own elsewhere or everybody's, and if it is no rank, one in other projects of its. */
struct experiment experiment_by_name(struct call *call, const char *name);

/* Makes an experiment of the sender and returns its id; the name must be free. location "": on the server. */
int64_t experiment_insert(struct call *call, const char *name, const char *location, const char *project);

static inline struct holder experiment_holder(const struct experiment *experiment)
{
    return (struct holder){experiment->owner, experiment->project};
}
/* Whose a run or a model is that the sender makes in it. */
struct holder experiment_holder_of_new(struct call *call, const struct experiment *experiment);
/* Whether everybody may add to it, and sees there what is theirs alone. */
static inline bool experiment_is_open(const struct experiment *experiment)
{
    return experiment->owner[0] == '\0';
}

/* Restores the experiment with the runs that were deleted with it. */
void experiment_restore(struct call *call, int64_t id);

#endif
