/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of MLflow's API that the store serves, and the functions that do their work. Each works on its
 * call inside a transaction that tracking.c opens and ends, and appends the body of the answer; {} if it
 * appends none. */
#ifndef MLFLOW_ENDPOINTS_H
#define MLFLOW_ENDPOINTS_H

#include "daemon/mlflow/call/call.h"

/* X(method, path, name, effect). The path is below /api/2.0/mlflow/; a {...} in it stands for one part, which
 * becomes the member of that name of the body. The effect is READS, SEARCHES: it may read much, WRITES, or
 * ADDS: what is stored grows by the call. */
#define ENDPOINTS(X)                                                                                         \
    X(POST, "runs/log-batch", runs_log_batch, ADDS)                                                          \
    X(POST, "runs/log-metric", runs_log_metric, ADDS)                                                        \
    X(POST, "runs/log-parameter", runs_log_parameter, ADDS)                                                  \
    X(POST, "runs/set-tag", runs_set_tag, ADDS)                                                              \
    X(GET, "runs/get", runs_get, READS)                                                                      \
    X(POST, "runs/update", runs_update, WRITES)                                                              \
    X(POST, "runs/create", runs_create, ADDS)                                                                \
    X(POST, "runs/search", runs_search, SEARCHES)                                                            \
    X(POST, "runs/delete", runs_delete, WRITES)                                                              \
    X(POST, "runs/restore", runs_restore, WRITES)                                                            \
    X(POST, "runs/delete-tag", runs_delete_tag, WRITES)                                                      \
    X(POST, "runs/log-inputs", runs_log_inputs, ADDS)                                                        \
    X(POST, "runs/log-model", runs_log_model, ADDS)                                                          \
    X(POST, "runs/outputs", runs_log_outputs, ADDS)                                                          \
    X(GET, "metrics/get-history", metrics_get_history, SEARCHES)                                             \
    X(POST, "logged-models", models_create, ADDS)                                                            \
    X(POST, "logged-models/search", models_search, SEARCHES)                                                 \
    X(GET, "logged-models/{model_id}", models_get, READS)                                                    \
    X(PATCH, "logged-models/{model_id}", models_finalize, WRITES)                                            \
    X(DELETE, "logged-models/{model_id}", models_delete, WRITES)                                             \
    X(POST, "logged-models/{model_id}/params", models_log_params, ADDS)                                      \
    X(PATCH, "logged-models/{model_id}/tags", models_set_tags, ADDS)                                         \
    X(DELETE, "logged-models/{model_id}/tags/{tag_key}", models_delete_tag, WRITES)                          \
    X(GET, "experiments/get-by-name", experiments_get_by_name, WRITES)                                       \
    X(GET, "experiments/get", experiments_get, READS)                                                        \
    X(POST, "experiments/create", experiments_create, ADDS)                                                  \
    X(POST, "experiments/search", experiments_search, SEARCHES)                                              \
    X(GET, "experiments/search", experiments_search, SEARCHES)                                               \
    X(POST, "experiments/update", experiments_update, WRITES)                                                \
    X(POST, "experiments/delete", experiments_delete, WRITES)                                                \
    X(POST, "experiments/restore", experiments_restore, WRITES)                                              \
    X(POST, "experiments/set-experiment-tag", experiments_set_tag, ADDS)                                     \
    X(POST, "experiments/delete-experiment-tag", experiments_delete_tag, WRITES)                             \
    X(POST, "registered-models/create", registry_create, ADDS)                                               \
    X(GET, "registered-models/get", registry_get, READS)                                                     \
    X(GET, "registered-models/search", registry_search, SEARCHES)                                            \
    X(PATCH, "registered-models/update", registry_update, ADDS)                                              \
    X(POST, "registered-models/rename", registry_rename, WRITES)                                             \
    X(DELETE, "registered-models/delete", registry_delete, WRITES)                                           \
    X(POST, "registered-models/set-tag", registry_set_tag, ADDS)                                             \
    X(DELETE, "registered-models/delete-tag", registry_delete_tag, WRITES)                                   \
    X(POST, "registered-models/alias", registry_set_alias, ADDS)                                             \
    X(DELETE, "registered-models/alias", registry_delete_alias, WRITES)                                      \
    X(GET, "registered-models/alias", registry_get_by_alias, READS)                                          \
    X(POST, "registered-models/get-latest-versions", registry_get_latest, READS)                             \
    X(GET, "registered-models/get-latest-versions", registry_get_latest, READS)                              \
    X(POST, "model-versions/create", versions_create, ADDS)                                                  \
    X(GET, "model-versions/get", versions_get, READS)                                                        \
    X(GET, "model-versions/search", versions_search, SEARCHES)                                               \
    X(GET, "model-versions/get-download-uri", versions_get_uri, READS)                                       \
    X(PATCH, "model-versions/update", versions_update, ADDS)                                                 \
    X(POST, "model-versions/transition-stage", versions_transition, WRITES)                                  \
    X(DELETE, "model-versions/delete", versions_delete, WRITES)                                              \
    X(POST, "model-versions/set-tag", versions_set_tag, ADDS)                                                \
    X(DELETE, "model-versions/delete-tag", versions_delete_tag, WRITES)

#define ENDPOINT_WORK(method, path, name, effect) void work_##name(struct call *call);
ENDPOINTS(ENDPOINT_WORK)
#undef ENDPOINT_WORK

#endif
