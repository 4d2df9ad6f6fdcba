/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the tie between jobs and runs. An attempt has one run, whose id follows from the attempt id, so that
 * its ranks can be told before it exists. The run is made when a rank first speaks to the tracking store or
 * logs a metric of the job, or a node has first measured the attempt: a short job that does neither costs
 * nothing. It promises that the run is there before what that rank says is worked on, and that its final
 * status is what became of the attempt, whatever the ranks have set when they ended, and comes after the last
 * of the attempt's metrics. A run that the job's own environment names is never touched. */
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/worker.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/orders/specs.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/base/log.h"
#include "proto/base/table.h"

/* The newest attempt of a job whose ranks have spoken. */
struct job_run {
    int64_t job_key;
    uint64_t attempt_id;
    UT_hash_handle hh;
};

struct job_runs {
    struct server *server;
    struct job_run *items; /* by job_key: live attempts only */
    struct errand *ends;   /* by attempt id: ends that wait for metrics */
    int64_t
        newer_key; /* jobs below were there when the server was opened: their ranks may have spoken before */
};

/* What the worker does: the beginning of a run, or its end. */
struct errand {
    struct task task; /* first */
    struct job_runs *runs;
    struct tracking *tracking;
    char run_id[TRACKING_RUN_ID_BYTES];
    bool ok;
    struct tracking_error error;
    /* Of the beginning. */
    char *experiment_id, *experiment, *name, *owner; /* NULL: none */
    char job_id[ID_LENGTH + 1];
    int64_t job_key, attempt, nodes, gpus;
    /* Of the end. */
    struct deadline again; /* the store's disk was full */
    enum tracking_status status;
    int64_t at_ms;
    uint64_t attempt_id;
    UT_hash_handle hh;
};

/* --- opening -------------------------------------------------------------------------------------------- */

struct job_runs *job_runs_create(struct server *server, struct err *err)
{
    const struct job_filter newest = {.limit = 1};
    autorows struct rows rows = reader_jobs(server->reader, &newest, err);
    struct job_record job;
    int64_t newer_key = rows_job(&rows, &job) ? job.birth.key + 1 : 0;
    if (rows.failed) {
        return NULL;
    }
    struct job_runs *runs = xzalloc(sizeof *runs);
    runs->server = server;
    runs->newer_key = newer_key;
    return runs;
}

static void errand_free(struct errand *errand)
{
    free(errand->experiment_id);
    free(errand->experiment);
    free(errand->name);
    free(errand->owner);
    free(errand);
}

void job_runs_destroy(struct job_runs *runs)
{
    if (runs == NULL) {
        return;
    }
    struct job_run *run, *next;
    struct errand *end, *next_end;
    HASH_ITER (hh, runs->items, run, next) {
        HASH_DEL(runs->items, run);
        free(run);
    }
    HASH_ITER (hh, runs->ends, end, next_end) {
        HASH_DEL(runs->ends, end);
        deadline_clear(runs->server->deadlines, &end->again);
        errand_free(end);
    }
    free(runs);
}

static struct job_run *find(const struct job_runs *runs, int64_t job_key)
{
    struct job_run *run;
    HASH_FIND(hh, runs->items, &job_key, sizeof job_key, run);
    return run;
}

/* --- errands -------------------------------------------------------------------------------------------- */

static struct errand *errand_create(struct job_runs *runs, uint64_t attempt_id,
                                    void (*work)(struct task *task), void (*done)(struct task *task))
{
    struct errand *errand = xzalloc(sizeof *errand);
    errand->task = (struct task){.work = work, .done = done};
    errand->runs = runs;
    errand->attempt_id = attempt_id;
    errand->tracking = runs->server->mlflow->tracking;
    rank_run_id(runs->server->rank_key, attempt_id, errand->run_id);
    return errand;
}

/* The store may do it later: its disk is full, say. Once the server closes there is no later. */
static bool may_go_later(const struct errand *errand)
{
    return !errand->ok && errand->error.code == TRACKING_TEMPORARILY_UNAVAILABLE &&
           errand->runs->server->mlflow != NULL;
}

/* --- the beginning -------------------------------------------------------------------------------------- */

static void begin_work(struct task *task)
{
    struct errand *errand = (struct errand *)task;
    const struct tracking_job job = {.run_id = errand->run_id,
                                     .experiment_id = errand->experiment_id,
                                     .experiment = errand->experiment,
                                     .run_name = errand->name,
                                     .owner = errand->owner,
                                     .job_id = errand->job_id,
                                     .attempt = errand->attempt,
                                     .nodes = errand->nodes,
                                     .gpus = errand->gpus,
                                     .start_ms = errand->at_ms};
    errand->ok = tracking_job_begin(errand->tracking, &job, &errand->error);
}

/* Whatever the ranks say next begins it again. */
static void forget_begin(const struct errand *errand)
{
    struct job_run *run = find(errand->runs, errand->job_key);
    if (run != NULL && run->attempt_id == errand->attempt_id) {
        HASH_DEL(errand->runs->items, run);
        free(run);
    }
}

