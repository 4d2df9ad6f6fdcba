/* SPDX-License-Identifier: Apache-2.0 */
/* Ties jobs to runs. An attempt has one run, whose id follows from the attempt id, so that its ranks can be
 * told before it exists. The run is made when a rank first speaks to the tracking store or logs a metric of
 * the job, or when a node has first measured the attempt: a short job that does neither costs nothing. The
 * run is there before the words of that rank are worked on. Its final status says how the attempt ended,
 * whatever its ranks have set, and comes after the last of the attempt's metrics. A run that the job's own
 * environment names is never touched. */
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/worker.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/mlflow/tracker.h"
#include "daemon/http/orders/specs.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/base/text/table.h"
#include "proto/spec/jobspec.h"

/* The newest attempt of a job that has a run. */
struct job_run {
    int64_t job_key;
    uint64_t attempt_id;
    struct beginning *beginning; /* NULL: it is done */
    char *owner, *project;       /* of the job */
    UT_hash_handle hh;
};

struct job_runs {
    struct server *server;
    struct job_run *items; /* by job_key: live attempts only */
    struct ending *ends;   /* by attempt id */
    int64_t newer_key;     /* jobs below it are older than this server: their ranks may have spoken before */
};

struct beginning {
    struct store_task task; /* first */
    struct job_runs *runs;
    int64_t job_key;
    struct tracking_job job; /* its texts are those below */
    char run_id[TRACKING_RUN_ID_BYTES];
    char job_id[ID_LENGTH + 1];
    char *experiment_id, *experiment, *name; /* owned; NULL: none */
    struct tracker tracker;                  /* the job's ranks */
};

