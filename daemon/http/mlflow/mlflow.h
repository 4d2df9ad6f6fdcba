/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of MLflow's clients, /api/2.0/mlflow and /api/2.0/mlflow-artifacts, and the runs of jobs. */
#ifndef HTTP_MLFLOW_H
#define HTTP_MLFLOW_H

#include <stdatomic.h>

#include "daemon/core/core.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/searches.h"
#include "daemon/http/mlflow/store_task.h"
#include "daemon/http/request/route.h"
#include "daemon/mlflow/tracking.h"
#include "proto/wire/messages.h"

struct server;
struct mlflow;

/* Opens mlflow.db, artifacts/ and the secret of rank tokens in the state folder, and starts the threads of
 * the tracking store and of the artifacts. Call it after the reader and the loop are open. */
bool mlflow_open(struct server *server, struct err *err);
/* Finishes the work that was given to the threads and ends them. Call it after all requests have ended. */
void mlflow_close(struct server *server);

/* --- mlflow.c */

/* Starts a helper thread, whose finished tasks the server collects. */
bool mlflow_start_worker(struct server *server, struct worker **ret_worker, struct watch *watch,
                         struct err *err);
/* Whether MLflow's client sent the request. */
bool mlflow_asks(const struct request *request);

/* --- mlflow_error.c */

/* The answer to a call that is not served, with its method and path. */
#define MLFLOW_UNSERVED                                                                                      \
    "This server does not serve MLflow's call %s %s; docs/reference/mlflow.md of gpuctl lists the calls "    \
    "that it "                                                                                               \
    "serves"

/* Whether errors of this path have MLflow's form. */
bool mlflow_has_path(const char *path);
/* Renders the error in that form; returns the HTTP status. routed: the API has the path. */
unsigned mlflow_error_render(const struct err *err, bool routed, struct text *out);

/* --- mlflow_jobs.c */

/* A table of the runs that jobs have, by job. */
struct job_runs;
struct job_runs *job_runs_create(struct server *server, struct err *err);
void job_runs_destroy(struct job_runs *runs);
/* Makes the run of the attempt before a call of its ranks is worked on, and tells the owner and the project
 * of its job, which stay until the next call. ERR_UNAUTHENTICATED once the attempt has ended. */
bool job_runs_begin(struct job_runs *runs, uint64_t attempt_id, const char **ret_owner,
                    const char **ret_project, struct err *err);
/* Copies metrics of the attempt that were stored, of the node with that first rank, into its run, and makes
 * the run if there is none. */
void job_runs_metrics(struct job_runs *runs, uint64_t attempt_id, const struct attempt_record *attempt,
                      int64_t rank);
/* Whether the samples of the attempt belong into its run, which is made if there is none. false: the attempt
 * has ended, its ranks were told of no run of ours, or the job says by itself whether MLflow measures. */
bool job_runs_measured(struct job_runs *runs, uint64_t attempt_id);
/* Looks at a job that has changed: once its attempt has ended and all metrics are in the run, the run gets
 * its final status. */
void job_runs_touched(struct job_runs *runs, int64_t job_key, const char *job_id);
/* To be called when all metrics of the attempt that have come are in its run. */
void job_runs_copied(struct job_runs *runs, uint64_t attempt_id);

/* --- mlflow_metrics.c */

/* A table of the streams that are being copied into runs. */
struct metric_copies;
struct metric_copies *metric_copies_create(struct server *server);
/* After all its tasks have ended. Takes NULL. */
void metric_copies_destroy(struct metric_copies *copies);
/* Copies the part of the stream that is not in the run yet, and calls job_runs_copied at the end. */
void metric_copies_begin(struct metric_copies *copies, uint64_t attempt_id, const char *job_id,
                         int64_t attempt, int64_t stream);
bool metric_copies_busy(const struct metric_copies *copies, uint64_t attempt_id);

/* --- mlflow_samples.c */

/* Logs samples of attempts on a node into their runs. Takes the memory that the samples own; the caller frees
 * the array. */
void mlflow_samples(struct server *server, const char *node, struct sample *samples, size_t count);

/* Logs what an attempt has read and written on a node up to its end, as an exit says. In two steps, because
 * the exit may end the attempt: whether it belongs into the attempt's run, and once it counts. */
bool mlflow_wants_last(const struct server *server, const struct report_message *exit);
void mlflow_last(struct server *server, const struct report_message *exit);

/* --- for these files alone */

struct mlflow {
    struct tracking *tracking; /* touched on the worker's thread only */
    struct worker *worker;     /* of the tracking store */
    struct worker *disk;       /* of the artifacts, whose syncs nobody else waits for */
    struct watch worker_watch, disk_watch;
    struct artifacts *artifacts;
    struct job_runs *runs;
    struct metric_copies *copies;
    struct store_tasks tasks;
    struct searches searches;
    size_t waiting;        /* calls that the worker has */
    size_t samples;        /* samples that it has */
    atomic_bool unsettled; /* a sync has failed: no call succeeds any more */
    struct err unsettled_by;
};

#endif
