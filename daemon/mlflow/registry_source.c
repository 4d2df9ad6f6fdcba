/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the source of a new version. A source "models:/..." is resolved once: the version keeps the place
 * of the files that the source named at that time. Files on this server must belong to the run or logged
 * model that the request names. No source is any other path on the server's own disk. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/field.h"
#include "daemon/mlflow/models.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/registry.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

#define MODELS "models:/"
#define RUNS   "runs:/"

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool refuse(const char *source, const char *why, struct tracking_error *error)
{
    return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                         "Invalid model version source: '%.300s'. %s", source, why);
}

static void set(char **owned, const char *value)
{
    char *copy = xstrdup(value);
    free(*owned);
    *owned = copy;
}

/* --- "models:/..." --- */

/* Finds the version by the part after the name: a number, "latest" or a stage. */
static sqlite3_stmt *version_named(struct tracking *tracking, const struct registered *model,
                                   const char *word, struct tracking_error *error)
{
    int64_t number;
    const char *stage;
    if (text_to_int(word, 1, INT64_MAX, &number)) {
        return database_query(tracking, QUERY_VERSION, "ii", model->key, number);
    }
    if (strcasecmp(word, "latest") == 0) {
        return database_query(tracking, QUERY_VERSION_NEWEST, "i", model->key);
    }
    return version_stage(word, &stage, error)
               ? database_query(tracking, QUERY_VERSION_OF_STAGE, "it", model->key, stage)
               : NULL;
}

static bool names_same(const json_t *body, const char *member, const char *here, const char *uri,
                       struct tracking_error *error)
{
    const char *named = here;
    return field_text(body, member, &named, error) &&
           (strcmp(named, here) == 0 ||
            refuse(uri, "The run_id and model_id request parameters must match the referenced model version.",
                   error));
}

/* The new version gets the files, the run and the logged model of the version in the row. */
static bool take_version(sqlite3_stmt *row, const json_t *body, struct version_source *source,
                         struct tracking_error *error)
{
    autofree char *uri = give(source->source);
    source->source = xprintf(MODELS "%s/%lld", column_text(row, 2), (long long)sqlite3_column_int64(row, 3));
    set(&source->location, column_text(row, 8));
    set(&source->run_id, column_text(row, 9));
    set(&source->model_id, column_text(row, 11));
    return names_same(body, "run_id", source->run_id, uri, error) &&
           names_same(body, "model_id", source->model_id, uri, error);
}

static bool of_version(struct tracking *tracking, const json_t *body, const char *name, const char *word,
                       struct version_source *source, struct tracking_error *error)
{
    struct registered model;
    bool there;
    if (!registered_find(tracking, name, &model, error)) {
        return false;
    }
    autoquery sqlite3_stmt *row = version_named(tracking, &model, word, error);
    if (row == NULL || !database_step(tracking, row, &there, error)) {
        return false;
    }
    return there ? take_version(row, body, source, error)
                 : tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST,
                                 "Model Version (name=%.300s, version=%.100s) not found", name, word);
}

static bool of_alias(struct tracking *tracking, const json_t *body, const char *name, const char *alias,
                     struct version_source *source, struct tracking_error *error)
{
    struct registered model;
    int64_t number;
    char word[24];
    if (!registered_find(tracking, name, &model, error) ||
        !registered_alias(tracking, &model, alias, &number, error)) {
        return false;
    }
    snprintf(word, sizeof word, "%lld", (long long)number);
    return of_version(tracking, body, name, word, source, error);
}

/* --- files of a run or a logged model --- */

/* Whether the URI is the root or below it. The URI contains no "..", so it cannot leave the root. */
static bool is_within(const char *uri, const char *root)
{
    size_t length = strlen(root);
    return length > 0 && starts(uri, root) && (uri[length] == '\0' || uri[length] == '/');
}

/* Whether the URI means files that this server keeps, in any spelling, or files on its own disk. */
static bool is_here(const char *uri)
{
    return uri[0] == '/' || strchr(uri, ':') == NULL || strncasecmp(uri, "file:", 5) == 0 ||
           strncasecmp(uri, "mlflow-artifacts:", 17) == 0 ||
           strcasestr(uri, "/api/2.0/mlflow-artifacts/") != NULL;
}

