/* SPDX-License-Identifier: Apache-2.0 */
/* Records the inputs and outputs of a run: data sets (runs/log-inputs), the descriptions of models
 * (runs/log-model), which clients read from a tag, and the logged models that it made (runs/outputs). */
#include <string.h>

#include "daemon/mlflow/call/endpoints.h"
#include "daemon/mlflow/call/field.h"
#include "daemon/mlflow/call/names.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/runs/runs.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_tracking.h"

/* --- data sets --- */

/* The tag of an input: the use of the data set. */
#define TAG_CONTEXT "mlflow.data.context"

/* Copies the tags of the item. *ret_context: the value of TAG_CONTEXT, or as it is. */
static json_t *copy_tags(struct call *call, const json_t *item, const char **ret_context)
{
    json_t *copy = json_array();
    const json_t *tags = field_objects(call, item, "tags");
    size_t i;
    const json_t *tag;
    json_array_foreach (tags, i, tag) {
        const char *key = field_need_text(call, tag, "key");
        const char *value = field_text(call, tag, "value", "");
        name_check(call, "input tag", key);
        json_array_append_new(copy, json_pack("{s:s, s:s}", "key", key, "value", value));
        *ret_context = strcmp(key, TAG_CONTEXT) == 0 ? value : *ret_context;
    }
    return copy;
}

static json_t *copy_dataset(struct call *call, const json_t *dataset)
{
    static const char *const members[] = {"name", "digest", "source_type", "source", "schema", "profile"};
    json_t *copy = json_object();
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        const char *value = field_text(call, dataset, members[i], NULL);
        if (value != NULL) {
            json_object_set_new(copy, members[i], json_string(value));
        }
    }
    return copy;
}

/* A data set is stored in the form in which it is shown. */
static void put_input(struct call *call, int64_t run, const json_t *item)
{
    const json_t *dataset = json_object_get(item, "dataset");
    const char *context = NULL;
    if (!json_is_object(dataset)) {
        call_refuse(call, "Missing value for required parameter 'dataset' of a data set input.");
    }
    json_t *copy = copy_dataset(call, dataset);
    const char *name = field_need_text(call, dataset, "name");
    const char *digest = field_need_text(call, dataset, "digest");
    name_check_length(call, "dataset name", name, LIMIT_TRACKING_DATASET_NAME);
    autojson json_t *shown =
        json_pack("{s:o, s:o}", "tags", copy_tags(call, item, &context), "dataset", copy);
    autofree char *text = json_text(shown);
    database_run(call, QUERY_INPUT_PUT, "itttt", run, name, digest, context, text);
}

void work_runs_log_inputs(struct call *call)
{
    struct run run = run_find_active(call);
    const json_t *datasets = field_objects(call, call->request.body, "datasets");
    if (json_array_size(datasets) > LIMIT_TRACKING_INPUTS) {
        call_refuse(call, "A request can contain at most %d datasets.", LIMIT_TRACKING_INPUTS);
    }
    size_t i;
    const json_t *item;
    json_array_foreach (datasets, i, item) {
        put_input(call, run.key, item);
    }
}

/* --- models --- */

/* The tag has a JSON array of the descriptions. */
#define TAG_MODELS "mlflow.log-model.history"

static json_t *load_models(struct call *call, int64_t run)
{
    autofree char *value = database_text(call, QUERY_TAG, "it", run, TAG_MODELS);
    json_t *models = value != NULL ? json_parse(value, strlen(value), NULL) : NULL;
    if (!json_is_array(models)) { /* a client may have set the tag to anything */
        json_decref(models);
        models = json_array();
    }
    return models;
}

void work_runs_log_model(struct call *call)
{
    struct run run = run_find_active(call);
    const char *description = field_need_text(call, call->request.body, "model_json");
    autojson json_t *model = json_parse(description, strlen(description), NULL);
    if (!json_is_object(model)) {
        call_refuse(call, "Malformed model info: 'model_json' must be the text of a JSON object.");
    }
    autojson json_t *models = load_models(call, run.key);
    json_array_append(models, model);
    autofree char *value = json_text(models);
    if (strlen(value) > LIMIT_TRACKING_MODELS_BYTES) {
        call_refuse(call, "The models of this run take more than %lld bytes to describe.",
                    LIMIT_TRACKING_MODELS_BYTES);
    }
    database_run(call, QUERY_TAG_PUT, "itt", run.key, TAG_MODELS, value);
}

void work_runs_log_outputs(struct call *call)
{
    struct run run = run_find_active(call);
    const json_t *models = field_objects(call, call->request.body, "models");
    size_t i;
    const json_t *output;
    json_array_foreach (models, i, output) {
        const char *id = field_need_text(call, output, "model_id");
        int64_t step = field_int(call, output, "step", 0);
        name_check_length(call, "model_id", id, LIMIT_TRACKING_RUN_ID);
        database_run(call, QUERY_OUTPUT_PUT, "iti", run.key, id, step);
    }
}