static void begin_done(struct task *task)
{
    struct errand *errand = (struct errand *)task;
    if (may_go_later(errand)) {
        forget_begin(errand);
    }
    if (!errand->ok) {
        log_warning("run refused", "run=%s job=%s text=\"%s\"", errand->run_id, errand->job_id,
                    errand->error.message);
    }
    errand_free(errand);
}

static char *copy_of(const char *text)
{
    return text != NULL && *text != '\0' ? xstrdup(text) : NULL;
}

/* The experiment is the one that the job names as MLflow's client would, else one of the job's name. */
static bool read_job(struct errand *errand, struct reader *reader, struct err *err)
{
    autorows struct rows rows = reader_job_by_key(reader, errand->job_key, err);
    struct job_record job;
    if (rows_job(&rows, &job)) {
        autojson json_t *spec = json_parse(job.birth.spec, job.birth.spec_length, NULL);
        const char *named = specs_variable(spec, "MLFLOW_EXPERIMENT_NAME");
        errand->experiment_id = copy_of(specs_variable(spec, "MLFLOW_EXPERIMENT_ID"));
        errand->experiment = copy_of(named != NULL ? named : job.birth.name);
        errand->name = copy_of(job.birth.name);
        errand->owner = copy_of(job.birth.owner);
        errand->gpus = job.birth.gpus;
    }
    return !rows.failed;
}

static bool count_nodes(struct reader *reader, uint64_t epoch, int64_t *nodes, struct err *err)
{
    autorows struct rows rows = reader_members(reader, epoch, err);
    struct member_row row;
    while (rows_member(&rows, &row)) {
        ++*nodes;
    }
    return !rows.failed;
}

static const char *const own_names[] = {"MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID"};

/* Whether the ranks were told of our run: the agent's contract has the same rule. */
static bool is_told(const json_t *spec)
{
    const json_t *env = json_object_get(spec, "env");
    bool told = true;
    for (size_t i = 0; i < sizeof own_names / sizeof own_names[0]; i++) {
        told = told && json_object_get(env, own_names[i]) == NULL;
    }
    return told;
}

static bool begin(struct job_runs *runs, uint64_t attempt_id, const struct attempt_record *attempt,
                  struct err *err)
{
    struct server *server = runs->server;
    autojson json_t *spec = specs_get(server->specs, attempt->job_key, err);
    if (spec == NULL) {
        return false;
    }
    if (!is_told(spec)) {
        return true;
    }
    struct errand *errand = errand_create(runs, attempt_id, begin_work, begin_done);
    memcpy(errand->job_id, attempt->job_id, sizeof errand->job_id);
    errand->job_key = attempt->job_key;
    errand->attempt = attempt->number;
    errand->at_ms = server->wall_ms;
    if (!read_job(errand, server->reader, err) ||
        !count_nodes(server->reader, attempt_id, &errand->nodes, err)) {
        errand_free(errand);
        return false;
    }
    worker_give(server->mlflow->worker, &errand->task);
    return true;
}

/* The attempt has not ended. */
static bool begin_once(struct job_runs *runs, uint64_t attempt_id, const struct attempt_record *attempt,
                       struct err *err)
{
    struct job_run *run = find(runs, attempt->job_key);
    if (run != NULL && run->attempt_id == attempt_id) {
        return true;
    }
    if (!begin(runs, attempt_id, attempt, err)) {
        return false;
    }
    if (run == NULL) {
        run = xzalloc(sizeof *run);
        run->job_key = attempt->job_key;
        HASH_ADD(hh, runs->items, job_key, sizeof run->job_key, run);
    }
    run->attempt_id = attempt_id;
    return true;
}

bool job_runs_begin(struct job_runs *runs, uint64_t attempt_id, struct err *err)
{
    bool found;
    struct attempt_record attempt;
    if (!reader_attempt_record(runs->server->reader, attempt_id, &found, &attempt, err)) {
        return false;
    }
    if (!found || attempt.state == ATTEMPT_ENDED) {
        return err_set(err, ERR_UNAUTHENTICATED, "the job's attempt has ended");
    }
    return begin_once(runs, attempt_id, &attempt, err);
}

void job_runs_metrics(struct job_runs *runs, uint64_t attempt_id, const struct attempt_record *attempt,
                      int64_t rank)
{
    struct err err;
    if (attempt->state != ATTEMPT_ENDED && !begin_once(runs, attempt_id, attempt, &err)) {
        log_warning("run refused", "job=%s text=\"%s\"", attempt->job_id, err.text);
        return;
    }
    metric_copies_begin(runs->server->mlflow->copies, attempt_id, attempt->job_id, attempt->number, rank);
}

/* Set by a job: true has MLflow's client measure, false nobody. */
#define MEASURES "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"

bool job_runs_measured(struct job_runs *runs, uint64_t attempt_id)
{
    struct err err;
    bool found;
    struct attempt_record attempt;
    if (!reader_attempt_record(runs->server->reader, attempt_id, &found, &attempt, &err) || !found ||
        attempt.state == ATTEMPT_ENDED) {
        return false;
    }
    autojson json_t *spec = specs_get(runs->server->specs, attempt.job_key, &err);
    return spec != NULL && is_told(spec) && specs_variable(spec, MEASURES) == NULL &&
           begin_once(runs, attempt_id, &attempt, &err);
}

