/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps logged models: each has a name, parameters, tags, the place of its files and the run that made it.
 * The files are ordinary artifacts. Deleted models are never shown. */
#include "daemon/mlflow/models.h"

#include <stdio.h>
#include <string.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/experiments.h"
#include "daemon/mlflow/field.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/runs.h"
#include "daemon/mlflow/show.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

/* --- showing --- */

static void member_text(struct text *out, const char *name, const char *value)
{
    text_printf(out, "\"%s\": ", name);
    show_text(out, value);
    text_append(out, ", ");
}

static void show_info(sqlite3_stmt *row, struct text *out)
{
    text_append(out, "{");
    member_text(out, "model_id", column_text(row, 1));
    text_printf(out, "\"experiment_id\": \"%lld\", ", (long long)sqlite3_column_int64(row, 2));
    member_text(out, "name", column_text(row, 3));
    member_text(out, "model_type", column_text(row, 4));
    if (column_text(row, 5) != NULL) {
        member_text(out, "source_run_id", column_text(row, 5));
    }
    text_printf(out, "\"status\": \"LOGGED_MODEL_%s\", ", column_text(row, 6));
    member_text(out, "artifact_uri", column_text(row, 7));
    text_printf(out, "\"creation_timestamp_ms\": %lld, \"last_updated_timestamp_ms\": %lld, ",
                (long long)sqlite3_column_int64(row, 8), (long long)sqlite3_column_int64(row, 9));
}

bool show_model(struct tracking *tracking, sqlite3_stmt *row, struct text *out, struct tracking_error *error)
{
    int64_t key = sqlite3_column_int64(row, 0);
    text_append(out, "{\"info\": ");
    show_info(row, out);
    text_append(out, "\"tags\": ");
    if (!show_pairs(tracking, QUERY_MODEL_TAGS, key, out, error)) {
        return false;
    }
    text_append(out, "}, \"data\": {\"params\": ");
    if (!show_pairs(tracking, QUERY_MODEL_PARAMS, key, out, error)) {
        return false;
    }
    text_append(out, "}}");
    return true;
}

static bool no_model(const char *id, struct tracking_error *error)
{
    return tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST, "Logged model with ID '%.300s' not found.",
                         id);
}

/* Shows {"model": ...}. */
static bool show_found(struct tracking *tracking, const char *id, struct text *out,
                       struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_MODEL, "t", id);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    if (!there) {
        return no_model(id, error);
    }
    text_append(out, "{\"model\": ");
    bool ok = show_model(tracking, row, out, error);
    text_append(out, "}");
    return ok;
}

/* Finds the model that a request names. */
static bool find(struct tracking *tracking, const json_t *body, const char **ret_id, int64_t *ret_key,
                 struct tracking_error *error)
{
    bool there;
    if (!field_need_text(body, "model_id", ret_id, error)) {
        return false;
    }
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_MODEL, "t", *ret_id);
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    *ret_key = there ? sqlite3_column_int64(row, 0) : 0;
    return there || no_model(*ret_id, error);
}

bool model_place(struct tracking *tracking, const char *id, bool *ret_there, char **ret_uri, char **ret_run,
                 struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_MODEL, "t", id);
    if (!database_step(tracking, row, ret_there, error)) {
        return false;
    }
    if (*ret_there) {
        const char *run = column_text(row, 5);
        *ret_run = xstrdup(run != NULL ? run : "");
        *ret_uri = xstrdup(column_text(row, 7));
    }
    return true;
}

/* --- parameters and tags --- */

/* Writes objects {key, value} into the table of the query. */
static bool put_pairs(struct tracking *tracking, enum query query, const char *what, int64_t model,
                      const json_t *pairs, size_t limit, struct tracking_error *error)
{
    size_t i;
    const json_t *pair;
    json_array_foreach (pairs, i, pair) {
        const char *key;
        const char *value = "";
        if (!field_need_text(pair, "key", &key, error) || !field_text(pair, "value", &value, error) ||
            !name_check(what, key, error)) {
            return false;
        }
        autofree char *cut = name_cut(value, limit);
        if (!database_run(tracking, error, query, "itt", model, key, cut)) {
            return false;
        }
    }
    return true;
}

