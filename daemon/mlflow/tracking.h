/* SPDX-License-Identifier: Apache-2.0 */
/* The tracking store: experiments, runs, metrics, parameters and tags as clients of MLflow know them, in a
 * database of its own. Tracking data are not part of the controller's state and never pass the writer.
 *
 * All calls read or write a file and may take long: call them on a helper thread (struct worker), never on
 * the HTTP thread. Only one thread at a time may use a handle; it may be a different thread each time. Each
 * call is one transaction: when it returns, every later call sees its effect, of any handle. The effect
 * survives the end of the program, but a loss of power may undo the last calls.
 *
 * Searches on a second handle delay no call of the first. They may see a call whose effect is not on disk
 * yet. */
#ifndef MLFLOW_TRACKING_H
#define MLFLOW_TRACKING_H

#include <stddef.h>

#include "daemon/mlflow/call/call.h"
#include "daemon/mlflow/database/tables.h"

/* --- the handle --- */

/* Opens the database. If the file does not exist, makes it (mode 0600) with the experiment "Default" of id 0.
 * NULL with ERR_IO for a file of another program or with a newer schema; such a file is left as it is. */
struct tracking *tracking_open(const char *path, struct err *err);
/* Keeps the log of changes short, which grows as long as searches on another handle follow on one another.
 * Call it when none is running. */
void tracking_shorten_log(struct tracking *tracking);
/* Any thread: ends the search that is running on the handle, unless it is between two statements. */
void tracking_interrupt(struct tracking *tracking);
/* What requests have changed is on disk when this returns; false: some of it may never be. */
bool tracking_sync(struct tracking *tracking, struct err *err);
/* Takes NULL. */
void tracking_close(struct tracking *tracking);

/* --- endpoints --- */

/* A call of MLflow's API. call/endpoints.h lists them. */
struct tracking_endpoint {
    const char *method, *path;
    void (*work)(struct call *call); /* NULL: artifacts/list, which is the server's: it has the files */
    bool searches; /* it may read much, and fails when it takes longer than LIMIT_TRACKING_SEARCH_MS */
    bool writes;
    bool adds; /* what is stored grows by it */
};

/* Finds an endpoint by a method and a path below /api/2.0/mlflow/; NULL: there is none. */
const struct tracking_endpoint *tracking_endpoint_find(const char *method, const char *path);
/* Puts the parameters in the path into the body, if that is an object. */
void tracking_endpoint_arguments(const struct tracking_endpoint *endpoint, const char *path, json_t *body);

/* True: a JSON object was appended to *out, the body of a reply with status 200. False: *error is set, and
 * *out is unchanged. */
bool tracking_serve(struct tracking *tracking, const struct tracking_endpoint *endpoint,
                    const struct tracking_request *request, struct text *out, struct tracking_error *error);

/* The artifact_uri of a run, for artifacts/list; the caller frees it. False with RESOURCE_DOES_NOT_EXIST if
 * the sender sees no such run. */
bool tracking_artifact_uri(struct tracking *tracking, const struct tracking_rights *rights,
                           const char *run_id, char **ret_uri, struct tracking_error *error);

/* The run below whose folder an artifact is, and the attempt of a job that its tags name. Clients may write
 * these tags. */
struct tracking_place {
    char run_id[TRACKING_RUN_ID_BYTES]; /* "": it is below no run, or its tags name no attempt */
    char job_id[ID_LENGTH + 1];
    int64_t attempt;
    size_t folder; /* length of the path of the run's folder */
};

/* Whether the sender has the right to the file or folder, which belongs to the run or the logged model below
 * whose folder it is. A registered model lets those read its files who see the model. What belongs to nobody
 * is for those who may change what is everybody's. False with RESOURCE_DOES_NOT_EXIST or
 * PERMISSION_DENIED. */
bool tracking_artifact_allowed(struct tracking *tracking, const struct tracking_rights *rights,
                               enum tracking_right right, const char *path, struct tracking_place *ret_place,
                               struct tracking_error *error);

