/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of MLflow's methods: which HTTP method and path is which endpoint of the store, and which
 * parts of a path are parameters. */
#include <string.h>

#include "daemon/http/mlflow.h"

static const struct mlflow_method methods[] = {
    {METHOD_POST, "runs/log-batch", tracking_runs_log_batch},
    {METHOD_POST, "runs/log-metric", tracking_runs_log_metric},
    {METHOD_POST, "runs/log-parameter", tracking_runs_log_parameter},
    {METHOD_POST, "runs/set-tag", tracking_runs_set_tag},
    {METHOD_GET, "runs/get", tracking_runs_get},
    {METHOD_POST, "runs/update", tracking_runs_update},
    {METHOD_POST, "runs/create", tracking_runs_create},
    {METHOD_POST, "runs/search", tracking_runs_search},
    {METHOD_POST, "runs/delete", tracking_runs_delete},
    {METHOD_POST, "runs/restore", tracking_runs_restore},
    {METHOD_POST, "runs/delete-tag", tracking_runs_delete_tag},
    {METHOD_POST, "runs/log-inputs", tracking_runs_log_inputs},
    {METHOD_POST, "runs/log-model", tracking_runs_log_model},
    {METHOD_POST, "runs/outputs", tracking_runs_log_outputs},
    {METHOD_GET, "metrics/get-history", tracking_metrics_get_history},
    {METHOD_GET, "artifacts/list", NULL},
    {METHOD_POST, "logged-models", tracking_models_create},
    {METHOD_POST, "logged-models/search", tracking_models_search},
    {METHOD_GET, "logged-models/{model_id}", tracking_models_get},
    {METHOD_PATCH, "logged-models/{model_id}", tracking_models_finalize},
    {METHOD_DELETE, "logged-models/{model_id}", tracking_models_delete},
    {METHOD_POST, "logged-models/{model_id}/params", tracking_models_log_params},
    {METHOD_PATCH, "logged-models/{model_id}/tags", tracking_models_set_tags},
    {METHOD_DELETE, "logged-models/{model_id}/tags/{tag_key}", tracking_models_delete_tag},
    {METHOD_GET, "experiments/get-by-name", tracking_experiments_get_by_name},
    {METHOD_GET, "experiments/get", tracking_experiments_get},
    {METHOD_POST, "experiments/create", tracking_experiments_create},
    {METHOD_POST, "experiments/search", tracking_experiments_search},
    {METHOD_GET, "experiments/search", tracking_experiments_search},
    {METHOD_POST, "experiments/update", tracking_experiments_update},
    {METHOD_POST, "experiments/delete", tracking_experiments_delete},
    {METHOD_POST, "experiments/restore", tracking_experiments_restore},
    {METHOD_POST, "experiments/set-experiment-tag", tracking_experiments_set_tag},
    {METHOD_POST, "experiments/delete-experiment-tag", tracking_experiments_delete_tag},
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