static bool put_params(struct tracking *tracking, const json_t *body, int64_t model,
                       struct tracking_error *error)
{
    const json_t *params = NULL;
    if (!field_objects(body, "params", &params, error)) {
        return false;
    }
    if (json_array_size(params) > LIMIT_TRACKING_PARAMS) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "A request can contain at most %d params of a model.", LIMIT_TRACKING_PARAMS);
    }
    return put_pairs(tracking, QUERY_MODEL_PARAM_PUT, "parameter", model, params, LIMIT_TRACKING_PARAM_VALUE,
                     error);
}

static bool put_tags(struct tracking *tracking, const json_t *body, int64_t model,
                     struct tracking_error *error)
{
    const json_t *tags = NULL;
    return field_objects(body, "tags", &tags, error) &&
           put_pairs(tracking, QUERY_MODEL_TAG_PUT, "tag", model, tags, LIMIT_TRACKING_TAG_VALUE, error);
}

bool work_models_log_params(struct tracking *tracking, const struct tracking_request *request,
                            struct text *out, struct tracking_error *error)
{
    const char *id;
    int64_t key;
    text_append(out, "{}");
    return find(tracking, request->body, &id, &key, error) && put_params(tracking, request->body, key, error);
}

bool work_models_set_tags(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    const char *id;
    int64_t key;
    text_append(out, "{}");
    return find(tracking, request->body, &id, &key, error) && put_tags(tracking, request->body, key, error);
}

bool work_models_delete_tag(struct tracking *tracking, const struct tracking_request *request,
                            struct text *out, struct tracking_error *error)
{
    const char *id;
    const char *tag;
    int64_t key;
    if (!find(tracking, request->body, &id, &key, error) ||
        !field_need_text(request->body, "tag_key", &tag, error) ||
        !database_run(tracking, error, QUERY_MODEL_TAG_DELETE, "it", key, tag)) {
        return false;
    }
    text_append(out, "{}");
    return sqlite3_changes(tracking->db) > 0 ||
           tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST,
                         "No tag with key '%.250s' found for model with ID '%.300s'.", tag, id);
}

/* --- creating, changing and deleting --- */

/* Clients use the name in paths and URIs. */
static bool check_name(const char *name, struct tracking_error *error)
{
    if (name[0] == '\0' || strpbrk(name, "/:.%\"'") != NULL) {
        return tracking_fail(
            error, TRACKING_INVALID_PARAMETER_VALUE,
            "Invalid model name ('%.250s') provided. Model name must be a non-empty string "
            "and cannot contain the following characters: ('/', ':', '.', '%%', '\"', \"'\")",
            name);
    }
    return name_check_length("model name", name, LIMIT_TRACKING_KEY, error);
}

struct new_model {
    char id[2 + TRACKING_RUN_ID_BYTES];
    const char *name, *type, *source_run; /* source_run NULL: none */
};

static bool insert(struct tracking *tracking, const struct experiment *experiment,
                   const struct new_model *model, int64_t now_ms, int64_t *ret_key,
                   struct tracking_error *error)
{
    autofree char *uri = xprintf("%s/models/%s/artifacts", experiment->artifact_location, model->id);
    bool ok = database_run(tracking, error, QUERY_MODEL_INSERT, "titttti", model->id, experiment->id,
                           model->name, model->type, model->source_run, uri, now_ms);
    *ret_key = sqlite3_last_insert_rowid(tracking->db);
    return ok;
}

static bool read_new(const json_t *body, struct new_model *model, struct tracking_error *error)
{
    model->id[0] = 'm';
    model->id[1] = '-';
    tracking_draw_run_id(model->id + 2);
    model->type = "";
    return field_text(body, "name", &model->name, error) &&
           (model->name == NULL || check_name(model->name, error)) &&
           field_text(body, "model_type", &model->type, error) &&
           field_text(body, "source_run_id", &model->source_run, error) &&
           name_check_length("model_type", model->type, LIMIT_TRACKING_KEY, error) &&
           (model->source_run == NULL || model->source_run[0] == '\0' ||
            name_check_run_id(model->source_run, error));
}

