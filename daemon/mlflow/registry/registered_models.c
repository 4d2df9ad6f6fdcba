/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps registered models: names that stay while the versions behind them change, with their descriptions,
 * tags and aliases. While a name exists, no version number is used twice. versions.c keeps the versions. */
#include <string.h>
#include <strings.h>

#include "daemon/mlflow/call/endpoints.h"
#include "daemon/mlflow/call/field.h"
#include "daemon/mlflow/call/names.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/registry/registry.h"
#include "daemon/mlflow/runs/pairs.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_tracking.h"
#include "proto/spec/jobspec.h"

/* --- finding and showing --- */

static sqlite3_stmt *look_up(struct call *call, const char *name, const char *project)
{
    return database_query(call, QUERY_REGISTERED, "ttt", name, rights_sender(call).owner, project);
}

struct registered registered_find(struct call *call, enum tracking_right right, const char *name)
{
    name_check_registered(call, name);
    autoquery sqlite3_stmt *row = look_up(call, name, rights_sender(call).project);
    if (!database_next(call, row)) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST, "Registered Model with name=%.300s not found",
                  name);
        return (struct registered){0, name};
    }
    rights_need(call, right, (struct holder){column_text(row, 2), column_text(row, 3)}, "model");
    return (struct registered){sqlite3_column_int64(row, 0), name};
}

struct registered registered_of_request(struct call *call, enum tracking_right right)
{
    return registered_find(call, right, field_need_text(call, call->request.body, "name"));
}

int64_t registered_alias(struct call *call, const struct registered *model, const char *alias)
{
    int64_t number = database_int(call, 0, QUERY_ALIAS, "it", model->key, alias);
    if (number == 0) {
        call_refuse(call, "Registered model alias %.300s not found.", alias);
    }
    return number;
}

void work_registry_get(struct call *call)
{
    database_answer(call, "registered_model", QUERY_REGISTERED_SHOW,
                    registered_of_request(call, TRACKING_SEES).key);
}

/* Shows the newest version of each stage in the member stages; without it, of all stages. */
void work_registry_get_latest(struct call *call)
{
    struct registered model = registered_of_request(call, TRACKING_SEES);
    autojson json_t *words = field_texts(call, "stages");
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *stage = version_stage(call, json_string_value(json_array_get(words, i)));
        json_array_set_new(words, i, json_string(stage));
    }
    autofree char *stages = json_array_size(words) > 0 ? json_text(words) : NULL;
    text_append(call->out, "{\"model_versions\":");
    database_append(call, QUERY_REGISTERED_LATEST, "it", model.key, stages);
    text_append(call->out, "}");
}

/* --- tags --- */

/* Moves the model into another project, whose people then see it with its versions. */
static void set_project(struct call *call, const struct registered *model, const char *project)
{
    rights_need_project(call, project);
    database_run(call, QUERY_REGISTERED_MOVE, "iti", model->key, project, call->request.now_ms);
}

void work_registry_set_tag(struct call *call)
{
    struct registered model = registered_of_request(call, TRACKING_CHANGES);
    if (strcmp(field_text(call, call->request.body, "key", ""), TAG_PROJECT) == 0) {
        set_project(call, &model, field_text(call, call->request.body, "value", ""));
    }
    pair_put(call, &registered_tags, model.key, call->request.body);
}

/* Deleting a missing tag is no error. */
void work_registry_delete_tag(struct call *call)
{
    struct registered model = registered_of_request(call, TRACKING_CHANGES);
    const char *key = field_need_text(call, call->request.body, "key");
    name_check(call, "tag", key);
    if (strcmp(key, TAG_PROJECT) == 0) {
        set_project(call, &model, DEFAULT_PROJECT);
    }
    pair_delete(call, &registered_tags, model.key, key);
}

/* --- aliases --- */

static const char *need_alias(struct call *call)
{
    const char *alias = field_need_text(call, call->request.body, "alias");
    name_check_alias(call, alias);
    return alias;
}

/* Clients read "latest" and "v1" as versions. */
static bool is_reserved(const char *alias)
{
    size_t digits = (alias[0] | 0x20) == 'v' ? strspn(alias + 1, "0123456789") : 0;
    return strcasecmp(alias, "latest") == 0 || (digits > 0 && alias[1 + digits] == '\0');
}

