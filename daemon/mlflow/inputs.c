/* SPDX-License-Identifier: Apache-2.0 */
/* Records the inputs and outputs of a run: data sets (runs/log-inputs) and the descriptions of models
 * (runs/log-model), which clients read from a tag. */
#include <string.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/entries.h"
#include "daemon/mlflow/field.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/runs.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"

/* --- data sets --- */

/* The tag has a JSON array of the descriptions. */
#define TAG_MODELS "mlflow.log-model.history"
/* The tag of an input: the use of the data set. */
#define TAG_CONTEXT "mlflow.data.context"

struct input {
    const char *name, *digest;
    const char *context; /* NULL: not said */
    char *shown;         /* owned: JSON */
};

static void cleanup_input(struct input *input)
{
    free(input->shown);
}

static bool copy_text(const json_t *from, const char *name, json_t *to, struct tracking_error *error)
{
    const char *value = NULL;
    if (!field_text(from, name, &value, error)) {
        return false;
    }
    if (value != NULL) {
        json_object_set_new(to, name, json_string(value));
    }
    return true;
}

static bool copy_tags(const json_t *item, json_t *to, struct input *input, struct tracking_error *error)
{
    const json_t *tags = NULL;
    if (!field_objects(item, "tags", &tags, error)) {
        return false;
    }
    size_t i;
    const json_t *tag;
    json_array_foreach (tags, i, tag) {
        const char *key;
        const char *value = "";
        if (!field_need_text(tag, "key", &key, error) || !field_text(tag, "value", &value, error) ||
            !name_check("input tag", key, error)) {
            return false;
        }
        json_array_append_new(to, json_pack("{s:s, s:s}", "key", key, "value", value));
        input->context = strcmp(key, TAG_CONTEXT) == 0 ? value : input->context;
    }
    return true;
}

static bool read_input(const json_t *item, struct input *input, struct tracking_error *error)
{
    const json_t *dataset = json_object_get(item, "dataset");
    if (!json_is_object(dataset)) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "Missing value for required parameter 'dataset' of a data set input.");
    }
    autojson json_t *tags = json_array();
    autojson json_t *copy = json_object();
    static const char *const members[] = {"name", "digest", "source_type", "source", "schema", "profile"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (!copy_text(dataset, members[i], copy, error)) {
            return false;
        }
    }
    if (!field_need_text(dataset, "name", &input->name, error) ||
        !field_need_text(dataset, "digest", &input->digest, error) ||
        !name_check_length("dataset name", input->name, LIMIT_TRACKING_DATASET_NAME, error) ||
        !copy_tags(item, tags, input, error)) {
        return false;
    }
    autojson json_t *shown = json_pack("{s:O, s:O}", "tags", tags, "dataset", copy);
    input->shown = json_text(shown);
    return true;
}

static bool put_input(struct tracking *tracking, int64_t run, const json_t *item,
                      struct tracking_error *error)
{
    __attribute__((cleanup(cleanup_input))) struct input input = {0};
    return read_input(item, &input, error) &&
           database_run(tracking, error, QUERY_INPUT_PUT, "itttt", run, input.name, input.digest,
                        input.context, input.shown);
}

bool work_runs_log_inputs(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    struct run run;
    const json_t *datasets = NULL;
    if (!run_find_active(tracking, request, &run, error) ||
        !field_objects(request->body, "datasets", &datasets, error)) {
        return false;
    }
    if (json_array_size(datasets) > LIMIT_TRACKING_INPUTS) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "A request can contain at most %d datasets.", LIMIT_TRACKING_INPUTS);
    }
    size_t i;
    const json_t *item;
    json_array_foreach (datasets, i, item) {
        if (!put_input(tracking, run.key, item, error)) {
            return false;
        }
    }
    text_append(out, "{}");
    return true;
}

/* --- models --- */

static json_t *load_models(struct tracking *tracking, int64_t run, struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_TAG, "it", run, TAG_MODELS);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return NULL;
    }
    json_t *models = NULL;
    if (there) {
        struct err err;
        models = json_parse(column_text(row, 0), (size_t)sqlite3_column_bytes(row, 0), &err);
    }
    if (!json_is_array(models)) { /* a client may have set the tag to anything */
        json_decref(models);
        models = json_array();
    }
    return models;
}

bool work_runs_log_model(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                         struct tracking_error *error)
{
    struct run run;
    const char *description;
    struct err err;
    if (!run_find_active(tracking, request, &run, error) ||
        !field_need_text(request->body, "model_json", &description, error)) {
        return false;
    }
    autojson json_t *model = json_parse(description, strlen(description), &err);
    if (!json_is_object(model)) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "Malformed model info: 'model_json' must be the text of a JSON object.");
    }
    autojson json_t *models = load_models(tracking, run.key, error);
    if (models == NULL) {
        return false;
    }
    json_array_append(models, model);
    autofree char *value = json_text(models);
    if (strlen(value) > LIMIT_TRACKING_MODELS_BYTES) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "The models of this run take more than %lld bytes to describe.",
                             LIMIT_TRACKING_MODELS_BYTES);
    }
    text_append(out, "{}");
    return database_run(tracking, error, QUERY_TAG_PUT, "itt", run.key, TAG_MODELS, value);
}
