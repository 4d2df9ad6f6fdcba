/* SPDX-License-Identifier: Apache-2.0 */
/* Implements runs/log-batch and its limits; clients know the error texts. A batch is written as a whole or
 * not at all. */
#include <string.h>

#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/entries.h"
#include "daemon/mlflow/field.h"
#include "daemon/mlflow/metrics.h"
#include "daemon/mlflow/runs.h"
#include "proto/limits.h"

struct batch {
    const json_t *metrics, *params, *tags; /* NULL: none */
};

static bool at_most(const char *what, size_t limit, size_t count, struct tracking_error *error)
{
    return count <= limit ||
           tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                         "A batch logging request can contain at most %zu %s. Got %zu %s. Please split up %s "
                         "across multiple requests and try again.",
                         limit, what, count, what, what);
}

/* There are at most a hundred parameters, so comparing all pairs is fastest. */
static bool keys_differ(const json_t *params, struct tracking_error *error)
{
    for (size_t i = 1; i < json_array_size(params); i++) {
        const char *key = json_string_value(json_object_get(json_array_get(params, i), "key"));
        for (size_t j = 0; key != NULL && j < i; j++) {
            const char *other = json_string_value(json_object_get(json_array_get(params, j), "key"));
            if (other != NULL && strcmp(key, other) == 0) {
                return tracking_fail(
                    error, TRACKING_INVALID_PARAMETER_VALUE,
                    "Duplicate parameter keys have been submitted: ['%.250s']. Please ensure "
                    "the request contains only one param value per param key.",
                    key);
            }
        }
    }
    return true;
}

static bool read_batch(const json_t *body, struct batch *batch, struct tracking_error *error)
{
    *batch = (struct batch){0};
    if (!field_objects(body, "metrics", &batch->metrics, error) ||
        !field_objects(body, "params", &batch->params, error) ||
        !field_objects(body, "tags", &batch->tags, error)) {
        return false;
    }
    size_t metrics = json_array_size(batch->metrics);
    size_t params = json_array_size(batch->params);
    size_t tags = json_array_size(batch->tags);
    return at_most("metrics", LIMIT_TRACKING_METRICS, metrics, error) &&
           at_most("params", LIMIT_TRACKING_PARAMS, params, error) &&
           at_most("tags", LIMIT_TRACKING_TAGS, tags, error) &&
           at_most("metrics, params, and tags", LIMIT_TRACKING_ENTITIES, metrics + params + tags, error) &&
           keys_differ(batch->params, error);
}

bool work_runs_log_batch(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                         struct tracking_error *error)
{
    struct batch batch;
    struct run run;
    const char *run_id;
    if (!read_batch(request->body, &batch, error) || !run_find_active(tracking, request, &run, error) ||
        !field_need_run_id(request->body, &run_id, error)) {
        return false;
    }
    size_t i;
    const json_t *item;
    json_array_foreach (batch.params, i, item) {
        if (!param_put(tracking, run_id, run.key, item, error)) {
            return false;
        }
    }
    json_array_foreach (batch.metrics, i, item) {
        if (!metric_put(tracking, run.key, item, error)) {
            return false;
        }
    }
    if (!tags_put(tracking, run.key, batch.tags, error)) {
        return false;
    }
    text_append(out, "{}");
    return true;
}
