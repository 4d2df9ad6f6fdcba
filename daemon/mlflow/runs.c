/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, shows, updates and deletes runs. The status of a run is the one that was set last, and values may be
 * logged in any status, because the first of many ranks to end sets FINISHED for all. */
#include "daemon/mlflow/runs.h"

#include <string.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/entries.h"
#include "daemon/mlflow/field.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/show.h"
#include "daemon/mlflow/tables.h"
#include "proto/base/cleanup.h"

/* --- finding --- */

static bool no_run(const char *run_id, struct tracking_error *error)
{
    return tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST, "Run with id=%.300s not found", run_id);
}

bool run_find(struct tracking *tracking, const char *run_id, struct run *run, bool *ret_there,
              struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_RUN, "t", run_id);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    if (there) {
        *run = (struct run){.key = sqlite3_column_int64(row, 0),
                            .experiment = sqlite3_column_int64(row, 2),
                            .deleted = sqlite3_column_int(row, 8)};
    }
    if (ret_there != NULL) {
        *ret_there = there;
        return true;
    }
    return there || no_run(run_id, error);
}

bool run_find_active(struct tracking *tracking, const struct tracking_request *request, struct run *run,
                     struct tracking_error *error)
{
    const char *run_id;
    if (!field_need_run_id(request->body, &run_id, error) || !run_find(tracking, run_id, run, NULL, error)) {
        return false;
    }
    return run->deleted == RUN_ACTIVE ||
           tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                         "The run %.300s must be in the 'active' state. Current state is deleted.", run_id);
}

bool tracking_artifact_uri(struct tracking *tracking, const char *run_id, char **ret_uri,
                           struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_RUN, "t", run_id);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    if (!there) {
        return no_run(run_id, error);
    }
    *ret_uri = xstrdup(column_text(row, 9));
    return true;
}

/* --- making --- */

bool run_insert(struct tracking *tracking, const struct experiment *experiment, const struct new_run *new_run,
                int64_t *ret_key, struct tracking_error *error)
{
    if (experiment->deleted) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "The experiment %lld must be in the 'active' state. Current state is deleted.",
                             (long long)experiment->id);
    }
    autofree char *uri = xprintf("%s/%s/artifacts", experiment->artifact_location, new_run->id);
    if (!database_run(tracking, error, QUERY_RUN_INSERT, "titttit", new_run->id, experiment->id,
                      new_run->name, new_run->user_id, "RUNNING", new_run->start_ms, uri)) {
        return false;
    }
    *ret_key = sqlite3_last_insert_rowid(tracking->db);
    return tag_put(tracking, *ret_key, TAG_RUN_NAME, new_run->name, error);
}

static const char *find_tag(const json_t *tags, const char *name)
{
    size_t i;
    const json_t *tag;
    json_array_foreach (tags, i, tag) {
        const char *key = json_string_value(json_object_get(tag, "key"));
        if (key != NULL && strcmp(key, name) == 0) {
            return json_string_value(json_object_get(tag, "value"));
        }
    }
    return NULL;
}

/* The name may come as a member, as a tag, or as both with the same text; an empty name counts as none. */
static bool choose_name(const json_t *body, const json_t *tags, char **ret_name, struct tracking_error *error)
{
    const char *name = "";
    if (!field_text(body, "run_name", &name, error)) {
        return false;
    }
    const char *tag = find_tag(tags, TAG_RUN_NAME);
    tag = tag != NULL ? tag : "";
    if (name[0] != '\0' && tag[0] != '\0' && strcmp(name, tag) != 0) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "The parameter 'run_name' ('%.200s') and the tag '%s' ('%.200s') differ.", name,
                             TAG_RUN_NAME, tag);
    }
    const char *chosen = name[0] != '\0' ? name : tag;
    *ret_name = chosen[0] != '\0' ? value_cut_tag(chosen) : name_draw_run();
    return true;
}

/* Clients send "unknown" if they have no user name. */
static bool choose_user(const struct tracking_request *request, const char **ret_user,
                        struct tracking_error *error)
{
    const char *user = "";
    if (!field_text(request->body, "user_id", &user, error) ||
        !name_check_length("user_id", user, 256, error)) {
        return false;
    }
    *ret_user = user[0] != '\0' && strcmp(user, "unknown") != 0 ? user : request->owner;
    return true;
}

