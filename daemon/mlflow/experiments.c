/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps experiments and their tags. The name of a deleted experiment stays taken, so that restoring never
 * fails. Deleting and restoring an experiment includes its runs, except those that were deleted
 * individually. */
#include "daemon/mlflow/experiments.h"

#include <stdio.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/entries.h"
#include "daemon/mlflow/field.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/show.h"
#include "daemon/mlflow/tables.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

/* --- finding --- */

static bool take_row(struct tracking *tracking, sqlite3_stmt *row, struct experiment *experiment,
                     bool *ret_there, struct tracking_error *error)
{
    if (!database_step(tracking, row, ret_there, error)) {
        return false;
    }
    if (*ret_there) {
        experiment->id = sqlite3_column_int64(row, 0);
        experiment->artifact_location = xstrdup(column_text(row, 2));
        experiment->deleted = sqlite3_column_int(row, 3) != 0;
    }
    return true;
}

static bool no_experiment(const char *id, struct tracking_error *error)
{
    return tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST, "No Experiment with id=%.100s exists", id);
}

/* Reads the id as a number; no other spelling is accepted. False when no experiment can have the id. */
static bool read_id(const json_t *body, const char *standard, int64_t *ret_id, struct tracking_error *error)
{
    const json_t *value = json_object_get(body, "experiment_id");
    if (json_is_integer(value)) {
        *ret_id = json_integer_value(value);
        return true;
    }
    const char *id = standard;
    if (!field_text(body, "experiment_id", &id, error) ||
        (id == NULL && !field_need_text(body, "experiment_id", &id, error))) {
        return false;
    }
    return text_to_int(id, 0, INT64_MAX, ret_id) || no_experiment(id, error);
}

bool experiment_of_request(struct tracking *tracking, const json_t *body, const char *standard,
                           struct experiment *experiment, struct tracking_error *error)
{
    int64_t id;
    bool there;
    if (!read_id(body, standard, &id, error)) {
        return false;
    }
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_EXPERIMENT, "i", id);
    if (!take_row(tracking, row, experiment, &there, error)) {
        return false;
    }
    char name[24];
    snprintf(name, sizeof name, "%lld", (long long)id);
    return there || no_experiment(name, error);
}

bool experiment_by_id(struct tracking *tracking, const char *id, struct experiment *experiment,
                      bool *ret_there, struct tracking_error *error)
{
    int64_t number;
    *ret_there = false;
    if (!text_to_int(id, 0, INT64_MAX, &number)) {
        return true;
    }
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_EXPERIMENT, "i", number);
    return take_row(tracking, row, experiment, ret_there, error);
}

bool experiment_by_name(struct tracking *tracking, const char *name, struct experiment *experiment,
                        bool *ret_there, struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_EXPERIMENT_BY_NAME, "t", name);
    return take_row(tracking, row, experiment, ret_there, error);
}

static bool find_active(struct tracking *tracking, const json_t *body, struct experiment *experiment,
                        struct tracking_error *error)
{
    return experiment_of_request(tracking, body, NULL, experiment, error) &&
           (!experiment->deleted ||
            tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                          "The experiment %lld must be in the 'active' state. Current state is deleted.",
                          (long long)experiment->id));
}

/* --- making --- */

static bool name_is_free(struct tracking *tracking, const char *name, struct tracking_error *error)
{
    autoexperiment struct experiment experiment = {0};
    bool there;
    if (!experiment_by_name(tracking, name, &experiment, &there, error)) {
        return false;
    }
    if (!there) {
        return true;
    }
    return tracking_fail(error, TRACKING_RESOURCE_ALREADY_EXISTS, "Experiment '%.300s' already exists%s.",
                         name,
                         experiment.deleted ? " in deleted state. Restore it or choose another name" : "");
}

static bool next_id(struct tracking *tracking, int64_t *ret_id, struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_EXPERIMENT_NEXT, "");
    bool there;
    bool ok = database_step(tracking, row, &there, error);
    *ret_id = ok ? sqlite3_column_int64(row, 0) : 0;
    return ok;
}