void work_registry_set_alias(struct call *call)
{
    struct registered model = registered_of_request(call, TRACKING_CHANGES);
    const char *alias = need_alias(call);
    int64_t number = field_need_int(call, call->request.body, "version");
    version_find(call, &model, number);
    if (is_reserved(alias)) {
        call_refuse(call, "The alias name '%.300s' is reserved: clients take it for a version by itself.",
                    alias);
    }
    database_run(call, QUERY_ALIAS_PUT, "iti", model.key, alias, number);
    if (database_int(call, 0, QUERY_ALIASES_COUNT, "i", model.key) > LIMIT_REGISTRY_ALIASES) {
        call_refuse(call, "It can have at most %d aliases.", LIMIT_REGISTRY_ALIASES);
    }
}

/* Deleting a missing alias is no error. */
void work_registry_delete_alias(struct call *call)
{
    struct registered model = registered_of_request(call, TRACKING_CHANGES);
    database_run(call, QUERY_ALIAS_DELETE, "it", model.key, need_alias(call));
}

void work_registry_get_by_alias(struct call *call)
{
    struct registered model = registered_of_request(call, TRACKING_SEES);
    const char *alias = need_alias(call);
    version_show(call, strcasecmp(alias, "latest") == 0
                           ? version_newest(call, &model)
                           : version_find(call, &model, registered_alias(call, &model, alias)));
}

/* --- creating, changing and deleting --- */

static void check_free(struct call *call, const char *name, const char *project)
{
    autoquery sqlite3_stmt *row = look_up(call, name, project);
    if (database_next(call, row) && sqlite3_column_int(row, 1) != 0) {
        call_fail(call, TRACKING_RESOURCE_ALREADY_EXISTS, "Registered Model (name=%.300s) already exists.",
                  name);
    }
}

static const char *read_description(struct call *call)
{
    const char *description = field_text(call, call->request.body, "description", "");
    name_check_length(call, "description", description, LIMIT_REGISTRY_TEXT);
    return description;
}

void work_registry_create(struct call *call)
{
    const char *name = field_need_text(call, call->request.body, "name");
    name_check_registered(call, name);
    const char *description = read_description(call);
    const json_t *tags = field_objects(call, call->request.body, "tags");
    const char *project = rights_project(call, tags);
    check_free(call, name, project);
    database_run(call, QUERY_REGISTERED_INSERT, "ttitt", name, description, call->request.now_ms,
                 rights_sender(call).owner, project);
    int64_t key = sqlite3_last_insert_rowid(call->tracking->db);
    pairs_put(call, &registered_tags, key, tags);
    database_answer(call, "registered_model", QUERY_REGISTERED_SHOW, key);
}

/* A request without a description deletes the description, as in MLflow. */
void work_registry_update(struct call *call)
{
    struct registered model = registered_of_request(call, TRACKING_CHANGES);
    database_run(call, QUERY_REGISTERED_UPDATE, "iti", model.key, read_description(call),
                 call->request.now_ms);
    database_answer(call, "registered_model", QUERY_REGISTERED_SHOW, model.key);
}

void work_registry_rename(struct call *call)
{
    const char *name = field_need_text(call, call->request.body, "new_name");
    name_check_registered(call, name);
    struct registered model = registered_of_request(call, TRACKING_CHANGES);
    if (strcmp(name, model.name) != 0) {
        check_free(call, name, rights_sender(call).project);
    }
    database_run(call, QUERY_REGISTERED_RENAME, "iti", model.key, name, call->request.now_ms);
    database_run(call, QUERY_VERSIONS_TOUCH, "ii", model.key, call->request.now_ms);
    database_answer(call, "registered_model", QUERY_REGISTERED_SHOW, model.key);
}

void work_registry_delete(struct call *call)
{
    static const enum query below[] = {QUERY_VERSIONS_TAGS_DELETE, QUERY_VERSIONS_DELETE,
                                       QUERY_ALIASES_DELETE, QUERY_REGISTERED_TAGS_DELETE,
                                       QUERY_REGISTERED_DELETE};
    struct registered model = registered_of_request(call, TRACKING_CHANGES);
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
        database_run(call, below[i], "i", model.key);
    }
}
