/* SPDX-License-Identifier: Apache-2.0 */
/* The tracking store: experiments, runs, metrics, parameters and tags as clients of MLflow know them, in a
 * database of its own. Tracking data are not part of the controller's state and never pass the writer.
 *
 * All calls read or write a file and may take long: call them on a helper thread (struct worker), never on
 * the HTTP thread. Only one thread at a time may use a handle; it may be a different thread each time. Each
 * call is one transaction: when it returns, every later call sees its effect. The effect survives the end of
 * the program, but a loss of power may undo the last calls. */
#ifndef MLFLOW_TRACKING_H
#define MLFLOW_TRACKING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text.h"

/* --- the handle --- */

struct tracking;

/* Opens the database. If the file does not exist, makes it (mode 0600) with the experiment "Default" of id 0.
 * NULL with ERR_IO for a file of another program or with a newer schema; such a file is left as it is. */
struct tracking *tracking_open(const char *path, struct err *err);
/* Takes NULL. */
/* What requests have changed is on disk when this returns; false: some of it may never be. */
bool tracking_sync(struct tracking *tracking, struct err *err);
void tracking_close(struct tracking *tracking);

/* --- endpoints --- */

/* A request of a client. */
struct tracking_request {
    /* The decoded JSON body; for a GET, an object of its query parameters: each a string, a repeated one an
     * array of strings. NULL is {}. Only read, and only during the call. Unknown members are ignored; numbers
     * may come as text. */
    const json_t *body;
    const char *owner;   /* owner of the token: the user_id of runs without one */
    const char *own_run; /* for a rank: the run of its attempt, whether it exists or not; else NULL */
    int64_t now_ms;      /* wall clock */
};

/* The error codes of MLflow that calls return, and their HTTP status. */
#define TRACKING_CODES(X)                                                                                    \
    X(RESOURCE_DOES_NOT_EXIST, 404)                                                                          \
    X(RESOURCE_ALREADY_EXISTS, 400)                                                                          \
    X(INVALID_PARAMETER_VALUE, 400)                                                                          \
    X(INVALID_STATE, 400)                                                                                    \
    X(ENDPOINT_NOT_FOUND, 404)                                                                               \
    X(PERMISSION_DENIED, 403)                                                                                \
    X(TEMPORARILY_UNAVAILABLE, 503)                                                                          \
    X(INTERNAL_ERROR, 500)

enum tracking_code {
#define TRACKING_CODE_AS_ENUM(name, http) TRACKING_##name,
    TRACKING_CODES(TRACKING_CODE_AS_ENUM)
#undef TRACKING_CODE_AS_ENUM
};

struct tracking_error {
    enum tracking_code code;
    char message[1024]; /* for people */
};

const char *tracking_code_name(enum tracking_code code);
int tracking_code_http(enum tracking_code code);