bool experiment_insert(struct tracking *tracking, const char *name, const char *location, int64_t now_ms,
                       int64_t *ret_id, struct tracking_error *error)
{
    if (!name_check_experiment(name, error) || !next_id(tracking, ret_id, error)) {
        return false;
    }
    autofree char *place =
        location != NULL ? xstrdup(location) : xprintf("mlflow-artifacts:/%lld", (long long)*ret_id);
    return database_run(tracking, error, QUERY_EXPERIMENT_INSERT, "itti", *ret_id, name, place, now_ms);
}

static bool put_tag(struct tracking *tracking, int64_t experiment, const json_t *tag,
                    struct tracking_error *error)
{
    const char *key;
    const char *value = "";
    return field_need_text(tag, "key", &key, error) && field_text(tag, "value", &value, error) &&
           name_check("tag", key, error) &&
           name_check_length("tag value", value, LIMIT_TRACKING_TAG_VALUE, error) &&
           database_run(tracking, error, QUERY_EXPERIMENT_TAG_PUT, "itt", experiment, key, value);
}

static bool put_tags(struct tracking *tracking, int64_t experiment, const json_t *tags,
                     struct tracking_error *error)
{
    size_t i;
    const json_t *tag;
    json_array_foreach (tags, i, tag) {
        if (!put_tag(tracking, experiment, tag, error)) {
            return false;
        }
    }
    return true;
}

/* A rank whose code calls set_experiment looks up or makes the experiment by its name. It then continues the
 * run of its attempt, which MLflow's client refuses if the run is in another experiment. So the run moves to
 * that experiment, as long as nothing was logged into it. */
static bool move_own_run(struct tracking *tracking, const struct tracking_request *request,
                         int64_t experiment, struct tracking_error *error)
{
    return request->own_run == NULL ||
           database_run(tracking, error, QUERY_RUN_MOVE, "ti", request->own_run, experiment);
}

bool work_experiments_create(struct tracking *tracking, const struct tracking_request *request,
                             struct text *out, struct tracking_error *error)
{
    const char *name;
    const char *location = "";
    const json_t *tags = NULL;
    int64_t id;
    if (!field_need_text(request->body, "name", &name, error) ||
        !field_text(request->body, "artifact_location", &location, error) ||
        !field_objects(request->body, "tags", &tags, error) ||
        (location[0] != '\0' && !name_check_location(location, error)) ||
        !name_is_free(tracking, name, error) ||
        !experiment_insert(tracking, name, location[0] != '\0' ? location : NULL, request->now_ms, &id,
                           error) ||
        !put_tags(tracking, id, tags, error) || !move_own_run(tracking, request, id, error)) {
        return false;
    }
    text_printf(out, "{\"experiment_id\": \"%lld\"}", (long long)id);
    return true;
}

/* --- showing --- */

static bool show_found(struct tracking *tracking, sqlite3_stmt *row, bool *ret_there, struct text *out,
                       struct tracking_error *error)
{
    if (!database_step(tracking, row, ret_there, error)) {
        return false;
    }
    if (!*ret_there) {
        return true;
    }
    text_append(out, "{\"experiment\": ");
    if (!show_experiment(tracking, row, out, error)) {
        return false;
    }
    text_append(out, "}");
    return true;
}

bool work_experiments_get(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    autoexperiment struct experiment experiment = {0};
    bool there;
    if (!experiment_of_request(tracking, request->body, NULL, &experiment, error)) {
        return false;
    }
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_EXPERIMENT, "i", experiment.id);
    return show_found(tracking, row, &there, out, error);
}

bool work_experiments_get_by_name(struct tracking *tracking, const struct tracking_request *request,
                                  struct text *out, struct tracking_error *error)
{
    const char *name;
    bool there;
    if (!field_need_text(request->body, "experiment_name", &name, error)) {
        return false;
    }
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_EXPERIMENT_BY_NAME, "t", name);
    if (!show_found(tracking, row, &there, out, error)) {
        return false;
    }
    return there ? move_own_run(tracking, request, sqlite3_column_int64(row, 0), error)
                 : tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST,
                                 "Could not find experiment with name '%.300s'", name);
}

