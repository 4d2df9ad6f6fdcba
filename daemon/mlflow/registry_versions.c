/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the versions of registered models: their files, stage, description and tags. A new version is ready
 * at once, because nothing is copied: its files stay with the run or the logged model. Deleting either does
 * not delete the version. */
#include <string.h>
#include <strings.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/field.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/registry.h"
#include "daemon/mlflow/show.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"

static const struct tag_table tag_table = {QUERY_VERSION_TAG_PUT, QUERY_VERSION_TAGS_COUNT};

static const char *const stages[] = {
#define AS_WORD(name) #name,
    VERSION_STAGES(AS_WORD)
#undef AS_WORD
};

enum { STAGE_COUNT = sizeof stages / sizeof stages[0] };

/* --- finding --- */

struct version {
    struct registered model;
    int64_t number, key;
};

bool version_find(struct tracking *tracking, const struct registered *model, int64_t number, int64_t *ret_key,
                  struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_VERSION, "ii", model->key, number);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    *ret_key = there ? sqlite3_column_int64(row, 0) : 0;
    return there || tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST,
                                  "Model Version (name=%.300s, version=%lld) not found", model->name,
                                  (long long)number);
}

static bool find(struct tracking *tracking, const json_t *body, struct version *version,
                 struct tracking_error *error)
{
    return field_need_int(body, "version", &version->number, error) &&
           registered_of_request(tracking, body, &version->model, error) &&
           version_find(tracking, &version->model, version->number, &version->key, error);
}

bool version_stage(const char *word, const char **ret_stage, struct tracking_error *error)
{
    for (size_t i = 0; i < STAGE_COUNT; i++) {
        if (strcasecmp(word, stages[i]) == 0) {
            *ret_stage = stages[i];
            return true;
        }
    }
    return tracking_fail(
        error, TRACKING_INVALID_PARAMETER_VALUE,
        "Invalid Model Version stage: %.100s. Value must be one of None, Staging, Production, "
        "Archived.",
        word);
}

/* --- showing --- */

static void member_text(struct text *out, const char *name, const char *value)
{
    text_printf(out, "\"%s\": ", name);
    show_text(out, value);
    text_append(out, ", ");
}

static bool show_aliases(struct tracking *tracking, int64_t model, int64_t number, struct text *out,
                         struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_ALIASES_VERSION, "ii", model, number);
    bool there, ok;
    text_append(out, "[");
    for (int count = 0; (ok = database_step(tracking, row, &there, error)) && there; count++) {
        text_append(out, count > 0 ? ", " : "");
        show_text(out, column_text(row, 0));
    }
    text_append(out, "]");
    return ok;
}

static void show_info(sqlite3_stmt *row, struct text *out)
{
    member_text(out, "name", column_text(row, 2));
    text_printf(out, "\"version\": \"%lld\", ", (long long)sqlite3_column_int64(row, 3));
    if (column_text(row, 4) != NULL) {
        member_text(out, "description", column_text(row, 4));
    }
    member_text(out, "user_id", column_text(row, 5));
    member_text(out, "current_stage", column_text(row, 6));
    member_text(out, "source", column_text(row, 7));
    member_text(out, "run_id", column_text(row, 9));
    member_text(out, "run_link", column_text(row, 10));
    if (column_text(row, 11)[0] != '\0') {
        member_text(out, "model_id", column_text(row, 11));
    }
    text_printf(out,
                "\"creation_timestamp\": %lld, \"last_updated_timestamp\": %lld, \"status\": \"READY\", ",
                (long long)sqlite3_column_int64(row, 12), (long long)sqlite3_column_int64(row, 13));
}

bool show_version(struct tracking *tracking, sqlite3_stmt *row, struct text *out,
                  struct tracking_error *error)
{
    text_append(out, "{");
    show_info(row, out);
    text_append(out, "\"tags\": ");
    if (!show_pairs(tracking, QUERY_VERSION_TAGS, sqlite3_column_int64(row, 0), out, error)) {
        return false;
    }
    text_append(out, ", \"aliases\": ");
    if (!show_aliases(tracking, sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 3), out, error)) {
        return false;
    }
    text_append(out, "}");
    return true;
}

/* Shows {"model_version": ...} of the first row; *ret_there false: there is no row. */
static bool show_first(struct tracking *tracking, sqlite3_stmt *row, bool *ret_there, struct text *out,
                       struct tracking_error *error)
{
    if (!database_step(tracking, row, ret_there, error)) {
        return false;
    }
    if (!*ret_there) {
        return true;
    }
    text_append(out, "{\"model_version\": ");
    bool ok = show_version(tracking, row, out, error);
    text_append(out, "}");
    return ok;
}

