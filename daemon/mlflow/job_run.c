/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the run of a job: it begins and ends with the job, whatever status clients set in between. */
#include <stdio.h>
#include <string.h>

#include "daemon/mlflow/call/names.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/runs/pairs.h"
#include "daemon/mlflow/runs/runs.h"
#include "daemon/mlflow/tracking.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_tracking.h"

#define TAG_NODES "gpuctl.nodes"
#define TAG_GPUS  "gpuctl.gpus"

/* The tags that MLflow's client sets on a run that it makes. */
#define TAG_USER        "mlflow.user"
#define TAG_SOURCE_NAME "mlflow.source.name"
#define TAG_SOURCE_TYPE "mlflow.source.type"

/* The one that the job names by its id, if its owner may add to that; else by its name. */
static struct experiment find(struct call *call, const struct tracking_job *job, const char *name)
{
    if (job->experiment_id != NULL) {
        struct experiment experiment = experiment_by_id(call, job->experiment_id);
        if (experiment.id >= 0 && rights_have(call, TRACKING_ADDS, experiment_holder(&experiment))) {
            return experiment;
        }
        cleanup_experiment(&experiment);
    }
    return experiment_by_name(call, name);
}

static struct experiment find_or_make(struct call *call, const struct tracking_job *job)
{
    const char *name = job->experiment != NULL ? job->experiment : "Default";
    struct experiment experiment = find(call, job, name);
    if (experiment.id < 0) {
        cleanup_experiment(&experiment);
        experiment_insert(call, name, "", rights_project(call, NULL));
        return experiment_by_name(call, name);
    }
    if (experiment.deleted) {
        experiment_restore(call, experiment.id);
        experiment.deleted = false;
    }
    return experiment;
}

static void put_tag(struct call *call, int64_t run, const char *name, const char *value)
{
    pair_put_text(call, &run_tags, run, name, value);
}

static void put_number(struct call *call, int64_t run, const char *name, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    put_tag(call, run, name, digits);
}

/* Makes the run, with the tags that a client leaves out when it continues a run. */
static int64_t make_run(struct call *call, const struct tracking_job *job)
{
    name_check_run_id(call, job->run_id);
    autoexperiment struct experiment experiment = find_or_make(call, job);
    autofree char *name = run_name(job->run_name != NULL ? job->run_name : "");
    const struct new_run new_run = {
        .id = job->run_id, .name = name, .user_id = job->owner, .start_ms = job->start_ms};
    int64_t run = run_insert(call, &experiment, &new_run);
    if (job->owner != NULL) {
        put_tag(call, run, TAG_USER, job->owner);
    }
    put_tag(call, run, TAG_SOURCE_NAME, job->run_name != NULL ? job->run_name : job->job_id);
    put_tag(call, run, TAG_SOURCE_TYPE, "JOB");
    return run;
}

bool tracking_job_begin(struct tracking *tracking, const struct tracking_job *job,
                        struct tracking_error *error)
{
    const struct tracking_request request = {.rights = job->rights,
                                             .owner = job->owner,
                                             .project = job->project,
                                             .own_run = job->run_id,
                                             .now_ms = job->start_ms};
    struct call call = {.tracking = tracking, .request = request, .error = error};
    database_begin(&call, true);
    int64_t run = run_look_up(&call, job->run_id).key;
    if (run != 0 && job->late) {
        return database_end(&call);
    }
    if (run != 0) {
        database_run(&call, QUERY_RUN_GO_ON, "i", run);
    } else {
        run = make_run(&call, job);
    }
    put_tag(&call, run, TAG_JOB, job->job_id);
    if (job->project != NULL) {
        put_tag(&call, run, TAG_PROJECT, job->project);
    }
    put_number(&call, run, TAG_ATTEMPT, job->attempt);
    put_number(&call, run, TAG_NODES, job->nodes);
    put_number(&call, run, TAG_GPUS, job->gpus);
    return database_end(&call);
}

bool tracking_job_end(struct tracking *tracking, const char *run_id, enum tracking_status status,
                      int64_t end_ms, struct tracking_error *error)
{
    static const char *const words[] = {
#define AS_WORD(name) [TRACKING_RUN_##name] = #name,
        TRACKING_STATUSES(AS_WORD)
#undef AS_WORD
    };
    struct call call = {.tracking = tracking, .error = error};
    database_begin(&call, true);
    struct run run = run_find(&call, TRACKING_CHANGES, run_id);
    database_run(&call, QUERY_RUN_STATUS, "it", run.key, words[status]);
    database_run(&call, QUERY_RUN_END, "ii", run.key, end_ms);
    return database_end(&call);
}

json_t *tracking_jobs_running(struct tracking *tracking, struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .error = error};
    database_begin(&call, false);
    autofree char *ids =
        database_text(&call, QUERY_JOBS_RUNNING, "ti", TAG_JOB, (int64_t)LIMIT_TRACKING_ROWS);
    return database_end(&call) ? json_parse(ids, strlen(ids), NULL) : NULL;
}

bool tracking_job_runs(struct tracking *tracking, const char *asked, const char *page, struct text *out,
                       struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .out = out, .error = error};
    database_begin(&call, false);
    database_append(&call, QUERY_RUNS_OF_JOB, "tt", asked, page);
    return database_end(&call);
}
