/* SPDX-License-Identifier: Apache-2.0 */
/* Writes parameters and tags. A parameter is written once. Repeating the same value is no error, because
 * clients repeat requests that got no answer. */
#include "daemon/mlflow/entries.h"

#include <assert.h>
#include <string.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/field.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/runs.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

char *value_cut_tag(const char *value)
{
    return name_cut(value, LIMIT_TRACKING_TAG_VALUE);
}

/* --- tags --- */

bool tag_put(struct tracking *tracking, int64_t run, const char *name, const char *value,
             struct tracking_error *error)
{
    autofree char *cut = value_cut_tag(value);
    return name_check("tag", name, error) &&
           database_run(tracking, error, QUERY_TAG_PUT, "itt", run, name, cut) &&
           (strcmp(name, TAG_RUN_NAME) != 0 ||
            database_run(tracking, error, QUERY_RUN_RENAME, "it", run, cut));
}

static bool tag_put_object(struct tracking *tracking, int64_t run, const json_t *tag,
                           struct tracking_error *error)
{
    const char *key;
    const char *value = "";
    return field_need_text(tag, "key", &key, error) && field_text(tag, "value", &value, error) &&
           tag_put(tracking, run, key, value, error);
}

bool tags_put(struct tracking *tracking, int64_t run, const json_t *tags, struct tracking_error *error)
{
    size_t i;
    const json_t *tag;
    json_array_foreach (tags, i, tag) {
        if (!tag_put_object(tracking, run, tag, error)) {
            return false;
        }
    }
    return true;
}

bool work_runs_set_tag(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                       struct tracking_error *error)
{
    struct run run;
    if (!run_find_active(tracking, request, &run, error) ||
        !tag_put_object(tracking, run.key, request->body, error)) {
        return false;
    }
    text_append(out, "{}");
    return true;
}

bool work_runs_delete_tag(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    struct run run;
    const char *key;
    if (!run_find_active(tracking, request, &run, error) ||
        !field_need_text(request->body, "key", &key, error) ||
        !database_run(tracking, error, QUERY_TAG_DELETE, "it", run.key, key)) {
        return false;
    }
    if (sqlite3_changes(tracking->db) == 0) {
        return tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST, "No tag with name: %.300s in this run",
                             key);
    }
    text_append(out, "{}");
    return true;
}

/* --- parameters --- */

/* Compares the value with the stored parameter. */
static bool compare(struct tracking *tracking, const char *run_id, int64_t run, const char *key,
                    const char *value, struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_PARAM, "it", run, key);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    assert(there);
    const char *old = column_text(row, 0);
    return strcmp(old, value) == 0 ||
           tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                         "Changing param values is not allowed. Param with key='%.250s' was already logged "
                         "with value='%.200s' for run ID='%.64s'. Attempted logging new value '%.200s'.",
                         key, old, run_id, value);
}

bool param_put(struct tracking *tracking, const char *run_id, int64_t run, const json_t *param,
               struct tracking_error *error)
{
    const char *key;
    const char *value = "";
    if (!field_need_text(param, "key", &key, error) || !field_text(param, "value", &value, error) ||
        !name_check("parameter", key, error)) {
        return false;
    }
    autofree char *cut = name_cut(value, LIMIT_TRACKING_PARAM_VALUE);
    return database_run(tracking, error, QUERY_PARAM_INSERT, "itt", run, key, cut) &&
           (sqlite3_changes(tracking->db) == 1 || compare(tracking, run_id, run, key, cut, error));
}

bool work_runs_log_parameter(struct tracking *tracking, const struct tracking_request *request,
                             struct text *out, struct tracking_error *error)
{
    struct run run;
    const char *run_id;
    if (!run_find_active(tracking, request, &run, error) ||
        !field_need_run_id(request->body, &run_id, error) ||
        !param_put(tracking, run_id, run.key, request->body, error)) {
        return false;
    }
    text_append(out, "{}");
    return true;
}
