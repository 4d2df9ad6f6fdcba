/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of MLflow's clients, /api/2.0/mlflow and /api/2.0/mlflow-artifacts, and the runs of jobs. */
#ifndef HTTP_MLFLOW_H
#define HTTP_MLFLOW_H

#include "daemon/core/core.h"
#include "daemon/http/parts.h"
#include "daemon/http/router.h"
#include "daemon/mlflow/tracking.h"

struct server;
struct mlflow;

/* Opens mlflow.db, artifacts/ and the secret of rank tokens in the state folder, and starts the thread on
 * which the tracking store works. After the reader and the loop. */
bool mlflow_open(struct server *server, struct err *err);
/* Does what was asked, then ends the thread. After all requests have ended. */
void mlflow_close(struct server *server);

/* --- mlflow.c: routes */
void mlflow_call(struct request *request);
void mlflow_server_info(struct request *request);
void mlflow_health(struct request *request);
/* true when MLflow's client asks. */
bool mlflow_asks(const struct request *request);

/* --- mlflow_artifacts.c: routes */
extern const struct body_sink mlflow_artifacts_sink;
void mlflow_artifacts_put(struct request *request);
void mlflow_artifacts_get(struct request *request);
void mlflow_artifacts_list(struct request *request);
void mlflow_artifacts_delete(struct request *request);

/* --- mlflow_error.c */

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
bool job_runs_begin(struct job_runs *runs, uint64_t epoch, struct err *err);
/* Something has happened to the job: sets the final status of its run once the attempt is over. */
void job_runs_touched(struct job_runs *runs, const struct job_touch *job);

/* --- for these files alone */

struct mlflow {
    struct tracking *tracking; /* touched on the worker's thread only */
    struct worker *worker;     /* of the tracking store */
    struct worker *disk;       /* of the artifacts, whose syncs nobody else waits for */
    struct watch worker_watch, disk_watch;
    struct artifacts *artifacts;
    struct job_runs *runs;
    size_t waiting; /* calls that the worker has */
};

#endif
