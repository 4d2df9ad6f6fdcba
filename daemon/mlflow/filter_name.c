/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the names of the search language: the kinds of entities in the many spellings that clients use, and
 * the attributes with their columns. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/mlflow/filter.h"
#include "daemon/mlflow/filter_lexer.h"

static const struct {
    const char *word;
    enum filter_entity entity;
} entities[] = {
    {"metrics", FILTER_METRIC},
    {"metric", FILTER_METRIC},
    {"params", FILTER_PARAM},
    {"param", FILTER_PARAM},
    {"parameters", FILTER_PARAM},
    {"parameter", FILTER_PARAM},
    {"tags", FILTER_TAG},
    {"tag", FILTER_TAG},
    {"attributes", FILTER_ATTRIBUTE},
    {"attribute", FILTER_ATTRIBUTE},
    {"attr", FILTER_ATTRIBUTE},
    {"run", FILTER_ATTRIBUTE},
    {"datasets", FILTER_DATASET},
    {"dataset", FILTER_DATASET},
};

static const struct {
    enum filter_subject subject;
    enum filter_entity entity;
    const char *key, *column;
    bool is_number;
} columns[] = {
    {FILTER_RUNS, FILTER_ATTRIBUTE, "run_id", "runs.id", false},
    {FILTER_RUNS, FILTER_ATTRIBUTE, "run_name", "runs.name", false},
    {FILTER_RUNS, FILTER_ATTRIBUTE, "run name", "runs.name", false},
    {FILTER_RUNS, FILTER_ATTRIBUTE, "status", "runs.status", false},
    {FILTER_RUNS, FILTER_ATTRIBUTE, "user_id", "runs.user_id", false},
    {FILTER_RUNS, FILTER_ATTRIBUTE, "artifact_uri", "runs.artifact_uri", false},
    {FILTER_RUNS, FILTER_ATTRIBUTE, "experiment_id", "CAST(runs.experiment AS TEXT)", false},
    {FILTER_RUNS, FILTER_ATTRIBUTE, "start_time", "runs.start_ms", true},
    {FILTER_RUNS, FILTER_ATTRIBUTE, "created", "runs.start_ms", true},
    {FILTER_RUNS, FILTER_ATTRIBUTE, "end_time", "runs.end_ms", true},
    {FILTER_RUNS, FILTER_DATASET, "name", "inputs.name", false},
    {FILTER_RUNS, FILTER_DATASET, "digest", "inputs.digest", false},
    {FILTER_RUNS, FILTER_DATASET, "context", "inputs.context", false},
    {FILTER_EXPERIMENTS, FILTER_ATTRIBUTE, "name", "experiments.name", false},
    {FILTER_EXPERIMENTS, FILTER_ATTRIBUTE, "experiment_id", "experiments.id", true},
    {FILTER_EXPERIMENTS, FILTER_ATTRIBUTE, "creation_time", "experiments.created_ms", true},
    {FILTER_EXPERIMENTS, FILTER_ATTRIBUTE, "last_update_time", "experiments.updated_ms", true},
    {FILTER_MODELS, FILTER_ATTRIBUTE, "name", "models.name", false},
    {FILTER_MODELS, FILTER_ATTRIBUTE, "model_id", "models.id", false},
    {FILTER_MODELS, FILTER_ATTRIBUTE, "model_type", "models.type", false},
    {FILTER_MODELS, FILTER_ATTRIBUTE, "status", "models.status", false},
    {FILTER_MODELS, FILTER_ATTRIBUTE, "source_run_id", "models.source_run", false},
    {FILTER_MODELS, FILTER_ATTRIBUTE, "creation_timestamp", "models.created_ms", true},
    {FILTER_MODELS, FILTER_ATTRIBUTE, "creation_time", "models.created_ms", true},
    {FILTER_MODELS, FILTER_ATTRIBUTE, "last_updated_timestamp", "models.updated_ms", true},
    {FILTER_REGISTRY, FILTER_ATTRIBUTE, "name", "registered_models.name", false},
    {FILTER_REGISTRY, FILTER_ATTRIBUTE, "timestamp", "registered_models.updated_ms", true},
    {FILTER_REGISTRY, FILTER_ATTRIBUTE, "creation_timestamp", "registered_models.created_ms", true},
    {FILTER_REGISTRY, FILTER_ATTRIBUTE, "last_updated_timestamp", "registered_models.updated_ms", true},
    {FILTER_VERSIONS, FILTER_ATTRIBUTE, "name", "registered_models.name", false},
    {FILTER_VERSIONS, FILTER_ATTRIBUTE, "version_number", "model_versions.number", true},
    {FILTER_VERSIONS, FILTER_ATTRIBUTE, "run_id", "model_versions.run_id", false},
    {FILTER_VERSIONS, FILTER_ATTRIBUTE, "source_path", "model_versions.source", false},
    {FILTER_VERSIONS, FILTER_ATTRIBUTE, "creation_timestamp", "model_versions.created_ms", true},
    {FILTER_VERSIONS, FILTER_ATTRIBUTE, "last_updated_timestamp", "model_versions.updated_ms", true},
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

void filter_name_finish(struct filter_name *name)
{
    free(name->key);
    name->key = NULL;
}

/* Finds the kind that the first length bytes of the word name. */
static bool find_entity(const char *word, size_t length, enum filter_entity *ret_entity)
{
    for (size_t i = 0; i < COUNT(entities); i++) {
        if (strlen(entities[i].word) == length && strncasecmp(entities[i].word, word, length) == 0) {
            *ret_entity = entities[i].entity;
            return true;
        }
    }
    return false;
}

static bool is_quoted_name(const struct filter_token *token)
{
    return token->kind == FILTER_TOKEN_NAME || token->kind == FILTER_TOKEN_EITHER;
}

/* Reads "kind.key", "kind.`key`", "key" or "`key`"; the last two are attributes. */
static bool read_parts(struct filter_lexer *lexer, struct filter_name *name, struct tracking_error *error)
{
    name->entity = FILTER_ATTRIBUTE;
    if (lexer->token.kind != FILTER_TOKEN_WORD && !is_quoted_name(&lexer->token)) {
        return filter_expected(lexer, "a name as metrics.loss", error);
    }
    const char *dot = lexer->token.kind == FILTER_TOKEN_WORD ? strchr(lexer->token.text, '.') : NULL;
    if (dot == NULL) {
        name->key = xstrdup(lexer->token.text);
        return filter_lexer_next(lexer, error);
    }
    if (!find_entity(lexer->token.text, (size_t)(dot - lexer->token.text), &name->entity)) {
        return filter_expected(
            lexer, "a name that begins with metrics., params., tags., attributes. or datasets.", error);
    }
    if (dot[1] == '\0') {
        if (!filter_lexer_next(lexer, error)) {
            return false;
        }
        if (!is_quoted_name(&lexer->token) || !lexer->token.glued) {
            return filter_expected(lexer, "a key", error);
        }
        dot = NULL;
    }
    name->key = xstrdup(dot != NULL ? dot + 1 : lexer->token.text);
    return filter_lexer_next(lexer, error);
}

static bool find_column(enum filter_subject subject, struct filter_name *name)
{
    for (size_t i = 0; i < COUNT(columns); i++) {
        if (columns[i].subject == subject && columns[i].entity == name->entity &&
            strcasecmp(columns[i].key, name->key) == 0) {
            name->column = columns[i].column;
            name->is_number = columns[i].is_number;
            return true;
        }
    }
    return false;
}

static bool no_such_attribute(const struct filter_lexer *lexer, enum filter_subject subject,
                              const struct filter_name *name, size_t at, struct tracking_error *error)
{
    autotext struct text known = {0};
    for (size_t i = 0; i < COUNT(columns); i++) {
        if (columns[i].subject == subject && columns[i].entity == name->entity) {
            text_printf(&known, "%s%s", known.length > 0 ? ", " : "", columns[i].key);
        }
    }
    return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                         "Invalid %s: '%.100s' at character %zu is no attribute. Known are: %s.", lexer->what,
                         name->key, at, known.length > 0 ? known.bytes : "none");
}

bool filter_name_read(struct filter_lexer *lexer, enum filter_subject subject, struct filter_name *ret_name,
                      struct tracking_error *error)
{
    *ret_name = (struct filter_name){0};
    size_t at = lexer->token.at;
    if (!read_parts(lexer, ret_name, error)) {
        return false;
    }
    switch (ret_name->entity) {
    case FILTER_METRIC:
        ret_name->is_number = true;
        break;
    case FILTER_PARAM:
        if (subject == FILTER_MODELS) {
            return true;
        }
        break;
    case FILTER_TAG:
        return true;
    case FILTER_ATTRIBUTE:
    case FILTER_DATASET:
        return find_column(subject, ret_name) || no_such_attribute(lexer, subject, ret_name, at, error);
    }
    static const char *const lacks[] = {
        [FILTER_EXPERIMENTS] = "experiments have no metrics and parameters",
        [FILTER_MODELS] = "models have no metrics here",
        [FILTER_REGISTRY] = "registered models have no metrics and parameters",
        [FILTER_VERSIONS] = "versions of models have no metrics and parameters"};
    return subject == FILTER_RUNS ||
           tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE, "Invalid %s: %s (character %zu).",
                         lexer->what, lacks[subject], at);
}