bool work_models_create(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                        struct tracking_error *error)
{
    autoexperiment struct experiment experiment = {0};
    struct new_model model = {.name = NULL};
    int64_t key;
    if (!experiment_of_request(tracking, request->body, "0", &experiment, error) ||
        !read_new(request->body, &model, error)) {
        return false;
    }
    if (experiment.deleted) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "The experiment %lld must be in the 'active' state. Current state is deleted.",
                             (long long)experiment.id);
    }
    autofree char *drawn = model.name == NULL ? name_draw_run() : NULL;
    model.name = drawn != NULL ? drawn : model.name;
    return insert(tracking, &experiment, &model, request->now_ms, &key, error) &&
           put_params(tracking, request->body, key, error) && put_tags(tracking, request->body, key, error) &&
           show_found(tracking, model.id, out, error);
}

bool work_models_get(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                     struct tracking_error *error)
{
    const char *id;
    return field_need_text(request->body, "model_id", &id, error) && show_found(tracking, id, out, error);
}

static bool read_status(const json_t *body, const char **ret_status, struct tracking_error *error)
{
    static const char *const words[] = {
#define AS_WORD(name) "LOGGED_MODEL_" #name,
        MODEL_STATUSES(AS_WORD)
#undef AS_WORD
    };
    size_t index = 0;
    if (!field_word(body, "status", words, sizeof words / sizeof words[0], &index, error)) {
        return false;
    }
    *ret_status = words[index] + sizeof "LOGGED_MODEL_" - 1;
    return index > 0 || tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                                      "Invalid model status: expected LOGGED_MODEL_READY or "
                                      "LOGGED_MODEL_UPLOAD_FAILED.");
}

bool work_models_finalize(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    const char *id;
    const char *status;
    int64_t key;
    return find(tracking, request->body, &id, &key, error) && read_status(request->body, &status, error) &&
           database_run(tracking, error, QUERY_MODEL_STATUS, "iti", key, status, request->now_ms) &&
           show_found(tracking, id, out, error);
}

/* Deleting a deleted model again is no error. */
bool work_models_delete(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                        struct tracking_error *error)
{
    const char *id;
    text_append(out, "{}");
    return field_need_text(request->body, "model_id", &id, error) &&
           database_run(tracking, error, QUERY_MODEL_DELETE, "ti", id, request->now_ms) &&
           (sqlite3_changes(tracking->db) > 0 || no_model(id, error));
}

/* --- outputs of a run --- */

static bool put_output(struct tracking *tracking, int64_t run, const json_t *output,
                       struct tracking_error *error)
{
    const char *id;
    int64_t step = 0;
    return field_need_text(output, "model_id", &id, error) && field_int(output, "step", &step, error) &&
           name_check_length("model_id", id, LIMIT_TRACKING_RUN_ID, error) &&
           database_run(tracking, error, QUERY_OUTPUT_PUT, "iti", run, id, step);
}

bool work_runs_log_outputs(struct tracking *tracking, const struct tracking_request *request,
                           struct text *out, struct tracking_error *error)
{
    struct run run;
    const json_t *models = NULL;
    if (!run_find_active(tracking, request, &run, error) ||
        !field_objects(request->body, "models", &models, error)) {
        return false;
    }
    size_t i;
    const json_t *output;
    json_array_foreach (models, i, output) {
        if (!put_output(tracking, run.key, output, error)) {
            return false;
        }
    }
    text_append(out, "{}");
    return true;
}

bool show_model_outputs(struct tracking *tracking, int64_t run, struct text *out,
                        struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_OUTPUTS, "i", run);
    bool there, ok;
    text_append(out, "[");
    for (int count = 0; (ok = database_step(tracking, row, &there, error)) && there; count++) {
        text_append(out, count > 0 ? ", {\"model_id\": " : "{\"model_id\": ");
        show_text(out, column_text(row, 0));
        text_printf(out, ", \"step\": %lld}", (long long)sqlite3_column_int64(row, 1));
    }
    text_append(out, "]");
    return ok;
}