/* --- runs of jobs: job_run.c --- */

enum tracking_status {
#define TRACKING_STATUS_AS_ENUM(name) TRACKING_RUN_##name,
    TRACKING_STATUSES(TRACKING_STATUS_AS_ENUM)
#undef TRACKING_STATUS_AS_ENUM
};

/* The run of a job. */
struct tracking_job {
    const char *run_id; /* drawn by the caller, so that the job's ranks know it before the run is stored */
    const char *experiment_id;            /* NULL, or an id that does not exist: use the name */
    const char *experiment;               /* name; NULL: "Default" */
    const char *run_name;                 /* NULL: drawn */
    const struct tracking_rights *rights; /* of the owner; NULL: all */
    const char *owner;                    /* of the job: the run's, and its user_id */
    const char *job_id;                   /* becomes the tag gpuctl.job_id */
    int64_t attempt;                      /* becomes the tag gpuctl.attempt */
    const char *project; /* the run's, becomes the tag gpuctl.project; NULL: "default", no tag */
    int64_t nodes, gpus; /* of the attempt, become the tags gpuctl.nodes and gpuctl.gpus */
    int64_t start_ms;    /* wall clock */
    bool late;           /* the attempt has ended: an existing run stays as it is */
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

/* The ids of jobs whose run is RUNNING, as an array of texts that the caller frees. A client may have written
 * any text. NULL: it failed. */
json_t *tracking_jobs_running(struct tracking *tracking, struct tracking_error *error);

/* Appends {"runs": [...]}, the API's list of a job's runs: those that are there of the asked ones, a JSON
 * array of {attempt, run_id}. page: URL of the web page. */
bool tracking_job_runs(struct tracking *tracking, const char *asked, const char *page, struct text *out,
                       struct tracking_error *error);

/* --- retention: removal.c --- */

/* A run that has ended or was deleted, and of which no registered model is made. */
struct tracking_over {
    int64_t key;
    int64_t at_ms;       /* when it ended, or began where that is not known; wall clock */
    const char *project; /* of its job, valid until the visitor returns; NULL: not known */
};

/* Visits these among the next `limit` runs behind *after_key, 0 for the first, and sets it to the last of
 * them; *ret_last: there are no more. */
bool tracking_runs_over(struct tracking *tracking, int64_t *after_key, int64_t limit,
                        void (*visit)(const struct tracking_over *run, void *closure), void *closure,
                        bool *ret_last, struct tracking_error *error);

/* Takes the run away, with the logged models that it made, unless it is not over or was not at that time.
 * What is left of them is removals. */
bool tracking_run_remove(struct tracking *tracking, int64_t key, int64_t over_by_ms, bool *ret_removed,
                         struct tracking_error *error);

/* What is left of a run or a logged model. */
struct tracking_removal {
    int64_t key; /* 0: there is none */
    char *id, *artifact_uri;
};
/* The oldest removal. The caller finishes it. */
bool tracking_removal_next(struct tracking *tracking, struct tracking_removal *ret_removal,
                           struct tracking_error *error);
void tracking_removal_finish(struct tracking_removal *removal);
/* Deletes up to `limit` rows of each kind, and with the last of them the removal: its files must be gone. */
bool tracking_removal_piece(struct tracking *tracking, int64_t key, int64_t limit, bool *ret_done,
                            struct tracking_error *error);

/* The size of the file of the database, and how much of it holds nothing. */
bool tracking_file_use(struct tracking *tracking, int64_t *ret_bytes, int64_t *ret_free_bytes,
                       struct tracking_error *error);
/* Gives up to so many free pages back to the disk; none where the database cannot. */
bool tracking_shrink(struct tracking *tracking, int64_t pages, struct tracking_error *error);

/* --- metrics of jobs: job_metrics.c --- */

/* A point of a job's own metrics. */
struct tracking_point {
    const char *name;
    int64_t rank;
    double value; /* may be NaN or infinite */
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
 * "_". A point before 1970 is left out. */
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
