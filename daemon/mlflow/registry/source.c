/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the source of a new version. A source "models:/..." is resolved once: the version keeps the place
 * of the files that the source named at that time. Files on this server must belong to the run or logged
 * model that the request names. No source is any other path on the server's own disk. */
#include <string.h>
#include <strings.h>

#include "daemon/mlflow/call/field.h"
#include "daemon/mlflow/call/names.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/registry/registry.h"
#include "daemon/mlflow/runs/logged_models.h"
#include "daemon/mlflow/runs/runs.h"
#include "proto/base/cleanup.h"
#include "proto/limits_tracking.h"

#define MODELS "models:/"
#define RUNS   "runs:/"

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void refuse(struct call *call, const char *source, const char *why)
{
    call_refuse(call, "Invalid model version source: '%.300s'. %s", source, why);
}

static void set(char **owned, const char *value)
{
    char *copy = xstrdup(value);
    free(*owned);
    *owned = copy;
}

/* --- "models:/NAME/VERSION" and "models:/NAME@ALIAS" --- */

static void check_same(struct call *call, const char *member, const char *here, const char *uri)
{
    if (strcmp(field_text(call, call->request.body, member, here), here) != 0) {
        refuse(call, uri,
               "The run_id and model_id request parameters must match the referenced model version.");
    }
}

/* The new version gets the files, the run and the logged model of the version with the key. */
static void take_version(struct call *call, int64_t key, struct version_source *source)
{
    autoquery sqlite3_stmt *row = database_query(call, QUERY_VERSION_ORIGIN, "i", key);
    if (!database_next(call, row)) {
        return;
    }
    autofree char *uri = give(source->source);
    source->source = xstrdup(column_text(row, 0));
    set(&source->location, column_text(row, 1));
    set(&source->run_id, column_text(row, 2));
    set(&source->model_id, column_text(row, 3));
    check_same(call, "run_id", source->run_id, uri);
    check_same(call, "model_id", source->model_id, uri);
}

/* Whether the source names a version, whose files the new version gets. */
static bool is_version(struct call *call, struct version_source *source)
{
    if (!starts(source->source, MODELS)) {
        return false;
    }
    autofree char *name = xstrdup(source->source + sizeof MODELS - 1);
    char *slash = strchr(name, '/');
    char *cut = slash != NULL ? slash : strrchr(name, '@');
    if (cut == NULL) {
        return false;
    }
    *cut = '\0';
    struct registered model = registered_find(call, TRACKING_SEES, name);
    take_version(call,
                 slash != NULL ? version_find_word(call, &model, cut + 1)
                               : version_find(call, &model, registered_alias(call, &model, cut + 1)),
                 source);
    return true;
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

static void of_model(struct call *call, struct version_source *source)
{
    static const char why[] =
        "The model_id request parameter must identify the resource that contains the source.";
    autofree char *uri = NULL;
    autofree char *run = NULL;
    bool by_id = starts(source->source, MODELS);
    if (by_id && strcmp(source->source + sizeof MODELS - 1, source->model_id) != 0) {
        refuse(call, source->source, why);
    }
    logged_model_place(call, source->model_id, &uri, &run);
    if (call->failed) {
        return;
    }
    if (source->run_id[0] == '\0') {
        set(&source->run_id, run);
    }
    if (by_id) {
        set(&source->location, uri);
    } else if (is_here(source->source) && !is_within(source->source, uri)) {
        refuse(call, source->source, why);
    }
}

static void of_run(struct call *call, const struct version_source *source)
{
    const char *uri = source->source;
    bool ok = true;
    if (source->run_id[0] != '\0' && run_look_up(call, source->run_id).key != 0) {
        run_find(call, TRACKING_SEES, source->run_id);
    }
    if (starts(uri, RUNS)) {
        ok = is_within(uri + sizeof RUNS - 1, source->run_id);
    } else if (is_here(uri)) {
        autofree char *root = database_text(call, QUERY_RUN_ARTIFACTS, "t", source->run_id);
        ok = root != NULL && is_within(uri, root);
    }
    if (!ok) {
        refuse(call, uri,
               "The run_id request parameter must identify the resource that contains the source.");
    }
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

static struct version_source read_members(struct call *call)
{
    const char *uri = field_need_text(call, call->request.body, "source");
    const char *run = field_text(call, call->request.body, "run_id", "");
    const char *model = field_text(call, call->request.body, "model_id", "");
    name_check_length(call, "source", uri, LIMIT_TRACKING_LOCATION);
    name_check_length(call, "model_id", model, LIMIT_TRACKING_RUN_ID);
    if (run[0] != '\0') {
        name_check_run_id(call, run);
    }
    if (uri[0] == '\0' || strstr(uri, "..") != NULL || strpbrk(uri, "?#\n\r") != NULL) {
        refuse(call, uri, "It must be an absolute URI, without \"..\", \"?\" and \"#\".");
    }
    return (struct version_source){xstrdup(uri), xstrdup(uri), xstrdup(run), xstrdup(model)};
}

struct version_source version_source_read(struct call *call)
{
    struct version_source source = read_members(call);
    if (is_prompt(call->request.body)) {
        if (strpbrk(source.source, "/:") != NULL) {
            refuse(call, source.source, "A prompt has no files: its source is a word without / and :.");
        }
    } else if (!is_version(call, &source)) {
        if (source.model_id[0] != '\0' || starts(source.source, MODELS)) {
            of_model(call, &source);
        } else {
            of_run(call, &source);
        }
    }
    return source;
}
