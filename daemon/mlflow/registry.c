/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps registered models: names that stay while the versions behind them change, with their descriptions,
 * tags and aliases. While a name exists, no version number is used twice. registry_versions.c keeps the
 * versions. */
#include "daemon/mlflow/registry.h"

#include <string.h>
#include <strings.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/field.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/show.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

static const struct tag_table tag_table = {QUERY_REGISTERED_TAG_PUT, QUERY_REGISTERED_TAGS_COUNT};

/* --- finding --- */

/* *ret_key 0: there is no such model. */
static bool look_up(struct tracking *tracking, const char *name, int64_t *ret_key,
                    struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_REGISTERED, "t", name);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    *ret_key = there ? sqlite3_column_int64(row, 0) : 0;
    return true;
}

bool registered_find(struct tracking *tracking, const char *name, struct registered *model,
                     struct tracking_error *error)
{
    model->name = name;
    if (!name_check_registered(name, error) || !look_up(tracking, name, &model->key, error)) {
        return false;
    }
    return model->key != 0 || tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST,
                                            "Registered Model with name=%.300s not found", name);
}

bool registered_of_request(struct tracking *tracking, const json_t *body, struct registered *model,
                           struct tracking_error *error)
{
    const char *name;
    return field_need_text(body, "name", &name, error) && registered_find(tracking, name, model, error);
}

bool registered_alias(struct tracking *tracking, const struct registered *model, const char *alias,
                      int64_t *ret_number, struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_ALIAS, "it", model->key, alias);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    *ret_number = there ? sqlite3_column_int64(row, 0) : 0;
    return there || tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                                  "Registered model alias %.300s not found.", alias);
}

/* --- showing --- */

static bool show_aliases(struct tracking *tracking, int64_t model, struct text *out,
                         struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_ALIASES, "i", model);
    bool there, ok;
    text_append(out, "[");
    for (int count = 0; (ok = database_step(tracking, row, &there, error)) && there; count++) {
        text_append(out, count > 0 ? ", {\"alias\": " : "{\"alias\": ");
        show_text(out, column_text(row, 0));
        text_printf(out, ", \"version\": \"%lld\"}", (long long)sqlite3_column_int64(row, 1));
    }
    text_append(out, "]");
    return ok;
}

bool show_registered(struct tracking *tracking, sqlite3_stmt *row, struct text *out,
                     struct tracking_error *error)
{
    int64_t key = sqlite3_column_int64(row, 0);
    text_append(out, "{\"name\": ");
    show_text(out, column_text(row, 1));
    text_append(out, ", \"description\": ");
    show_text(out, column_text(row, 2));
    text_printf(out, ", \"creation_timestamp\": %lld, \"last_updated_timestamp\": %lld, \"tags\": ",
                (long long)sqlite3_column_int64(row, 3), (long long)sqlite3_column_int64(row, 4));
    if (!show_pairs(tracking, QUERY_REGISTERED_TAGS, key, out, error)) {
        return false;
    }
    text_append(out, ", \"aliases\": ");
    if (!show_aliases(tracking, key, out, error)) {
        return false;
    }
    text_append(out, ", \"latest_versions\": ");
    if (!show_latest(tracking, key, NULL, out, error)) {
        return false;
    }
    text_append(out, "}");
    return true;
}

/* Shows {"registered_model": ...}. */
static bool show_found(struct tracking *tracking, const char *name, struct text *out,
                       struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_REGISTERED, "t", name);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    text_append(out, "{\"registered_model\": ");
    bool ok = show_registered(tracking, row, out, error);
    text_append(out, "}");
    return ok;
}

/* --- tags --- */

static bool fits(struct tracking *tracking, enum query query, int64_t owner, int64_t limit, const char *what,
                 struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, query, "i", owner);
    bool there;
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    return sqlite3_column_int64(row, 0) <= limit ||
           tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE, "It can have at most %lld %s.",
                         (long long)limit, what);
}

bool registry_put_tag(struct tracking *tracking, const struct tag_table *table, int64_t owner,
                      const json_t *tag, struct tracking_error *error)
{
    const char *key;
    const char *value = "";
    return field_need_text(tag, "key", &key, error) && field_text(tag, "value", &value, error) &&
           name_check("tag", key, error) &&
           name_check_length("tag value", value, LIMIT_REGISTRY_TEXT, error) &&
           database_run(tracking, error, table->put, "itt", owner, key, value) &&
           fits(tracking, table->count, owner, LIMIT_REGISTRY_TAGS, "tags", error);
}

bool registry_put_tags(struct tracking *tracking, const struct tag_table *table, int64_t owner,
                       const json_t *tags, struct tracking_error *error)
{
    size_t i;
    const json_t *tag;
    json_array_foreach (tags, i, tag) {
        if (!registry_put_tag(tracking, table, owner, tag, error)) {
            return false;
        }
    }
    return true;
}

bool work_registry_set_tag(struct tracking *tracking, const struct tracking_request *request,
                           struct text *out, struct tracking_error *error)
{
    struct registered model;
    text_append(out, "{}");
    return registered_of_request(tracking, request->body, &model, error) &&
           registry_put_tag(tracking, &tag_table, model.key, request->body, error);
}

