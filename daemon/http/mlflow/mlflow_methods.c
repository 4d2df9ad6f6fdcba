/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of MLflow's methods: which HTTP method and path is which endpoint of the store, and which
 * parts of a path are parameters. */
#include <string.h>

#include "daemon/http/mlflow/mlflow.h"

static const struct mlflow_method methods[] = {
    {METHOD_POST, "runs/log-batch", tracking_runs_log_batch, true},
    {METHOD_POST, "runs/log-metric", tracking_runs_log_metric, true},
    {METHOD_POST, "runs/log-parameter", tracking_runs_log_parameter, true},
    {METHOD_POST, "runs/set-tag", tracking_runs_set_tag, true},
    {METHOD_GET, "runs/get", tracking_runs_get, false},
    {METHOD_POST, "runs/update", tracking_runs_update, false},
    {METHOD_POST, "runs/create", tracking_runs_create, true},
    {METHOD_POST, "runs/search", tracking_runs_search, false},
    {METHOD_POST, "runs/delete", tracking_runs_delete, false},
    {METHOD_POST, "runs/restore", tracking_runs_restore, false},
    {METHOD_POST, "runs/delete-tag", tracking_runs_delete_tag, false},
    {METHOD_POST, "runs/log-inputs", tracking_runs_log_inputs, true},
    {METHOD_POST, "runs/log-model", tracking_runs_log_model, true},
    {METHOD_POST, "runs/outputs", tracking_runs_log_outputs, true},
    {METHOD_GET, "metrics/get-history", tracking_metrics_get_history, false},
    {METHOD_GET, "artifacts/list", NULL, false},
    {METHOD_POST, "logged-models", tracking_models_create, true},
    {METHOD_POST, "logged-models/search", tracking_models_search, false},
    {METHOD_GET, "logged-models/{model_id}", tracking_models_get, false},
    {METHOD_PATCH, "logged-models/{model_id}", tracking_models_finalize, false},
    {METHOD_DELETE, "logged-models/{model_id}", tracking_models_delete, false},
    {METHOD_POST, "logged-models/{model_id}/params", tracking_models_log_params, true},
    {METHOD_PATCH, "logged-models/{model_id}/tags", tracking_models_set_tags, true},
    {METHOD_DELETE, "logged-models/{model_id}/tags/{tag_key}", tracking_models_delete_tag, false},
    {METHOD_GET, "experiments/get-by-name", tracking_experiments_get_by_name, false},
    {METHOD_GET, "experiments/get", tracking_experiments_get, false},
    {METHOD_POST, "experiments/create", tracking_experiments_create, true},
    {METHOD_POST, "experiments/search", tracking_experiments_search, false},
    {METHOD_GET, "experiments/search", tracking_experiments_search, false},
    {METHOD_POST, "experiments/update", tracking_experiments_update, false},
    {METHOD_POST, "experiments/delete", tracking_experiments_delete, false},
    {METHOD_POST, "experiments/restore", tracking_experiments_restore, false},
    {METHOD_POST, "experiments/set-experiment-tag", tracking_experiments_set_tag, true},
    {METHOD_POST, "experiments/delete-experiment-tag", tracking_experiments_delete_tag, false},
    {METHOD_POST, "registered-models/create", tracking_registry_create, true},
    {METHOD_GET, "registered-models/get", tracking_registry_get, false},
    {METHOD_GET, "registered-models/search", tracking_registry_search, false},
    {METHOD_PATCH, "registered-models/update", tracking_registry_update, true},
    {METHOD_POST, "registered-models/rename", tracking_registry_rename, false},
    {METHOD_DELETE, "registered-models/delete", tracking_registry_delete, false},
    {METHOD_POST, "registered-models/set-tag", tracking_registry_set_tag, true},
    {METHOD_DELETE, "registered-models/delete-tag", tracking_registry_delete_tag, false},
    {METHOD_POST, "registered-models/alias", tracking_registry_set_alias, true},
    {METHOD_DELETE, "registered-models/alias", tracking_registry_delete_alias, false},
    {METHOD_GET, "registered-models/alias", tracking_registry_get_by_alias, false},
    {METHOD_POST, "registered-models/get-latest-versions", tracking_registry_get_latest, false},
    {METHOD_GET, "registered-models/get-latest-versions", tracking_registry_get_latest, false},
    {METHOD_POST, "model-versions/create", tracking_versions_create, true},
    {METHOD_GET, "model-versions/get", tracking_versions_get, false},
    {METHOD_GET, "model-versions/search", tracking_versions_search, false},
    {METHOD_GET, "model-versions/get-download-uri", tracking_versions_get_uri, false},
    {METHOD_PATCH, "model-versions/update", tracking_versions_update, true},
    {METHOD_POST, "model-versions/transition-stage", tracking_versions_transition, false},
    {METHOD_DELETE, "model-versions/delete", tracking_versions_delete, false},
    {METHOD_POST, "model-versions/set-tag", tracking_versions_set_tag, true},
    {METHOD_DELETE, "model-versions/delete-tag", tracking_versions_delete_tag, false},
};

/* Goes along both; body not NULL: a part that stands for a parameter is put there. */
static bool fits(const char *pattern, const char *path, json_t *body)
{
    while (*pattern != '\0' || *path != '\0') {
        if (*pattern != '{') {
            if (*pattern++ != *path++) {
                return false;
            }
            continue;
        }
        size_t name = strcspn(pattern, "}") - 1;
        size_t length = strcspn(path, "/");
        if (length == 0) {
            return false;
        }
        if (body != NULL) {
            json_object_setn_new(body, pattern + 1, name, json_stringn(path, length));
        }
        pattern += name + 2;
        path += length;
    }
    return true;
}

const struct mlflow_method *mlflow_method_find(enum method method, const char *path)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (methods[i].method == method && fits(methods[i].path, path, NULL)) {
            return &methods[i];
        }
    }
    return NULL;
}

void mlflow_method_arguments(const struct mlflow_method *method, const char *path, json_t *body)
{
    if (json_is_object(body)) {
        fits(method->path, path, body);
    }
}
