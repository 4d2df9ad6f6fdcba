/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the run of a job: it begins and ends with the job, whatever status clients set in between. */
#include <assert.h>
#include <stdio.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/entries.h"
#include "daemon/mlflow/experiments.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/runs.h"
#include "daemon/mlflow/show.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

#define TAG_JOB     "gpuctl.job_id"
#define TAG_ATTEMPT "gpuctl.attempt"
#define TAG_NODES   "gpuctl.nodes"
#define TAG_GPUS    "gpuctl.gpus"

/* The tags that MLflow's client sets on a run that it makes. */
#define TAG_USER        "mlflow.user"
#define TAG_SOURCE_NAME "mlflow.source.name"
#define TAG_SOURCE_TYPE "mlflow.source.type"

static bool find_or_make(struct tracking *tracking, const struct tracking_job *job,
                         struct experiment *experiment, struct tracking_error *error)
{
    const char *name = job->experiment != NULL ? job->experiment : "Default";
    bool there = false;
    if ((job->experiment_id != NULL &&
         !experiment_by_id(tracking, job->experiment_id, experiment, &there, error)) ||
        (!there && !experiment_by_name(tracking, name, experiment, &there, error))) {
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

static bool put_number(struct tracking *tracking, int64_t run, const char *name, int64_t value,
                       struct tracking_error *error)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    return tag_put(tracking, run, name, digits, error);
}

/* Sets the tags that a client leaves out when it continues a run. */
static bool put_source(struct tracking *tracking, const struct tracking_job *job, int64_t run,
                       struct tracking_error *error)
{
    return (job->owner == NULL || tag_put(tracking, run, TAG_USER, job->owner, error)) &&
           tag_put(tracking, run, TAG_SOURCE_NAME, job->run_name != NULL ? job->run_name : job->job_id,
                   error) &&
           tag_put(tracking, run, TAG_SOURCE_TYPE, "JOB", error);
}

static bool make_run(struct tracking *tracking, const struct tracking_job *job, int64_t *ret_key,
                     struct tracking_error *error)
{
    autoexperiment struct experiment experiment = {0};
    autofree char *name = job->run_name != NULL ? value_cut_tag(job->run_name) : name_draw_run();
    struct new_run new_run = {
        .id = job->run_id, .name = name, .user_id = job->owner, .start_ms = job->start_ms};
    return name_check_run_id(job->run_id, error) && find_or_make(tracking, job, &experiment, error) &&
           run_insert(tracking, &experiment, &new_run, ret_key, error) &&
           put_source(tracking, job, *ret_key, error);
}

bool work_job_begin(struct tracking *tracking, const struct tracking_job *job, struct tracking_error *error)
{
    struct run run;
    bool there;
    if (!run_find(tracking, job->run_id, &run, &there, error)) {
        return false;
    }
    bool ok = there ? database_run(tracking, error, QUERY_RUN_GO_ON, "i", run.key)
                    : make_run(tracking, job, &run.key, error);
    return ok && tag_put(tracking, run.key, TAG_JOB, job->job_id, error) &&
           put_number(tracking, run.key, TAG_ATTEMPT, job->attempt, error) &&
           put_number(tracking, run.key, TAG_NODES, job->nodes, error) &&
           put_number(tracking, run.key, TAG_GPUS, job->gpus, error);
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

bool work_jobs_running(struct tracking *tracking, bool (*visit)(const char *job_id, void *closure),
                       void *closure, struct tracking_error *error)
{
    autoquery sqlite3_stmt *row =
        database_query(tracking, QUERY_JOBS_RUNNING, "ti", TAG_JOB, (int64_t)LIMIT_TRACKING_ROWS);
    bool there, ok;
    while ((ok = database_step(tracking, row, &there, error)) && there) {
        if (!visit(column_text(row, 0), closure)) {
            break;
        }
    }
    return ok;
}

static bool append_summary(struct tracking *tracking, sqlite3_stmt *run, struct text *out,
                           struct tracking_error *error)
{
    int64_t number = sqlite3_column_int64(run, 2);
    autoquery sqlite3_stmt *experiment = database_query(tracking, QUERY_EXPERIMENT, "i", number);
    bool there;
    if (!database_step(tracking, experiment, &there, error)) {
        return false;
    }
    assert(there);
    text_append(out, "\"run_id\":");
    show_text(out, column_text(run, 1));
    text_append(out, ",\"run_name\":");
    show_text(out, column_text(run, 3));
    text_printf(out, ",\"experiment_id\":\"%lld\",\"experiment\":", (long long)number);
    show_text(out, column_text(experiment, 1));
    text_append(out, ",\"status\":");
    show_text(out, column_text(run, 5));
    return true;
}

bool work_run_summary(struct tracking *tracking, const char *run_id, struct text *out, bool *ret_there,
                      int64_t *ret_experiment, struct tracking_error *error)
{
    autoquery sqlite3_stmt *run = database_query(tracking, QUERY_RUN, "t", run_id);
    bool ok = database_step(tracking, run, ret_there, error);
    if (!ok || !*ret_there) {
        return ok;
    }
    *ret_experiment = sqlite3_column_int64(run, 2);
    return append_summary(tracking, run, out, error);
}