/* Deleting a missing tag is no error. */
bool work_registry_delete_tag(struct tracking *tracking, const struct tracking_request *request,
                              struct text *out, struct tracking_error *error)
{
    struct registered model;
    const char *key;
    text_append(out, "{}");
    return registered_of_request(tracking, request->body, &model, error) &&
           field_need_text(request->body, "key", &key, error) && name_check("tag", key, error) &&
           database_run(tracking, error, QUERY_REGISTERED_TAG_DELETE, "it", model.key, key);
}

/* --- aliases --- */

static bool need_alias(const json_t *body, const char **ret_alias, struct tracking_error *error)
{
    return field_need_text(body, "alias", ret_alias, error) && name_check_alias(*ret_alias, error);
}

/* Clients read "latest" and "v1" as versions. */
static bool is_reserved(const char *alias)
{
    size_t digits = (alias[0] | 0x20) == 'v' ? strspn(alias + 1, "0123456789") : 0;
    return strcasecmp(alias, "latest") == 0 || (digits > 0 && alias[1 + digits] == '\0');
}

bool work_registry_set_alias(struct tracking *tracking, const struct tracking_request *request,
                             struct text *out, struct tracking_error *error)
{
    struct registered model;
    const char *alias;
    int64_t number, version;
    if (!registered_of_request(tracking, request->body, &model, error) ||
        !need_alias(request->body, &alias, error) ||
        !field_need_int(request->body, "version", &number, error) ||
        !version_find(tracking, &model, number, &version, error)) {
        return false;
    }
    text_append(out, "{}");
    if (is_reserved(alias)) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "The alias name '%.300s' is reserved: clients take it for a version by itself.",
                             alias);
    }
    return database_run(tracking, error, QUERY_ALIAS_PUT, "iti", model.key, alias, number) &&
           fits(tracking, QUERY_ALIASES_COUNT, model.key, LIMIT_REGISTRY_ALIASES, "aliases", error);
}

/* Deleting a missing alias is no error. */
bool work_registry_delete_alias(struct tracking *tracking, const struct tracking_request *request,
                                struct text *out, struct tracking_error *error)
{
    struct registered model;
    const char *alias;
    text_append(out, "{}");
    return registered_of_request(tracking, request->body, &model, error) &&
           need_alias(request->body, &alias, error) &&
           database_run(tracking, error, QUERY_ALIAS_DELETE, "it", model.key, alias);
}

/* --- creating, changing and deleting --- */

static bool name_is_free(struct tracking *tracking, const char *name, struct tracking_error *error)
{
    int64_t key;
    if (!look_up(tracking, name, &key, error)) {
        return false;
    }
    return key == 0 || tracking_fail(error, TRACKING_RESOURCE_ALREADY_EXISTS,
                                     "Registered Model (name=%.300s) already exists.", name);
}

bool work_registry_create(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    const char *name;
    const char *description = "";
    const json_t *tags = NULL;
    if (!field_need_text(request->body, "name", &name, error) || !name_check_registered(name, error) ||
        !field_text(request->body, "description", &description, error) ||
        !name_check_length("description", description, LIMIT_REGISTRY_TEXT, error) ||
        !field_objects(request->body, "tags", &tags, error) || !name_is_free(tracking, name, error) ||
        !database_run(tracking, error, QUERY_REGISTERED_INSERT, "tti", name, description, request->now_ms)) {
        return false;
    }
    int64_t key = sqlite3_last_insert_rowid(tracking->db);
    return registry_put_tags(tracking, &tag_table, key, tags, error) &&
           show_found(tracking, name, out, error);
}

bool work_registry_get(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                       struct tracking_error *error)
{
    struct registered model;
    return registered_of_request(tracking, request->body, &model, error) &&
           show_found(tracking, model.name, out, error);
}

/* A request without a description deletes the description, as in MLflow. */
bool work_registry_update(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    struct registered model;
    const char *description = "";
    return registered_of_request(tracking, request->body, &model, error) &&
           field_text(request->body, "description", &description, error) &&
           name_check_length("description", description, LIMIT_REGISTRY_TEXT, error) &&
           database_run(tracking, error, QUERY_REGISTERED_UPDATE, "iti", model.key, description,
                        request->now_ms) &&
           show_found(tracking, model.name, out, error);
}

bool work_registry_rename(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    struct registered model;
    const char *name;
    return field_need_text(request->body, "new_name", &name, error) && name_check_registered(name, error) &&
           registered_of_request(tracking, request->body, &model, error) &&
           (strcmp(name, model.name) == 0 || name_is_free(tracking, name, error)) &&
           database_run(tracking, error, QUERY_REGISTERED_RENAME, "iti", model.key, name, request->now_ms) &&
           database_run(tracking, error, QUERY_VERSIONS_TOUCH, "ii", model.key, request->now_ms) &&
           show_found(tracking, name, out, error);
}

bool work_registry_delete(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    static const enum query below[] = {QUERY_VERSIONS_TAGS_DELETE, QUERY_VERSIONS_DELETE,
                                       QUERY_ALIASES_DELETE, QUERY_REGISTERED_TAGS_DELETE,
                                       QUERY_REGISTERED_DELETE};
    struct registered model;
    bool ok = registered_of_request(tracking, request->body, &model, error);
    for (size_t i = 0; ok && i < sizeof below / sizeof below[0]; i++) {
        ok = database_run(tracking, error, below[i], "i", model.key);
    }
    text_append(out, "{}");
    return ok;
}
