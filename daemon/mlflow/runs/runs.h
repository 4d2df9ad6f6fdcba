/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and makes runs. */
#ifndef MLFLOW_RUNS_H
#define MLFLOW_RUNS_H

#include "daemon/mlflow/call/call.h"
#include "daemon/mlflow/runs/experiments.h"

struct run {
    int64_t key, experiment; /* key 0: there is none */
    int deleted;             /* enum run_deleted */
};

/* Whosever it is. */
struct run run_look_up(struct call *call, const char *run_id);
/* Who sees its experiment sees a run, too, unless the experiment is everybody's. Fails the call with
 * RESOURCE_DOES_NOT_EXIST if the sender sees no such run, and with PERMISSION_DENIED if it has not the
 * right. */
struct run run_find(struct call *call, enum tracking_right right, const char *run_id);
/* The run that the request names, to be changed; it must not be deleted. */
struct run run_find_active(struct call *call);

struct new_run {
    const char *id;
    const char *name;
    const char *user_id;
    int64_t start_ms;
};

/* Makes a run in RUNNING, with its name as the tag mlflow.runName, and returns its key. The experiment must
 * not be deleted. */
int64_t run_insert(struct call *call, const struct experiment *experiment, const struct new_run *new_run);
/* Draws a name or cuts the given one to the length of a tag; the caller frees it. */
char *run_name(const char *given);

#endif
