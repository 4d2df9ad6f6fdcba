/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the versions of registered models: their files, stage, description and tags. A new version is ready
 * at once, because nothing is copied: its files stay with the run or the logged model. Deleting either does
 * not delete the version. */
#include <string.h>
#include <strings.h>

#include "daemon/mlflow/call/endpoints.h"
#include "daemon/mlflow/call/field.h"
#include "daemon/mlflow/call/names.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/database/tables.h"
#include "daemon/mlflow/registry/registry.h"
#include "daemon/mlflow/runs/pairs.h"
#include "proto/base/cleanup.h"
#include "proto/limits_tracking.h"

/* --- finding and showing --- */

int64_t version_find(struct call *call, const struct registered *model, int64_t number)
{
    int64_t key = database_int(call, 0, QUERY_VERSION, "ii", model->key, number);
    if (key == 0) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST,
                  "Model Version (name=%.300s, version=%lld) not found", model->name, (long long)number);
    }
    return key;
}

/* The newest version of the model; 0: it has none. */
static int64_t newest(struct call *call, const struct registered *model)
{
    return database_int(call, 0, QUERY_VERSION_NEWEST, "i", model->key);
}

int64_t version_newest(struct call *call, const struct registered *model)
{
    int64_t key = newest(call, model);
    if (key == 0) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST, "Latest version not found for model %.300s.",
                  model->name);
    }
    return key;
}

const char *version_stage(struct call *call, const char *word)
{
    static const char *const stages[] = {
#define AS_WORD(name) #name,
        VERSION_STAGES(AS_WORD)
#undef AS_WORD
    };
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        if (strcasecmp(word, stages[i]) == 0) {
            return stages[i];
        }
    }
    call_refuse(call,
                "Invalid Model Version stage: %.100s. Value must be one of None, Staging, Production, "
                "Archived.",
                word);
    return "";
}

int64_t version_find_word(struct call *call, const struct registered *model, const char *word)
{
    int64_t number, key;
    if (text_to_int(word, 1, INT64_MAX, &number)) {
        key = database_int(call, 0, QUERY_VERSION, "ii", model->key, number);
    } else if (strcasecmp(word, "latest") == 0) {
        key = newest(call, model);
    } else {
        key = database_int(call, 0, QUERY_VERSION_OF_STAGE, "it", model->key, version_stage(call, word));
    }
    if (key == 0) {
        call_fail(call, TRACKING_RESOURCE_DOES_NOT_EXIST,
                  "Model Version (name=%.300s, version=%.100s) not found", model->name, word);
    }
    return key;
}

struct version {
    struct registered model;
    int64_t key;
};

static struct version version_of_request(struct call *call, enum tracking_right right)
{
    int64_t number = field_need_int(call, call->request.body, "version");
    struct registered model = registered_of_request(call, right);
    return (struct version){model, version_find(call, &model, number)};
}

/* The version, to be changed by who may change the model, or made the version. */
static struct version version_to_change(struct call *call)
{
    struct version version = version_of_request(call, TRACKING_ADDS);
    autofree char *maker = database_text(call, QUERY_VERSION_MAKER, "i", version.key);
    if (maker != NULL && strcmp(maker, rights_sender(call).owner) != 0) {
        registered_of_request(call, TRACKING_CHANGES);
    }
    return version;
}

void version_show(struct call *call, int64_t key)
{
    database_answer(call, "model_version", QUERY_VERSION_SHOW, key);
}

void work_versions_get(struct call *call)
{
    version_show(call, version_of_request(call, TRACKING_SEES).key);
}

void work_versions_get_uri(struct call *call)
{
    database_answer(call, "artifact_uri", QUERY_VERSION_LOCATION,
                    version_of_request(call, TRACKING_SEES).key);
}

/* --- making --- */

static int64_t next_number(struct call *call, const struct registered *model)
{
    int64_t number = database_int(call, 0, QUERY_REGISTERED_NEXT, "iii", model->key, call->request.now_ms,
                                  (int64_t)LIMIT_REGISTRY_VERSIONS);
    if (number == 0) {
        call_refuse(call, "Registered Model %.300s has had %d versions, which is the limit.", model->name,
                    LIMIT_REGISTRY_VERSIONS);
    }
    return number;
}

void work_versions_create(struct call *call)
{
    const json_t *body = call->request.body;
    struct registered model = registered_of_request(call, TRACKING_ADDS);
    const char *description = field_text(call, body, "description", "");
    name_check_length(call, "description", description, LIMIT_REGISTRY_TEXT);
    const char *run_link = field_text(call, body, "run_link", "");
    name_check_length(call, "run_link", run_link, LIMIT_TRACKING_LOCATION);
    const json_t *tags = field_objects(call, body, "tags");
    autosource struct version_source from = version_source_read(call);
    int64_t number = next_number(call, &model);
    database_run(call, QUERY_VERSION_INSERT, "iittttttti", model.key, number, description,
                 call->request.owner, from.source, from.location, from.run_id, run_link, from.model_id,
                 call->request.now_ms);
    int64_t key = sqlite3_last_insert_rowid(call->tracking->db);
    pairs_put(call, &version_tags, key, tags);
    version_show(call, key);
}

/* --- changing --- */

/* A request without a description deletes the description, as in MLflow. */
void work_versions_update(struct call *call)
{
    struct version version = version_to_change(call);
    const char *description = field_text(call, call->request.body, "description", NULL);
    name_check_length(call, "description", description != NULL ? description : "", LIMIT_REGISTRY_TEXT);
    database_run(call, QUERY_VERSION_UPDATE, "iti", version.key, description, call->request.now_ms);
    version_show(call, version.key);
}

static void archive_others(struct call *call, const struct version *version, const char *stage)
{
    if (strcmp(stage, "Staging") != 0 && strcmp(stage, "Production") != 0) {
        call_refuse(call,
                    "Model version transition cannot archive existing model versions because '%s' is not an "
                    "Active stage. Valid stages are Staging and Production.",
                    stage);
    }
    database_run(call, QUERY_VERSIONS_ARCHIVE, "itii", version->model.key, stage, call->request.now_ms,
                 version->key);
}

void work_versions_transition(struct call *call)
{
    struct version version = version_of_request(call, TRACKING_CHANGES);
    const char *stage = version_stage(call, field_need_text(call, call->request.body, "stage"));
    if (json_is_true(json_object_get(call->request.body, "archive_existing_versions"))) {
        archive_others(call, &version, stage);
    }
    database_run(call, QUERY_VERSION_STAGE, "iti", version.key, stage, call->request.now_ms);
    database_run(call, QUERY_REGISTERED_TOUCH, "ii", version.model.key, call->request.now_ms);
    version_show(call, version.key);
}

void work_versions_delete(struct call *call)
{
    struct version version = version_to_change(call);
    int64_t number = field_need_int(call, call->request.body, "version");
    database_run(call, QUERY_ALIASES_VERSION_DELETE, "ii", version.model.key, number);
    database_run(call, QUERY_VERSION_TAGS_DELETE, "i", version.key);
    database_run(call, QUERY_VERSION_DELETE, "i", version.key);
    database_run(call, QUERY_REGISTERED_TOUCH, "ii", version.model.key, call->request.now_ms);
}

void work_versions_set_tag(struct call *call)
{
    pair_put(call, &version_tags, version_to_change(call).key, call->request.body);
}

/* Deleting a missing tag is no error. */
void work_versions_delete_tag(struct call *call)
{
    struct version version = version_to_change(call);
    const char *key = field_need_text(call, call->request.body, "key");
    name_check(call, "tag", key);
    pair_delete(call, &version_tags, version.key, key);
}
