/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the run of a job: it begins with the job and ends with it, and what clients set in between does not
 * count. */
#include <stdio.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/entries.h"
#include "daemon/mlflow/experiments.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/runs.h"
#include "proto/base/cleanup.h"

#define TAG_JOB     "gpuctl.job_id"
#define TAG_ATTEMPT "gpuctl.attempt"

static bool find_or_make(struct tracking *tracking, const struct tracking_job *job,
                         struct experiment *experiment, struct tracking_error *error)
{
    const char *name = job->experiment != NULL ? job->experiment : "Default";
    bool there;
    if (!experiment_by_name(tracking, name, experiment, &there, error)) {
        return false;
    }
    if (there) {
        bool ok = !experiment->deleted || experiment_restore(tracking, experiment->id, job->start_ms, error);
        experiment->deleted = false;
        return ok;
    }
    return experiment_insert(tracking, name, NULL, job->start_ms, &experiment->id, error) &&
           experiment_by_name(tracking, name, experiment, &there, error);
}

static bool make_run(struct tracking *tracking, const struct tracking_job *job, int64_t *ret_key,
                     struct tracking_error *error)
{
    autoexperiment struct experiment experiment = {0};
    autofree char *name = job->run_name != NULL ? value_cut_tag(job->run_name) : name_draw_run();
    struct new_run new_run = {
        .id = job->run_id, .name = name, .user_id = job->owner, .start_ms = job->start_ms};
    return name_check_run_id(job->run_id, error) && find_or_make(tracking, job, &experiment, error) &&
           run_insert(tracking, &experiment, &new_run, ret_key, error);
}

bool work_job_begin(struct tracking *tracking, const struct tracking_job *job, struct tracking_error *error)
{
    struct run run;
    bool there;
    char attempt[24];
    snprintf(attempt, sizeof attempt, "%lld", (long long)job->attempt);
    if (!run_find(tracking, job->run_id, &run, &there, error)) {
        return false;
    }
    bool ok = there ? database_run(tracking, error, QUERY_RUN_GO_ON, "i", run.key)
                    : make_run(tracking, job, &run.key, error);
    return ok && tag_put(tracking, run.key, TAG_JOB, job->job_id, error) &&
           tag_put(tracking, run.key, TAG_ATTEMPT, attempt, error);
}

bool work_job_end(struct tracking *tracking, const char *run_id, enum tracking_status status, int64_t end_ms,
                  struct tracking_error *error)
{
    static const char *const words[] = {
#define AS_WORD(name) [TRACKING_RUN_##name] = #name,
        TRACKING_STATUSES(AS_WORD)
#undef AS_WORD
    };
    struct run run;
    return run_find(tracking, run_id, &run, NULL, error) &&
           database_run(tracking, error, QUERY_RUN_STATUS, "it", run.key, words[status]) &&
           database_run(tracking, error, QUERY_RUN_END, "ii", run.key, end_ms);
}