/* Fills *error and returns false, so that a caller can return it at once. */
bool tracking_fail(struct tracking_error *error, enum tracking_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends {"error_code": ..., "message": ...}. */
void tracking_error_render(const struct tracking_error *error, struct text *out);

/* The signature of all endpoints. True: a JSON object was appended to *out, the body of a reply with status
 * 200. False: *error is set, and *out is unchanged. */
typedef bool tracking_endpoint(struct tracking *tracking, const struct tracking_request *request,
                               struct text *out, struct tracking_error *error);

/* Under /api/2.0/mlflow, with the names of MLflow: */
tracking_endpoint tracking_experiments_create;      /* POST experiments/create */
tracking_endpoint tracking_experiments_get;         /* GET  experiments/get */
tracking_endpoint tracking_experiments_get_by_name; /* GET  experiments/get-by-name */
tracking_endpoint tracking_experiments_search;      /* POST and GET experiments/search */
tracking_endpoint tracking_experiments_update;      /* POST experiments/update: new_name */
tracking_endpoint tracking_experiments_delete;      /* POST experiments/delete, with its runs */
tracking_endpoint tracking_experiments_restore;     /* POST experiments/restore, with its runs */
tracking_endpoint tracking_experiments_set_tag;     /* POST experiments/set-experiment-tag */
tracking_endpoint tracking_experiments_delete_tag;  /* POST experiments/delete-experiment-tag */
tracking_endpoint tracking_runs_create;             /* POST runs/create */
tracking_endpoint tracking_runs_get;                /* GET  runs/get */
tracking_endpoint tracking_runs_update;             /* POST runs/update */
tracking_endpoint tracking_runs_delete;             /* POST runs/delete */
tracking_endpoint tracking_runs_restore;            /* POST runs/restore */
tracking_endpoint tracking_runs_search;             /* POST runs/search */
tracking_endpoint tracking_runs_log_metric;         /* POST runs/log-metric */
tracking_endpoint tracking_runs_log_parameter;      /* POST runs/log-parameter */
tracking_endpoint tracking_runs_set_tag;            /* POST runs/set-tag */
tracking_endpoint tracking_runs_delete_tag;         /* POST runs/delete-tag */
tracking_endpoint tracking_runs_log_batch;          /* POST runs/log-batch */
tracking_endpoint tracking_runs_log_inputs;         /* POST runs/log-inputs */
tracking_endpoint tracking_runs_log_model;          /* POST runs/log-model */
tracking_endpoint tracking_runs_log_outputs;        /* POST runs/outputs: the models that it made */
tracking_endpoint tracking_metrics_get_history;     /* GET  metrics/get-history */

/* Models, as MLflow 3 logs them. Parameters in the path become the members model_id and tag_key of the
 * body. */
tracking_endpoint tracking_models_create;     /* POST   logged-models */
tracking_endpoint tracking_models_search;     /* POST   logged-models/search */
tracking_endpoint tracking_models_get;        /* GET    logged-models/{model_id} */
tracking_endpoint tracking_models_finalize;   /* PATCH  logged-models/{model_id}: status */
tracking_endpoint tracking_models_delete;     /* DELETE logged-models/{model_id} */
tracking_endpoint tracking_models_log_params; /* POST   logged-models/{model_id}/params */
tracking_endpoint tracking_models_set_tags;   /* PATCH  logged-models/{model_id}/tags */
tracking_endpoint tracking_models_delete_tag; /* DELETE logged-models/{model_id}/tags/{tag_key} */

/* The registry: names for models, and versions below a name. The files of a version stay where they are. */
tracking_endpoint tracking_registry_create;       /* POST   registered-models/create */
tracking_endpoint tracking_registry_get;          /* GET    registered-models/get */
tracking_endpoint tracking_registry_search;       /* GET    registered-models/search */
tracking_endpoint tracking_registry_update;       /* PATCH  registered-models/update: description */
tracking_endpoint tracking_registry_rename;       /* POST   registered-models/rename: new_name */
tracking_endpoint tracking_registry_delete;       /* DELETE registered-models/delete, with its versions */
tracking_endpoint tracking_registry_set_tag;      /* POST   registered-models/set-tag */
tracking_endpoint tracking_registry_delete_tag;   /* DELETE registered-models/delete-tag */
tracking_endpoint tracking_registry_set_alias;    /* POST   registered-models/alias */
tracking_endpoint tracking_registry_delete_alias; /* DELETE registered-models/alias */
tracking_endpoint tracking_registry_get_by_alias; /* GET    registered-models/alias */
tracking_endpoint tracking_registry_get_latest;   /* POST and GET registered-models/get-latest-versions */
tracking_endpoint tracking_versions_create;       /* POST   model-versions/create */
tracking_endpoint tracking_versions_get;          /* GET    model-versions/get */
tracking_endpoint tracking_versions_search;       /* GET    model-versions/search */
tracking_endpoint tracking_versions_get_uri;      /* GET    model-versions/get-download-uri */
tracking_endpoint tracking_versions_update;       /* PATCH  model-versions/update: description */
tracking_endpoint tracking_versions_transition;   /* POST   model-versions/transition-stage */
tracking_endpoint tracking_versions_delete;       /* DELETE model-versions/delete */
tracking_endpoint tracking_versions_set_tag;      /* POST   model-versions/set-tag */
tracking_endpoint tracking_versions_delete_tag;   /* DELETE model-versions/delete-tag */

/* --- beside the endpoints --- */

/* The artifact_uri of a run, for artifacts/list; the caller frees it. False with RESOURCE_DOES_NOT_EXIST if
 * there is no such run. */
bool tracking_artifact_uri(struct tracking *tracking, const char *run_id, char **ret_uri,
                           struct tracking_error *error);

/* 32 hex digits and a NUL. */
#define TRACKING_RUN_ID_BYTES 33
/* Draws the id of a new run. Touches no file: any thread may call it. */
void tracking_draw_run_id(char out[TRACKING_RUN_ID_BYTES]);

/* The states of a run. */
#define TRACKING_STATUSES(X) X(RUNNING) X(SCHEDULED) X(FINISHED) X(FAILED) X(KILLED)

enum tracking_status {
#define TRACKING_STATUS_AS_ENUM(name) TRACKING_RUN_##name,
    TRACKING_STATUSES(TRACKING_STATUS_AS_ENUM)
#undef TRACKING_STATUS_AS_ENUM
};

/* The run of a job. */
struct tracking_job {
    const char *run_id; /* drawn by the caller, so that the job's ranks know it before the run is stored */
    const char *experiment_id; /* NULL, or an id that does not exist: use the name */
    const char *experiment;    /* name; NULL: "Default" */
    const char *run_name;      /* NULL: drawn */
    const char *owner;         /* of the job: the run's user_id */
    const char *job_id;        /* becomes the tag gpuctl.job_id */
    int64_t attempt;           /* becomes the tag gpuctl.attempt */
    int64_t nodes, gpus;       /* of the attempt, become the tags gpuctl.nodes and gpuctl.gpus */
    int64_t start_ms;          /* wall clock */
};

/* Makes the run in RUNNING, with the tags by which MLflow records user and source, and makes its experiment
 * if there is none. A deleted experiment is restored. An existing run is set to RUNNING again with the new
 * attempt and without an end; the rest of it stays. So the call may be repeated, and a retried job keeps its
 * run. */
bool tracking_job_begin(struct tracking *tracking, const struct tracking_job *job,
                        struct tracking_error *error);

/* Sets the status and end of the run, even if clients have set others. */
bool tracking_job_end(struct tracking *tracking, const char *run_id, enum tracking_status status,
                      int64_t end_ms, struct tracking_error *error);

/* Visits the ids of jobs whose run is RUNNING. A visitor that returns false stops the visit. */
bool tracking_jobs_running(struct tracking *tracking, bool (*visit)(const char *job_id, void *closure),
                           void *closure, struct tracking_error *error);

/* Appends the members of a JSON object that identify the run, run_id to status, without braces, and sets
 * *ret_experiment to its experiment. *ret_there false: there is no such run, and nothing was appended or
 * set. */
bool tracking_run_summary(struct tracking *tracking, const char *run_id, struct text *out, bool *ret_there,
                          int64_t *ret_experiment, struct tracking_error *error);

/* A point of a job's own metrics. */
struct tracking_point {
    const char *name;
    int64_t rank;
    const json_t *value; /* a number; NaN and infinities as text */
    int64_t step, at_ms;
};

/* A part of a stream of a job's metrics. */
struct tracking_copy {
    const char *run_id;
    int64_t stream; /* the first rank of the stream's node */
    const struct tracking_point *points;
    size_t point_count;
    int64_t bytes; /* how much of the stream is in the run, including these points */
};

/* How many bytes of a stream are in the run. False with RESOURCE_DOES_NOT_EXIST if there is no such run. */
bool tracking_job_copied(struct tracking *tracking, const char *run_id, int64_t stream, int64_t *ret_bytes,
                         struct tracking_error *error);

/* Logs the points and stores the position in the stream, both or neither. Points of rank 0, and points named
 * system/..., keep their name; points of rank N are named name/rank_N. Characters that MLflow forbids become
 * "_". A point that cannot be logged is left out. */
bool tracking_job_copy(struct tracking *tracking, const struct tracking_copy *copy,
                       struct tracking_error *error);

/* Logs points into the run as a client does that names each of them; the same point counts once. False with
 * RESOURCE_DOES_NOT_EXIST where there is no such run. */
bool tracking_job_log(struct tracking *tracking, const char *run_id, const struct tracking_point *points,
                      size_t point_count, struct tracking_error *error);

/* A point that a client has logged into a run. */
struct tracking_logged {
    const char *name; /* valid until the visitor returns */
    double value;     /* may be NaN or infinite */
    int64_t step, at_ms;
    int64_t number; /* from 1, in the order of arrival */
};

/* Selects the points of a call. */
struct tracking_listing {
    const char *run_id;
    const char *name; /* NULL: all */
    int64_t limit;    /* points */
    void (*visit)(const struct tracking_logged *point, void *closure);
    void *closure;
};

/* Visits the points after number *after (0: all) in the order of arrival, and sets *after to the last number
 * that was read. *ret_more: there may be more, also because a call reads at most LIMIT_TRACKING_SCAN_ROWS.
 * Points of tracking_job_copy are left out. False with RESOURCE_DOES_NOT_EXIST if there is no such run. */
bool tracking_job_points(struct tracking *tracking, const struct tracking_listing *listing, int64_t *after,
                         bool *ret_more, struct tracking_error *error);

#endif
