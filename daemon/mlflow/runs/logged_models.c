/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps logged models: each has a name, parameters, tags, the place of its files and the run that made it.
 * The files are ordinary artifacts. Deleted models are never shown. */
#include "daemon/mlflow/runs/logged_models.h"

#include <string.h>

#include "daemon/mlflow/call/endpoints.h"
#include "daemon/mlflow/call/field.h"
#include "daemon/mlflow/call/names.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/database/tables.h"
#include "daemon/mlflow/runs/experiments.h"
#include "daemon/mlflow/runs/pairs.h"
#include "proto/base/cleanup.h"
#include "proto/limits_tracking.h"

/* --- finding and showing --- */

static void no_model(struct call *call, const char *id)
{
    call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST, "Logged model with ID '%.300s' not found.", id);
}

/* The key of the model that a request names; deleted: also of one that is. */
static int64_t find(struct call *call, enum tracking_right right, bool deleted)
{
    const char *id = field_need_text(call, call->request.body, "model_id");
    autoquery sqlite3_stmt *row = database_query(call, QUERY_MODEL, "tb", id, (int)deleted);
    if (!database_next(call, row)) {
        no_model(call, id);
        return 0;
    }
    if (right != TRACKING_SEES) {
        rights_need(call, right, (struct holder){column_text(row, 3), column_text(row, 4)}, "model");
    }
    return sqlite3_column_int64(row, 0);
}

void logged_model_place(struct call *call, const char *id, char **ret_uri, char **ret_run)
{
    autoquery sqlite3_stmt *row = database_query(call, QUERY_MODEL, "tb", id, 0);
    bool there = database_next(call, row);
    *ret_uri = there ? xstrdup(column_text(row, 1)) : NULL;
    *ret_run = there ? xstrdup(column_text(row, 2)) : NULL;
    if (!there) {
        no_model(call, id);
    }
}

void work_models_get(struct call *call)
{
    database_answer(call, "model", QUERY_MODEL_SHOW, find(call, TRACKING_SEES, false));
}

/* --- parameters and tags --- */

static void put_params(struct call *call, int64_t model)
{
    const json_t *params = field_objects(call, call->request.body, "params");
    if (json_array_size(params) > LIMIT_TRACKING_PARAMS) {
        call_refuse(call, "A request can contain at most %d params of a model.", LIMIT_TRACKING_PARAMS);
    }
    pairs_put(call, &model_params, model, params);
}

static void put_tags(struct call *call, int64_t model)
{
    pairs_put(call, &model_tags, model, field_objects(call, call->request.body, "tags"));
}

void work_models_log_params(struct call *call)
{
    put_params(call, find(call, TRACKING_CHANGES, false));
}

void work_models_set_tags(struct call *call)
{
    put_tags(call, find(call, TRACKING_CHANGES, false));
}

void work_models_delete_tag(struct call *call)
{
    int64_t key = find(call, TRACKING_CHANGES, false);
    const char *tag = field_need_text(call, call->request.body, "tag_key");
    if (!pair_delete(call, &model_tags, key, tag)) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST,
                  "No tag with key '%.250s' found for model with ID '%.300s'.", tag,
                  field_need_text(call, call->request.body, "model_id"));
    }
}

/* --- creating, changing and deleting --- */

/* Clients use the name in paths and URIs. */
static void check_name(struct call *call, const char *name)
{
    if (name[0] == '\0' || strpbrk(name, "/:.%\"'") != NULL) {
        call_refuse(call,
                    "Invalid model name ('%.250s') provided. Model name must be a non-empty string and "
                    "cannot contain the following characters: ('/', ':', '.', '%%', '\"', \"'\")",
                    name);
    }
    name_check_length(call, "model name", name, LIMIT_TRACKING_KEY);
}

void work_models_create(struct call *call)
{
    const json_t *body = call->request.body;
    char id[2 + TRACKING_RUN_ID_BYTES] = "m-";
    tracking_draw_run_id(id + 2);
    autoexperiment struct experiment experiment = experiment_of_request(call, TRACKING_ADDS, "0");
    autofree char *drawn = name_draw_run();
    const char *name = field_text(call, body, "name", drawn);
    check_name(call, name);
    const char *type = field_text(call, body, "model_type", "");
    const char *run = field_text(call, body, "source_run_id", NULL);
    name_check_length(call, "model_type", type, LIMIT_TRACKING_KEY);
    if (run != NULL && run[0] != '\0') {
        name_check_run_id(call, run);
    }
    experiment_check_active(call, &experiment);
    if (call->failed) {
        return;
    }
    autofree char *uri = xprintf("%s/models/%s/artifacts", experiment.artifact_location, id);
    struct holder holder = experiment_holder_of_new(call, &experiment);
    database_run(call, QUERY_MODEL_INSERT, "tittttitt", id, experiment.id, name, type, run, uri,
                 call->request.now_ms, holder.owner, holder.project);
    int64_t key = sqlite3_last_insert_rowid(call->tracking->db);
    put_params(call, key);
    put_tags(call, key);
    database_answer(call, "model", QUERY_MODEL_SHOW, key);
}

void work_models_finalize(struct call *call)
{
    static const char *const words[] = {
#define AS_WORD(name) "LOGGED_MODEL_" #name,
        MODEL_STATUSES(AS_WORD)
#undef AS_WORD
    };
    int64_t key = find(call, TRACKING_CHANGES, false);
    size_t index = field_word(call, "status", words, sizeof words / sizeof words[0], 0);
    if (index == 0) {
        call_refuse(call, "Invalid model status: expected LOGGED_MODEL_READY or LOGGED_MODEL_UPLOAD_FAILED.");
    }
    database_run(call, QUERY_MODEL_STATUS, "iti", key, words[index] + sizeof "LOGGED_MODEL_" - 1,
                 call->request.now_ms);
    database_answer(call, "model", QUERY_MODEL_SHOW, key);
}

/* Deleting a deleted model again is no error. */
void work_models_delete(struct call *call)
{
    database_run(call, QUERY_MODEL_DELETE, "ii", find(call, TRACKING_CHANGES, true), call->request.now_ms);
}