/* The end of an attempt, which waits for its metrics. */
struct ending {
    struct store_task task; /* first */
    struct job_runs *runs;
    uint64_t attempt_id;
    char run_id[TRACKING_RUN_ID_BYTES];
    enum tracking_status status;
    int64_t at_ms;
    bool given; /* to the store */
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

static void drop(struct job_runs *runs, struct job_run *run)
{
    HASH_DEL(runs->items, run);
    free(run->owner);
    free(run->project);
    free(run);
}

void job_runs_destroy(struct job_runs *runs)
{
    if (runs == NULL) {
        return;
    }
    struct job_run *run, *next;
    struct ending *end, *next_end;
    HASH_ITER (hh, runs->items, run, next) {
        drop(runs, run);
    }
    HASH_ITER (hh, runs->ends, end, next_end) {
        HASH_DEL(runs->ends, end);
        free(end);
    }
    free(runs);
}

static struct job_run *find(const struct job_runs *runs, int64_t job_key)
{
    struct job_run *run;
    HASH_FIND(hh, runs->items, &job_key, sizeof job_key, run);
    return run;
}

/* --- the beginning -------------------------------------------------------------------------------------- */

static void beginning_free(struct beginning *beginning)
{
    free(beginning->experiment_id);
    free(beginning->experiment);
    free(beginning->name);
    tracker_end(&beginning->tracker);
    free(beginning);
}

static bool begin_work(struct store_task *task, struct tracking *tracking, struct tracking_error *error)
{
    return tracking_job_begin(tracking, &((const struct beginning *)task)->job, error);
}

static void begin_done(struct store_task *task, const struct tracking_error *error)
{
    struct beginning *beginning = (struct beginning *)task;
    struct job_run *run = find(beginning->runs, beginning->job_key);
    if (run != NULL && run->beginning == beginning) {
        run->beginning = NULL;
    }
    if (error != NULL) {
        log_warning("run refused", "run=%s job=%s text=\"%s\"", beginning->run_id, beginning->job_id,
                    error->message);
    }
    beginning_free(beginning);
}

static char *copy_of(const char *text)
{
    return text != NULL && *text != '\0' ? xstrdup(text) : NULL;
}

/* The experiment is the one that the job names as MLflow's client would, else one of the job's name. */
static bool read_job(struct beginning *beginning, struct reader *reader, struct err *err)
{
    autorows struct rows rows = reader_job_by_key(reader, beginning->job_key, err);
    struct job_record job;
    if (rows_job(&rows, &job)) {
        autojson json_t *spec = json_parse(job.birth.spec, job.birth.spec_length, NULL);
        const char *named = specs_variable(spec, "MLFLOW_EXPERIMENT_NAME");
        struct tracking_job *told = &beginning->job;
        told->experiment_id = beginning->experiment_id =
            copy_of(specs_variable(spec, "MLFLOW_EXPERIMENT_ID"));
        told->experiment = beginning->experiment = copy_of(named != NULL ? named : job.birth.name);
        told->run_name = beginning->name = copy_of(job.birth.name);
        tracker_of_job(&beginning->tracker, beginning->runs->server->projects, job.birth.owner,
                       job.birth.project);
        told->rights = &beginning->tracker.rights;
        told->owner = beginning->tracker.who.name;
        told->project = tracker_project(&beginning->tracker);
        told->gpus = job.birth.gpus;
    }
    return !rows.failed;
}

static bool count_nodes(struct reader *reader, uint64_t attempt_id, int64_t *nodes, struct err *err)
{
    autorows struct rows rows = reader_members(reader, attempt_id, err);
    struct member_row row;
    while (rows_member(&rows, &row)) {
        ++*nodes;
    }
    return !rows.failed;
}

/* Whether the ranks were told of our run: the agent's contract has the same rule. */
static bool is_told(const json_t *spec)
{
    const json_t *env = json_object_get(spec, "env");
    return json_object_get(env, "MLFLOW_TRACKING_URI") == NULL &&
           json_object_get(env, "MLFLOW_RUN_ID") == NULL;
}

/* *ret_beginning NULL: the ranks were told of no run of ours. */
static bool begin(struct job_runs *runs, uint64_t attempt_id, const struct attempt_record *attempt,
                  struct beginning **ret_beginning, struct err *err)
{
    struct server *server = runs->server;
    autojson json_t *spec = specs_get(server->specs, attempt->job_key, err);
    *ret_beginning = NULL;
    if (spec == NULL || !is_told(spec)) {
        return spec != NULL;
    }
    struct beginning *beginning = xzalloc(sizeof *beginning);
    beginning->task = (struct store_task){.server = server, .work = begin_work, .done = begin_done};
    beginning->runs = runs;
    beginning->job_key = attempt->job_key;
    memcpy(beginning->job_id, attempt->job_id, sizeof beginning->job_id);
    rank_run_id(server->rank_key, attempt_id, beginning->run_id);
    beginning->job = (struct tracking_job){.run_id = beginning->run_id,
                                           .job_id = beginning->job_id,
                                           .attempt = attempt->number,
                                           .start_ms = server->wall_ms,
                                           .late = attempt->state == ATTEMPT_ENDED};
    if (!read_job(beginning, server->reader, err) ||
        !count_nodes(server->reader, attempt_id, &beginning->job.nodes, err)) {
        beginning_free(beginning);
        return false;
    }
    store_task_give(&beginning->task);
    *ret_beginning = beginning;
    return true;
}

static struct job_run *make(struct job_runs *runs, int64_t job_key, struct err *err)
{
    autorows struct rows rows = reader_job_by_key(runs->server->reader, job_key, err);
    struct job_record job;
    bool there = rows_job(&rows, &job);
    if (rows.failed) {
        return NULL;
    }
    struct job_run *run = xzalloc(sizeof *run);
    run->job_key = job_key;
    run->owner = xstrdup(there ? job.birth.owner : "");
    run->project = xstrdup(there ? job.birth.project : DEFAULT_PROJECT);
    HASH_ADD(hh, runs->items, job_key, sizeof run->job_key, run);
    return run;
}

/* The attempt has not ended. A beginning that waits for room is tried again at once, for the rank that
 * speaks. */
static bool begin_once(struct job_runs *runs, uint64_t attempt_id, const struct attempt_record *attempt,
                       struct err *err)
{
    struct job_run *run = find(runs, attempt->job_key);
    struct beginning *beginning;
    if (run != NULL && run->attempt_id == attempt_id) {
        if (run->beginning != NULL) {
            store_task_hurry(&run->beginning->task);
        }
        return true;
    }
    if (!begin(runs, attempt_id, attempt, &beginning, err)) {
        return false;
    }
    if (run == NULL && (run = make(runs, attempt->job_key, err)) == NULL) {
        return false; /* the beginning goes on by itself */
    }
    run->attempt_id = attempt_id;
    run->beginning = beginning;
    return true;
}

bool job_runs_begin(struct job_runs *runs, uint64_t attempt_id, const char **ret_owner,
                    const char **ret_project, struct err *err)
{
    bool found;
    struct attempt_record attempt;
    if (!reader_attempt_record(runs->server->reader, attempt_id, &found, &attempt, err)) {
        return false;
    }
    if (!found || attempt.state == ATTEMPT_ENDED) {
        return err_set(err, ERR_UNAUTHENTICATED, "the job's attempt has ended");
    }
    if (!begin_once(runs, attempt_id, &attempt, err)) {
        return false;
    }
    const struct job_run *run = find(runs, attempt.job_key);
    *ret_owner = run->owner;
    *ret_project = run->project;
    return true;
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

static bool end_work(struct store_task *task, struct tracking *tracking, struct tracking_error *error)
{
    const struct ending *end = (const struct ending *)task;
    return tracking_job_end(tracking, end->run_id, end->status, end->at_ms, error);
}

/* An attempt that never tracked has no run. */
static void end_done(struct store_task *task, const struct tracking_error *error)
{
    struct ending *end = (struct ending *)task;
    if (error != NULL && error->code != TRACKING_RESOURCE_DOES_NOT_EXIST) {
        log_warning("run unfinished", "run=%s text=\"%s\"", end->run_id, error->message);
    }
    HASH_DEL(end->runs->ends, end);
    free(end);
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

/* From now on the end of the attempt waits for its metrics; false: it does so already. */
static bool hold_end(struct job_runs *runs, const struct attempt_row *row)
{
    struct ending *end;
    HASH_FIND(hh, runs->ends, &row->attempt_id, sizeof row->attempt_id, end);
    if (end != NULL) {
        return false;
    }
    end = xzalloc(sizeof *end);
    end->task = (struct store_task){.server = runs->server, .work = end_work, .done = end_done};
    end->runs = runs;
    end->attempt_id = row->attempt_id;
    end->status = status_of(row->cause);
    end->at_ms = row->ended_ms;
    rank_run_id(runs->server->rank_key, row->attempt_id, end->run_id);
    HASH_ADD(hh, runs->ends, attempt_id, sizeof end->attempt_id, end);
    struct job_run *run = find(runs, row->job_key);
    if (run != NULL && run->attempt_id == row->attempt_id) {
        drop(runs, run);
    }
    return true;
}

void job_runs_copied(struct job_runs *runs, uint64_t attempt_id)
{
    struct ending *end;
    HASH_FIND(hh, runs->ends, &attempt_id, sizeof attempt_id, end);
    if (end != NULL && !end->given && !metric_copies_busy(runs->server->mlflow->copies, attempt_id)) {
        end->given = true;
        store_task_give(&end->task);
    }
}

/* A controller that was killed in between may have copied nothing of the metrics that have come. */
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

/* Ends the runs of the job's attempts that have ended; attempt_id not 0: of this one alone. */
static void end_attempts(struct job_runs *runs, int64_t job_key, const char *job_id, uint64_t attempt_id)
{
    struct err err;
    autorows struct rows rows = reader_attempts(runs->server->reader, job_key, ALL_ATTEMPTS, &err);
    struct attempt_row row;
    bool ok = true;
    while (rows_attempt(&rows, &row)) {
        bool asked = attempt_id == 0 || row.attempt_id == attempt_id;
        if (asked && row.state == ATTEMPT_ENDED && hold_end(runs, &row)) {
            ok = copy_last(runs, &row, job_id, &err) && ok;
            job_runs_copied(runs, row.attempt_id);
        }
    }
    if (!ok || rows.failed) {
        log_warning("run unfinished", "job=%s text=\"%s\"", job_id, err.text);
    }
}

void job_runs_touched(struct job_runs *runs, int64_t job_key, const char *job_id)
{
    if (find(runs, job_key) != NULL || job_key < runs->newer_key) {
        end_attempts(runs, job_key, job_id, 0);
    }
}

/* --- metrics -------------------------------------------------------------------------------------------- */

/* The first metrics of an attempt may come after its end, when the disk was full before. */
void job_runs_metrics(struct job_runs *runs, uint64_t attempt_id, const struct attempt_record *attempt,
                      int64_t rank)
{
    struct err err;
    struct beginning *late = NULL;
    if (!(attempt->state == ATTEMPT_ENDED ? begin(runs, attempt_id, attempt, &late, &err)
                                          : begin_once(runs, attempt_id, attempt, &err))) {
        log_warning("run refused", "job=%s text=\"%s\"", attempt->job_id, err.text);
        return;
    }
    metric_copies_begin(runs->server->mlflow->copies, attempt_id, attempt->job_id, attempt->number, rank);
    if (late != NULL) {
        end_attempts(runs, attempt->job_key, attempt->job_id, attempt_id);
    }
}