static bool show_number(struct tracking *tracking, int64_t model, int64_t number, struct text *out,
                        struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_VERSION, "ii", model, number);
    bool there;
    return show_first(tracking, row, &there, out, error);
}

static bool show_of_stage(struct tracking *tracking, int64_t model, const char *stage, bool *begun,
                          struct text *out, struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_VERSION_OF_STAGE, "it", model, stage);
    bool there;
    if (!database_step(tracking, row, &there, error) || !there) {
        return !there;
    }
    text_append(out, *begun ? ", " : "");
    *begun = true;
    return show_version(tracking, row, out, error);
}

/* Reads which stages the texts name. */
static bool read_stages(const json_t *words, bool asked[STAGE_COUNT], struct tracking_error *error)
{
    size_t i;
    const json_t *word;
    json_array_foreach (words, i, word) {
        const char *stage;
        if (!version_stage(json_string_value(word), &stage, error)) {
            return false;
        }
        for (size_t at = 0; at < STAGE_COUNT; at++) {
            asked[at] = asked[at] || stage == stages[at];
        }
    }
    return true;
}

bool show_latest(struct tracking *tracking, int64_t model, const json_t *words, struct text *out,
                 struct tracking_error *error)
{
    bool asked[STAGE_COUNT] = {0};
    bool begun = false;
    bool ok = read_stages(words, asked, error);
    text_append(out, "[");
    for (size_t i = 0; ok && i < STAGE_COUNT; i++) {
        if (asked[i] || json_array_size(words) == 0) {
            ok = show_of_stage(tracking, model, stages[i], &begun, out, error);
        }
    }
    text_append(out, "]");
    return ok;
}

/* --- asking --- */

bool work_versions_get(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                       struct tracking_error *error)
{
    struct version version;
    return find(tracking, request->body, &version, error) &&
           show_number(tracking, version.model.key, version.number, out, error);
}

bool work_versions_get_uri(struct tracking *tracking, const struct tracking_request *request,
                           struct text *out, struct tracking_error *error)
{
    struct version version;
    bool there;
    if (!find(tracking, request->body, &version, error)) {
        return false;
    }
    autoquery sqlite3_stmt *row =
        database_query(tracking, QUERY_VERSION, "ii", version.model.key, version.number);
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    text_append(out, "{\"artifact_uri\": ");
    show_text(out, column_text(row, 8));
    text_append(out, "}");
    return true;
}

bool work_registry_get_latest(struct tracking *tracking, const struct tracking_request *request,
                              struct text *out, struct tracking_error *error)
{
    struct registered model;
    autojson json_t *words = NULL;
    text_append(out, "{\"model_versions\": ");
    bool ok = registered_of_request(tracking, request->body, &model, error) &&
              field_texts(request->body, "stages", &words, error) &&
              show_latest(tracking, model.key, words, out, error);
    text_append(out, "}");
    return ok;
}

static bool show_newest(struct tracking *tracking, const struct registered *model, struct text *out,
                        struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_VERSION_NEWEST, "i", model->key);
    bool there;
    return show_first(tracking, row, &there, out, error) &&
           (there || tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST,
                                   "Latest version not found for model %.300s.", model->name));
}

bool work_registry_get_by_alias(struct tracking *tracking, const struct tracking_request *request,
                                struct text *out, struct tracking_error *error)
{
    struct registered model;
    const char *alias;
    int64_t number;
    if (!registered_of_request(tracking, request->body, &model, error) ||
        !field_need_text(request->body, "alias", &alias, error) || !name_check_alias(alias, error)) {
        return false;
    }
    return strcasecmp(alias, "latest") == 0 ? show_newest(tracking, &model, out, error)
                                            : registered_alias(tracking, &model, alias, &number, error) &&
                                                  show_number(tracking, model.key, number, out, error);
}

/* --- making --- */

static bool next_number(struct tracking *tracking, const struct registered *model, int64_t now_ms,
                        int64_t *ret_number, struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_REGISTERED_NEXT, "iii", model->key, now_ms,
                                                 (int64_t)LIMIT_REGISTRY_VERSIONS);
    bool there = false;
    bool ok = database_step(tracking, row, &there, error);
    *ret_number = there ? sqlite3_column_int64(row, 0) : 0;
    return ok && (there || tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                                         "Registered Model %.300s has had %d versions, which is the limit.",
                                         model->name, LIMIT_REGISTRY_VERSIONS));
}

struct new_version {
    const char *description, *run_link;
    const json_t *tags;
};