/* --- changing --- */

bool work_experiments_update(struct tracking *tracking, const struct tracking_request *request,
                             struct text *out, struct tracking_error *error)
{
    autoexperiment struct experiment experiment = {0};
    const char *name = NULL;
    if (!find_active(tracking, request->body, &experiment, error) ||
        !field_text(request->body, "new_name", &name, error)) {
        return false;
    }
    if (name != NULL && !(name_check_experiment(name, error) && name_is_free(tracking, name, error) &&
                          database_run(tracking, error, QUERY_EXPERIMENT_RENAME, "iti", experiment.id, name,
                                       request->now_ms))) {
        return false;
    }
    text_append(out, "{}");
    return true;
}

bool work_experiments_delete(struct tracking *tracking, const struct tracking_request *request,
                             struct text *out, struct tracking_error *error)
{
    autoexperiment struct experiment experiment = {0};
    if (!experiment_of_request(tracking, request->body, NULL, &experiment, error)) {
        return false;
    }
    if (experiment.deleted) {
        return tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST,
                             "The experiment %lld is deleted already.", (long long)experiment.id);
    }
    if (experiment.id == 0) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "The experiment 0 cannot be deleted: runs without an experiment belong to it.");
    }
    if (!database_run(tracking, error, QUERY_EXPERIMENT_DELETE, "ibi", experiment.id, 1, request->now_ms) ||
        !database_run(tracking, error, QUERY_EXPERIMENT_RUNS_DELETE, "ibb", experiment.id, (int)RUN_ACTIVE,
                      (int)RUN_DELETED_WITH_EXPERIMENT)) {
        return false;
    }
    text_append(out, "{}");
    return true;
}

bool experiment_restore(struct tracking *tracking, int64_t id, int64_t now_ms, struct tracking_error *error)
{
    return database_run(tracking, error, QUERY_EXPERIMENT_DELETE, "ibi", id, 0, now_ms) &&
           database_run(tracking, error, QUERY_EXPERIMENT_RUNS_DELETE, "ibb", id,
                        (int)RUN_DELETED_WITH_EXPERIMENT, (int)RUN_ACTIVE);
}

bool work_experiments_restore(struct tracking *tracking, const struct tracking_request *request,
                              struct text *out, struct tracking_error *error)
{
    autoexperiment struct experiment experiment = {0};
    if (!experiment_of_request(tracking, request->body, NULL, &experiment, error)) {
        return false;
    }
    if (!experiment.deleted) {
        return tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST,
                             "No experiment with id=%lld is deleted, which could be restored.",
                             (long long)experiment.id);
    }
    if (!experiment_restore(tracking, experiment.id, request->now_ms, error)) {
        return false;
    }
    text_append(out, "{}");
    return true;
}

bool work_experiments_set_tag(struct tracking *tracking, const struct tracking_request *request,
                              struct text *out, struct tracking_error *error)
{
    autoexperiment struct experiment experiment = {0};
    if (!find_active(tracking, request->body, &experiment, error) ||
        !put_tag(tracking, experiment.id, request->body, error)) {
        return false;
    }
    text_append(out, "{}");
    return true;
}

bool work_experiments_delete_tag(struct tracking *tracking, const struct tracking_request *request,
                                 struct text *out, struct tracking_error *error)
{
    autoexperiment struct experiment experiment = {0};
    const char *key;
    if (!find_active(tracking, request->body, &experiment, error) ||
        !field_need_text(request->body, "key", &key, error) ||
        !database_run(tracking, error, QUERY_EXPERIMENT_TAG_DELETE, "it", experiment.id, key)) {
        return false;
    }
    if (sqlite3_changes(tracking->db) == 0) {
        return tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST,
                             "No tag with name: %.300s in experiment with id %lld", key,
                             (long long)experiment.id);
    }
    text_append(out, "{}");
    return true;
}