static bool show_found(struct tracking *tracking, const char *run_id, struct text *out,
                       struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_RUN, "t", run_id);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    if (!there) {
        return no_run(run_id, error);
    }
    text_append(out, "{\"run\": ");
    if (!show_run(tracking, row, out, error)) {
        return false;
    }
    text_append(out, "}");
    return true;
}

bool work_runs_create(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                      struct tracking_error *error)
{
    autoexperiment struct experiment experiment = {0};
    autofree char *name = NULL;
    const json_t *tags = NULL;
    char id[TRACKING_RUN_ID_BYTES];
    tracking_draw_run_id(id);
    struct new_run new_run = {.id = id, .start_ms = request->now_ms};
    int64_t key;
    if (!experiment_of_request(tracking, request->body, "0", &experiment, error) ||
        !field_objects(request->body, "tags", &tags, error) ||
        !choose_name(request->body, tags, &name, error) || !choose_user(request, &new_run.user_id, error) ||
        !field_int(request->body, "start_time", &new_run.start_ms, error)) {
        return false;
    }
    new_run.name = name;
    return run_insert(tracking, &experiment, &new_run, &key, error) && tags_put(tracking, key, tags, error) &&
           tag_put(tracking, key, TAG_RUN_NAME, name, error) && show_found(tracking, id, out, error);
}

/* --- showing and updating --- */

bool work_runs_get(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                   struct tracking_error *error)
{
    const char *run_id;
    return field_need_run_id(request->body, &run_id, error) && show_found(tracking, run_id, out, error);
}

static bool update(struct tracking *tracking, const json_t *body, int64_t key, struct tracking_error *error)
{
    const char *status = NULL;
    const char *name = "";
    int64_t end_ms = INT64_MIN;
    if (!field_status(body, &status, error) || !field_int(body, "end_time", &end_ms, error) ||
        !field_text(body, "run_name", &name, error)) {
        return false;
    }
    return (status == NULL || database_run(tracking, error, QUERY_RUN_STATUS, "it", key, status)) &&
           (end_ms == INT64_MIN || database_run(tracking, error, QUERY_RUN_END, "ii", key, end_ms)) &&
           (name[0] == '\0' || tag_put(tracking, key, TAG_RUN_NAME, name, error));
}

bool work_runs_update(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                      struct tracking_error *error)
{
    struct run run;
    const char *run_id;
    if (!run_find_active(tracking, request, &run, error) ||
        !update(tracking, request->body, run.key, error) ||
        !field_need_run_id(request->body, &run_id, error)) {
        return false;
    }
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_RUN, "t", run_id);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    text_append(out, "{\"run_info\": ");
    show_run_info(row, out);
    text_append(out, "}");
    return true;
}

/* --- deleting --- */

/* Deleting a deleted run again is no error. A run that was deleted with its experiment is restored with the
 * experiment. */
bool work_runs_delete(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                      struct tracking_error *error)
{
    struct run run;
    const char *run_id;
    if (!field_need_run_id(request->body, &run_id, error) || !run_find(tracking, run_id, &run, NULL, error)) {
        return false;
    }
    if (run.deleted == RUN_ACTIVE &&
        !database_run(tracking, error, QUERY_RUN_DELETE, "ib", run.key, (int)RUN_DELETED)) {
        return false;
    }
    text_append(out, "{}");
    return true;
}

bool work_runs_restore(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                       struct tracking_error *error)
{
    struct run run;
    const char *run_id;
    if (!field_need_run_id(request->body, &run_id, error) || !run_find(tracking, run_id, &run, NULL, error)) {
        return false;
    }
    if (run.deleted == RUN_DELETED_WITH_EXPERIMENT) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "The run %.300s was deleted with its experiment %lld. Restore the experiment.",
                             run_id, (long long)run.experiment);
    }
    if (!database_run(tracking, error, QUERY_RUN_DELETE, "ib", run.key, (int)RUN_ACTIVE)) {
        return false;
    }
    text_append(out, "{}");
    return true;
}