static bool read_new(const json_t *body, struct new_version *version, struct tracking_error *error)
{
    *version = (struct new_version){.description = "", .run_link = ""};
    return field_text(body, "description", &version->description, error) &&
           name_check_length("description", version->description, LIMIT_REGISTRY_TEXT, error) &&
           field_text(body, "run_link", &version->run_link, error) &&
           name_check_length("run_link", version->run_link, LIMIT_TRACKING_LOCATION, error) &&
           field_objects(body, "tags", &version->tags, error);
}

bool work_versions_create(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    struct registered model;
    struct new_version version;
    autosource struct version_source from = {.source = NULL};
    int64_t number;
    if (!registered_of_request(tracking, request->body, &model, error) ||
        !read_new(request->body, &version, error) ||
        !version_source_read(tracking, request->body, &from, error) ||
        !next_number(tracking, &model, request->now_ms, &number, error) ||
        !database_run(tracking, error, QUERY_VERSION_INSERT, "iittttttti", model.key, number,
                      version.description, request->owner, from.source, from.location, from.run_id,
                      version.run_link, from.model_id, request->now_ms)) {
        return false;
    }
    int64_t key = sqlite3_last_insert_rowid(tracking->db);
    return registry_put_tags(tracking, &tag_table, key, version.tags, error) &&
           show_number(tracking, model.key, number, out, error);
}

/* --- changing --- */

/* A request without a description deletes the description, as in MLflow. */
bool work_versions_update(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    struct version version;
    const char *description = NULL;
    return find(tracking, request->body, &version, error) &&
           field_text(request->body, "description", &description, error) &&
           (description == NULL ||
            name_check_length("description", description, LIMIT_REGISTRY_TEXT, error)) &&
           database_run(tracking, error, QUERY_VERSION_UPDATE, "iti", version.key, description,
                        request->now_ms) &&
           show_number(tracking, version.model.key, version.number, out, error);
}

static bool archive_others(struct tracking *tracking, const struct version *version, const char *stage,
                           int64_t now_ms, struct tracking_error *error)
{
    if (strcmp(stage, "Staging") != 0 && strcmp(stage, "Production") != 0) {
        return tracking_fail(
            error, TRACKING_INVALID_PARAMETER_VALUE,
            "Model version transition cannot archive existing model versions because '%s' is "
            "not an Active stage. Valid stages are Staging and Production.",
            stage);
    }
    return database_run(tracking, error, QUERY_VERSIONS_ARCHIVE, "itii", version->model.key, stage, now_ms,
                        version->key);
}

bool work_versions_transition(struct tracking *tracking, const struct tracking_request *request,
                              struct text *out, struct tracking_error *error)
{
    struct version version;
    const char *word;
    const char *stage;
    bool archives = json_is_true(json_object_get(request->body, "archive_existing_versions"));
    return find(tracking, request->body, &version, error) &&
           field_need_text(request->body, "stage", &word, error) && version_stage(word, &stage, error) &&
           (!archives || archive_others(tracking, &version, stage, request->now_ms, error)) &&
           database_run(tracking, error, QUERY_VERSION_STAGE, "iti", version.key, stage, request->now_ms) &&
           database_run(tracking, error, QUERY_REGISTERED_TOUCH, "ii", version.model.key, request->now_ms) &&
           show_number(tracking, version.model.key, version.number, out, error);
}

bool work_versions_delete(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    struct version version;
    text_append(out, "{}");
    return find(tracking, request->body, &version, error) &&
           database_run(tracking, error, QUERY_ALIASES_VERSION_DELETE, "ii", version.model.key,
                        version.number) &&
           database_run(tracking, error, QUERY_VERSION_TAGS_DELETE, "i", version.key) &&
           database_run(tracking, error, QUERY_VERSION_DELETE, "i", version.key) &&
           database_run(tracking, error, QUERY_REGISTERED_TOUCH, "ii", version.model.key, request->now_ms);
}

bool work_versions_set_tag(struct tracking *tracking, const struct tracking_request *request,
                           struct text *out, struct tracking_error *error)
{
    struct version version;
    text_append(out, "{}");
    return find(tracking, request->body, &version, error) &&
           registry_put_tag(tracking, &tag_table, version.key, request->body, error);
}

/* Deleting a missing tag is no error. */
bool work_versions_delete_tag(struct tracking *tracking, const struct tracking_request *request,
                              struct text *out, struct tracking_error *error)
{
    struct version version;
    const char *key;
    text_append(out, "{}");
    return find(tracking, request->body, &version, error) &&
           field_need_text(request->body, "key", &key, error) && name_check("tag", key, error) &&
           database_run(tracking, error, QUERY_VERSION_TAG_DELETE, "it", version.key, key);
}
