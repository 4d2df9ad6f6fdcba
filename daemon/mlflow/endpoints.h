/* SPDX-License-Identifier: Apache-2.0 */
/* The work of each endpoint of tracking.h, inside a transaction that tracking.c opens and ends. A work_
 * function that returns false changes nothing. */
#ifndef MLFLOW_ENDPOINTS_H
#define MLFLOW_ENDPOINTS_H

#include "daemon/mlflow/tracking.h"

/* X(name, READ or WRITE) */
#define ENDPOINTS(X)                                                                                         \
    X(experiments_create, WRITE)                                                                             \
    X(experiments_get, READ)                                                                                 \
    X(experiments_get_by_name, WRITE)                                                                        \
    X(experiments_search, READ)                                                                              \
    X(experiments_update, WRITE)                                                                             \
    X(experiments_delete, WRITE)                                                                             \
    X(experiments_restore, WRITE)                                                                            \
    X(experiments_set_tag, WRITE)                                                                            \
    X(experiments_delete_tag, WRITE)                                                                         \
    X(runs_create, WRITE)                                                                                    \
    X(runs_get, READ)                                                                                        \
    X(runs_update, WRITE)                                                                                    \
    X(runs_delete, WRITE)                                                                                    \
    X(runs_restore, WRITE)                                                                                   \
    X(runs_search, READ)                                                                                     \
    X(runs_log_metric, WRITE)                                                                                \
    X(runs_log_parameter, WRITE)                                                                             \
    X(runs_set_tag, WRITE)                                                                                   \
    X(runs_delete_tag, WRITE)                                                                                \
    X(runs_log_batch, WRITE)                                                                                 \
    X(runs_log_inputs, WRITE)                                                                                \
    X(runs_log_model, WRITE)                                                                                 \
    X(runs_log_outputs, WRITE)                                                                               \
    X(models_create, WRITE)                                                                                  \
    X(models_get, READ)                                                                                      \
    X(models_search, READ)                                                                                   \
    X(models_finalize, WRITE)                                                                                \
    X(models_delete, WRITE)                                                                                  \
    X(models_log_params, WRITE)                                                                              \
    X(models_set_tags, WRITE)                                                                                \
    X(models_delete_tag, WRITE)                                                                              \
    X(metrics_get_history, READ)                                                                             \
    X(registry_create, WRITE)                                                                                \
    X(registry_get, READ)                                                                                    \
    X(registry_search, READ)                                                                                 \
    X(registry_update, WRITE)                                                                                \
    X(registry_rename, WRITE)                                                                                \
    X(registry_delete, WRITE)                                                                                \
    X(registry_set_tag, WRITE)                                                                               \
    X(registry_delete_tag, WRITE)                                                                            \
    X(registry_set_alias, WRITE)                                                                             \
    X(registry_delete_alias, WRITE)                                                                          \
    X(registry_get_by_alias, READ)                                                                           \
    X(registry_get_latest, READ)                                                                             \
    X(versions_create, WRITE)                                                                                \
    X(versions_get, READ)                                                                                    \
    X(versions_search, READ)                                                                                 \
    X(versions_get_uri, READ)                                                                                \
    X(versions_update, WRITE)                                                                                \
    X(versions_transition, WRITE)                                                                            \
    X(versions_delete, WRITE)                                                                                \
    X(versions_set_tag, WRITE)                                                                               \
    X(versions_delete_tag, WRITE)

#define ENDPOINT_WORK(name, kind) tracking_endpoint work_##name;
ENDPOINTS(ENDPOINT_WORK)
#undef ENDPOINT_WORK

/* The work of the functions beside the endpoints. */
bool work_job_begin(struct tracking *tracking, const struct tracking_job *job, struct tracking_error *error);
bool work_job_end(struct tracking *tracking, const char *run_id, enum tracking_status status, int64_t end_ms,
                  struct tracking_error *error);
bool work_jobs_running(struct tracking *tracking, bool (*visit)(const char *job_id, void *closure),
                       void *closure, struct tracking_error *error);
bool work_run_summary(struct tracking *tracking, const char *run_id, struct text *out, bool *ret_there,
                      int64_t *ret_experiment, struct tracking_error *error);
bool work_job_copied(struct tracking *tracking, const char *run_id, int64_t stream, int64_t *ret_bytes,
                     struct tracking_error *error);
bool work_job_points(struct tracking *tracking, const struct tracking_listing *listing, int64_t *after,
                     bool *ret_more, struct tracking_error *error);
bool work_job_copy(struct tracking *tracking, const struct tracking_copy *copy, struct tracking_error *error);
bool work_job_log(struct tracking *tracking, const char *run_id, const struct tracking_point *points,
                  size_t point_count, struct tracking_error *error);

#endif