static bool of_model(struct tracking *tracking, struct version_source *source, struct tracking_error *error)
{
    static const char why[] =
        "The model_id request parameter must identify the resource that contains the source.";
    autofree char *uri = NULL;
    autofree char *run = NULL;
    bool there;
    bool by_id = starts(source->source, MODELS);
    if (by_id && strcmp(source->source + sizeof MODELS - 1, source->model_id) != 0) {
        return refuse(source->source, why, error);
    }
    if (!model_place(tracking, source->model_id, &there, &uri, &run, error)) {
        return false;
    }
    if (!there) {
        return tracking_fail(error, TRACKING_RESOURCE_DOES_NOT_EXIST,
                             "Logged model with ID '%.300s' not found.", source->model_id);
    }
    if (source->run_id[0] == '\0') {
        set(&source->run_id, run);
    }
    if (by_id) {
        set(&source->location, uri);
        return true;
    }
    return !is_here(source->source) || is_within(source->source, uri) || refuse(source->source, why, error);
}

static bool of_run(struct tracking *tracking, const struct version_source *source,
                   struct tracking_error *error)
{
    static const char why[] =
        "The run_id request parameter must identify the resource that contains the source.";
    const char *uri = source->source;
    if (starts(uri, RUNS)) {
        return is_within(uri + sizeof RUNS - 1, source->run_id) || refuse(uri, why, error);
    }
    if (!is_here(uri)) {
        return true;
    }
    autofree char *root = NULL;
    struct tracking_error missing;
    if (source->run_id[0] == '\0' || !tracking_artifact_uri(tracking, source->run_id, &root, &missing)) {
        return refuse(uri, why, error);
    }
    return is_within(uri, root) || refuse(uri, why, error);
}

/* --- the whole --- */

/* Clients keep prompts as models, too: the text is a tag, and the source is a word without meaning. */
static bool is_prompt(const json_t *body)
{
    size_t i;
    const json_t *tag;
    json_array_foreach (json_object_get(body, "tags"), i, tag) {
        const char *key = json_string_value(json_object_get(tag, "key"));
        const char *value = json_string_value(json_object_get(tag, "value"));
        if (key != NULL && value != NULL && strcmp(key, "mlflow.prompt.is_prompt") == 0 &&
            strcasecmp(value, "true") == 0) {
            return true;
        }
    }
    return false;
}

static bool read_members(const json_t *body, struct version_source *source, struct tracking_error *error)
{
    const char *uri;
    const char *run = "";
    const char *model = "";
    if (!field_need_text(body, "source", &uri, error) || !field_text(body, "run_id", &run, error) ||
        !field_text(body, "model_id", &model, error) ||
        !name_check_length("source", uri, LIMIT_TRACKING_LOCATION, error) ||
        !name_check_length("model_id", model, LIMIT_TRACKING_RUN_ID, error) ||
        (run[0] != '\0' && !name_check_run_id(run, error))) {
        return false;
    }
    if (uri[0] == '\0' || strstr(uri, "..") != NULL || strpbrk(uri, "?#\n\r") != NULL) {
        return refuse(uri, "It must be an absolute URI, without \"..\", \"?\" and \"#\".", error);
    }
    *source = (struct version_source){xstrdup(uri), xstrdup(uri), xstrdup(run), xstrdup(model)};
    return true;
}

bool version_source_read(struct tracking *tracking, const json_t *body, struct version_source *source,
                         struct tracking_error *error)
{
    if (!read_members(body, source, error)) {
        return false;
    }
    if (is_prompt(body)) {
        return strpbrk(source->source, "/:") == NULL ||
               refuse(source->source, "A prompt has no files: its source is a word without / and :.", error);
    }
    if (starts(source->source, MODELS)) {
        autofree char *name = xstrdup(source->source + sizeof MODELS - 1);
        char *slash = strchr(name, '/');
        char *at = slash == NULL ? strrchr(name, '@') : NULL;
        char *cut = slash != NULL ? slash : at;
        if (cut != NULL) {
            *cut = '\0';
            return (slash != NULL ? of_version : of_alias)(tracking, body, name, cut + 1, source, error);
        }
    }
    return source->model_id[0] != '\0' || starts(source->source, MODELS) ? of_model(tracking, source, error)
                                                                         : of_run(tracking, source, error);
}
