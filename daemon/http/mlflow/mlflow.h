/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of MLflow's clients, /api/2.0/mlflow and /api/2.0/mlflow-artifacts, and the runs of jobs. */
#ifndef HTTP_MLFLOW_H
#define HTTP_MLFLOW_H

#include "daemon/core/core.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/route.h"
#include "daemon/mlflow/tracking.h"
#include "proto/wire/messages.h"

struct server;
struct mlflow;

/* Opens mlflow.db, artifacts/ and the secret of rank tokens in the state folder, and starts the thread on
 * which the tracking store works. After the reader and the loop. */
bool mlflow_open(struct server *server, struct err *err);
/* Does what was asked, then ends the thread. After all requests have ended. */
void mlflow_close(struct server *server);

/* --- mlflow.c */
/* true when MLflow's client asks. */
bool mlflow_asks(const struct request *request);

/* --- mlflow_methods.c */

struct mlflow_method {
    enum method method;
    const char *path;        /* below /api/2.0/mlflow/; a {...} stands for one part, which is a parameter */
    tracking_endpoint *work; /* NULL: artifacts/list */
    bool adds;               /* what is stored grows by it */
};

/* NULL: there is none. */
const struct mlflow_method *mlflow_method_find(enum method method, const char *path);
/* Puts the parameters in the path into the body, if that is an object. */
void mlflow_method_arguments(const struct mlflow_method *method, const char *path, json_t *body);

/* --- mlflow_error.c */

/* What a call that is not served is told; its method and path. */
#define MLFLOW_UNSERVED                                                                                      \
    "This server does not serve MLflow's call %s %s; docs/reference/mlflow.md of gpuctl lists the calls "    \
    "that it "                                                                                               \
    "serves"

/* true when errors of this path have MLflow's form. */
bool mlflow_has_path(const char *path);
/* Renders the error in it; returns the HTTP status. routed: the API has the path. */
unsigned mlflow_error_render(const struct err *err, bool routed, struct text *out);

/* --- mlflow_jobs.c */

/* A table of the runs that jobs have, by job. */
struct job_runs;
struct job_runs *job_runs_create(struct server *server, struct err *err);
void job_runs_destroy(struct job_runs *runs);
/* The ranks of an attempt speak: sees to it that its run is there before what they say is worked on.
 * ERR_UNAUTHENTICATED once the attempt is over. */
bool job_runs_begin(struct job_runs *runs, uint64_t attempt_id, struct err *err);
/* Metrics of the attempt were stored, of the node with that first rank: they go into its run, which is made
 * where there is none. */
void job_runs_metrics(struct job_runs *runs, uint64_t attempt_id, const struct attempt_record *attempt,
                      int64_t rank);
/* A node has measured the attempt. true: what it has measured is to go into its run, which is made where
 * there is none. false: the attempt is over, its ranks were told of no run of ours, or the job says by itself
 * whether MLflow is to measure. */
bool job_runs_measured(struct job_runs *runs, uint64_t attempt_id);
/* Something has happened to the job: sets the final status of its run once the attempt is over and all its
 * metrics are in it. */
void job_runs_touched(struct job_runs *runs, int64_t job_key, const char *job_id);
/* All metrics of the attempt that have come are in its run. */
void job_runs_copied(struct job_runs *runs, uint64_t attempt_id);

/* --- mlflow_recovery.c */

/* Has job_runs_touched look at all jobs that the tracking store holds for running: the controller may have
 * ended before it said so. When the server opens. */
bool mlflow_recover(struct server *server, struct err *err);

/* --- mlflow_metrics.c */

/* A table of the streams that are being copied into runs. */
struct metric_copies;
struct metric_copies *metric_copies_create(struct server *server);
/* After the worker has ended. Takes NULL. */
void metric_copies_destroy(struct metric_copies *copies);
/* Copies what is stored of the stream and is not in the run yet; job_runs_copied is told when it is done. */
void metric_copies_begin(struct metric_copies *copies, uint64_t attempt_id, const char *job_id,
                         int64_t attempt, int64_t stream);
bool metric_copies_busy(const struct metric_copies *copies, uint64_t attempt_id);

/* --- mlflow_samples.c */

/* What attempts use on a node: goes into their runs. Takes what the samples own, and leaves them to be freed.
 */
void mlflow_samples(struct server *server, const char *node, struct sample *samples, size_t count);

/* --- for these files alone */

struct mlflow {
    struct tracking *tracking; /* touched on the worker's thread only */
    struct worker *worker;     /* of the tracking store */
    struct worker *disk;       /* of the artifacts, whose syncs nobody else waits for */
    struct watch worker_watch, disk_watch;
    struct artifacts *artifacts;
    struct job_runs *runs;
    struct metric_copies *copies;
    size_t waiting; /* calls that the worker has */
    size_t samples; /* the same */
    bool unsettled; /* a sync has failed: nothing is answered with yes any more */
    struct err unsettled_by;
};

#endif