/* --- the end -------------------------------------------------------------------------------------------- */

static void end_work(struct task *task)
{
    struct errand *errand = (struct errand *)task;
    errand->ok =
        tracking_job_end(errand->tracking, errand->run_id, errand->status, errand->at_ms, &errand->error);
}

/* It waits among the ends, as it did for metrics. */
static void end_later(struct errand *errand)
{
    struct server *server = errand->runs->server;
    HASH_ADD(hh, errand->runs->ends, attempt_id, sizeof errand->attempt_id, errand);
    deadline_set(server->deadlines, &errand->again, server->now_ms + TRACKING_RETRY_MS);
}

static void end_due(struct deadline *deadline)
{
    struct errand *errand = deadline->closure;
    job_runs_copied(errand->runs, errand->attempt_id);
}

/* An attempt that never tracked has no run. */
static void end_done(struct task *task)
{
    struct errand *errand = (struct errand *)task;
    if (may_go_later(errand)) {
        end_later(errand);
        return;
    }
    if (!errand->ok && errand->error.code != TRACKING_RESOURCE_DOES_NOT_EXIST) {
        log_warning("run unfinished", "run=%s text=\"%s\"", errand->run_id, errand->error.message);
    }
    errand_free(errand);
}

static enum tracking_status status_of(enum cause cause)
{
    switch (cause) {
    case CAUSE_NONE:
        return TRACKING_RUN_FINISHED;
    case CAUSE_CANCELED:
    case CAUSE_TIME_LIMIT:
    case CAUSE_PREEMPTED:
        return TRACKING_RUN_KILLED;
    case CAUSE_RANK_FAILED:
    case CAUSE_OUT_OF_MEMORY:
    case CAUSE_EXEC_FAILED:
    case CAUSE_RESULT_MISSING:
    case CAUSE_DECLINED:
    case CAUSE_PORT_TAKEN:
    case CAUSE_PREPARE_EXPIRED:
    case CAUSE_NODE_LOST:
    case CAUSE_SHIM_LOST:
    case CAUSE_STAGE_FAILED:
    case CAUSE_DEPENDENCY:
    case CAUSE_TASK_FAILED:
    case CAUSE_COUNT:
        break;
    }
    return TRACKING_RUN_FAILED;
}

/* The end of the attempt waits for its metrics from now on; false: it does so already. */
static bool hold_end(struct job_runs *runs, const struct attempt_row *row)
{
    struct errand *errand;
    HASH_FIND(hh, runs->ends, &row->attempt_id, sizeof row->attempt_id, errand);
    if (errand != NULL) {
        return false;
    }
    errand = errand_create(runs, row->attempt_id, end_work, end_done);
    errand->status = status_of(row->cause);
    errand->at_ms = row->ended_ms;
    errand->again = (struct deadline){.due = end_due, .closure = errand};
    HASH_ADD(hh, runs->ends, attempt_id, sizeof errand->attempt_id, errand);
    struct job_run *run = find(runs, row->job_key);
    if (run != NULL && run->attempt_id == row->attempt_id) {
        HASH_DEL(runs->items, run);
        free(run);
    }
    return true;
}

void job_runs_copied(struct job_runs *runs, uint64_t attempt_id)
{
    struct errand *end;
    HASH_FIND(hh, runs->ends, &attempt_id, sizeof attempt_id, end);
    if (end != NULL && !metric_copies_busy(runs->server->mlflow->copies, attempt_id)) {
        HASH_DEL(runs->ends, end);
        deadline_clear(runs->server->deadlines, &end->again);
        worker_give(runs->server->mlflow->worker, &end->task);
    }
}

/* Of what has come already nothing may have been copied, when the controller was killed in between. */
static bool copy_last(struct job_runs *runs, const struct attempt_row *attempt, const char *job_id,
                      struct err *err)
{
    autorows struct rows rows = reader_members(runs->server->reader, attempt->attempt_id, err);
    struct member_row row;
    while (rows_member(&rows, &row)) {
        metric_copies_begin(runs->server->mlflow->copies, row.attempt_id, job_id, attempt->number,
                            row.first_rank);
    }
    return !rows.failed;
}

void job_runs_touched(struct job_runs *runs, int64_t job_key, const char *job_id)
{
    struct err err;
    if (find(runs, job_key) == NULL && job_key >= runs->newer_key) {
        return;
    }
    autorows struct rows rows = reader_attempts(runs->server->reader, job_key, &err);
    struct attempt_row row;
    bool ok = true;
    while (rows_attempt(&rows, &row)) {
        if (row.state == ATTEMPT_ENDED && hold_end(runs, &row)) {
            ok = copy_last(runs, &row, job_id, &err) && ok;
            job_runs_copied(runs, row.attempt_id);
        }
    }
    if (!ok || rows.failed) {
        log_warning("run unfinished", "job=%s text=\"%s\"", job_id, err.text);
    }
}
