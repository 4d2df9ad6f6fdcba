/* SPDX-License-Identifier: Apache-2.0 */
/* Parses filters and translates them to SQL. Texts are compared exactly; LIKE matches case, ILIKE ignores it.
 * A comparison with a value that the run does not have is false, also with !=. */
#include "daemon/mlflow/filter.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/mlflow/filter_lexer.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"

/* --- values --- */

static struct filter_value *add(struct filter_values *values)
{
    XGROW(values->items, values->count, values->room, 8);
    struct filter_value *value = &values->items[values->count++];
    *value = (struct filter_value){0};
    return value;
}

void filter_values_add_text(struct filter_values *values, const char *text)
{
    add(values)->text = xstrdup(text);
}

void filter_values_add_number(struct filter_values *values, double number)
{
    add(values)->number = number;
}

static void values_finish(struct filter_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        free(values->items[i].text);
    }
    free(values->items);
}

void filter_finish(struct filter *filter)
{
    text_finish(&filter->joins);
    text_finish(&filter->where);
    text_finish(&filter->order);
    values_finish(&filter->join_values);
    values_finish(&filter->where_values);
}

int filter_bind(const struct filter_values *values, sqlite3_stmt *statement, int first)
{
    for (size_t i = 0; i < values->count; i++) {
        const struct filter_value *value = &values->items[i];
        int code = value->text != NULL ? sqlite3_bind_text(statement, first, value->text, -1, SQLITE_STATIC)
                                       : sqlite3_bind_double(statement, first, value->number);
        assert(code == SQLITE_OK);
        first++;
    }
    return first;
}

/* --- the right side of a comparison --- */

/* The part after a name: an operator of SQL and its value, or a test for NULL. */
struct comparison {
    enum { COMPARE_VALUE, COMPARE_LIST, COMPARE_NULL, COMPARE_NOT_NULL } kind;
    const char *before, *after; /* around the column; after has the parameter */
    char *text;                 /* owned: the value, or a list as a JSON array */
    double number;
    bool not_equal;
};

static bool read_number(struct filter_lexer *lexer, struct comparison *comparison,
                        struct tracking_error *error)
{
    const char *word = lexer->token.text;
    char *rest;
    comparison->number = strtod(word, &rest);
    if (lexer->token.kind != FILTER_TOKEN_WORD || *rest != '\0' || !isfinite(comparison->number) ||
        strspn(word, "+-.0123456789eE") != strlen(word)) {
        return filter_expected(lexer, "a number", error);
    }
    return filter_lexer_next(lexer, error);
}

static bool is_text(const struct filter_lexer *lexer)
{
    return lexer->token.kind == FILTER_TOKEN_TEXT || lexer->token.kind == FILTER_TOKEN_EITHER;
}

static bool read_text(struct filter_lexer *lexer, struct comparison *comparison, struct tracking_error *error)
{
    if (!is_text(lexer)) {
        return filter_expected(lexer, "a text in quotes", error);
    }
    comparison->text = xstrdup(lexer->token.text);
    return filter_lexer_next(lexer, error);
}

/* Reads ('a', 'b') as a JSON array. */
static bool read_list(struct filter_lexer *lexer, struct comparison *comparison, struct tracking_error *error)
{
    autojson json_t *items = json_array();
    comparison->kind = COMPARE_LIST;
    if (!filter_token_is(lexer, "(")) {
        return filter_expected(lexer, "a list in parentheses", error);
    }
    do {
        if (!filter_lexer_next(lexer, error)) {
            return false;
        }
        if (!is_text(lexer)) {
            return filter_expected(lexer, "a text in quotes", error);
        }
        json_array_append_new(items, json_string(lexer->token.text));
        if (!filter_lexer_next(lexer, error)) {
            return false;
        }
    } while (filter_token_is(lexer, ","));
    if (!filter_token_is(lexer, ")")) {
        return filter_expected(lexer, "a comma or a closing parenthesis", error);
    }
    comparison->text = json_text(items);
    return filter_lexer_next(lexer, error);
}

static const struct comparator {
    const char *word, *before, *after;
    bool numbers, texts;
} comparators[] = {
    {"=", "", " = ?", true, true},
    {"!=", "", " <> ?", true, true},
    {"<", "", " < ?", true, false},
    {"<=", "", " <= ?", true, false},
    {">", "", " > ?", true, false},
    {">=", "", " >= ?", true, false},
    {"LIKE", "", " LIKE ?", false, true},
    {"ILIKE", "lower(", ") LIKE lower(?)", false, true},
    {"IN", "", " IN (SELECT value FROM json_each(?))", false, true},
    {"NOT IN", "", " NOT IN (SELECT value FROM json_each(?))", false, true},
};

static const struct comparator *find_comparator(const struct filter_lexer *lexer, bool is_not)
{
    for (size_t i = 0; i < sizeof comparators / sizeof comparators[0]; i++) {
        if (!is_not ? filter_token_is(lexer, comparators[i].word)
                    : (strcmp(comparators[i].word, "NOT IN") == 0 && filter_token_is(lexer, "IN"))) {
            return &comparators[i];
        }
    }
    return NULL;
}

/* Reads IS NULL and IS NOT NULL; the current token is IS. */
static bool read_is(struct filter_lexer *lexer, struct comparison *comparison, struct tracking_error *error)
{
    comparison->kind = COMPARE_NULL;
    if (!filter_lexer_next(lexer, error)) {
        return false;
    }
    if (filter_token_is(lexer, "NOT")) {
        comparison->kind = COMPARE_NOT_NULL;
        if (!filter_lexer_next(lexer, error)) {
            return false;
        }
    }
    return filter_token_is(lexer, "NULL") ? filter_lexer_next(lexer, error)
                                          : filter_expected(lexer, "NULL or NOT NULL", error);
}

static bool read_comparison(struct filter_lexer *lexer, bool is_number, struct comparison *comparison,
                            struct tracking_error *error)
{
    *comparison = (struct comparison){0};
    if (filter_token_is(lexer, "IS")) {
        return read_is(lexer, comparison, error);
    }
    bool is_not = filter_token_is(lexer, "NOT");
    if (is_not && !filter_lexer_next(lexer, error)) {
        return false;
    }
    const struct comparator *comparator = find_comparator(lexer, is_not);
    if (comparator == NULL || !(is_number ? comparator->numbers : comparator->texts)) {
        return filter_expected(lexer,
                               is_number ? "one of =, !=, <, <=, >, >="
                                         : "one of =, !=, LIKE, ILIKE, IN, NOT IN, as it is no number,",
                               error);
    }
    comparison->before = comparator->before;
    comparison->after = comparator->after;
    comparison->not_equal = strcmp(comparator->word, "!=") == 0;
    bool is_list = strstr(comparator->after, "json_each") != NULL;
    return filter_lexer_next(lexer, error) && (is_number ? read_number(lexer, comparison, error)
                                               : is_list ? read_list(lexer, comparison, error)
                                                         : read_text(lexer, comparison, error));
}

/* --- SQL --- */

const char *filter_params_table(enum filter_subject subject)
{
    return subject == FILTER_MODELS ? "model_params" : "params";
}

const char *filter_tags_table(enum filter_subject subject)
{
    static const char *const tables[] = {[FILTER_RUNS] = "tags",
                                         [FILTER_EXPERIMENTS] = "experiment_tags",
                                         [FILTER_MODELS] = "model_tags",
                                         [FILTER_REGISTRY] = "registered_model_tags",
                                         [FILTER_VERSIONS] = "model_version_tags"};
    return tables[subject];
}

const char *filter_owner(enum filter_subject subject)
{
    static const char *const conditions[] = {[FILTER_RUNS] = "run = runs.key",
                                             [FILTER_EXPERIMENTS] = "experiment = experiments.id",
                                             [FILTER_MODELS] = "model = models.key",
                                             [FILTER_REGISTRY] = "model = registered_models.key",
                                             [FILTER_VERSIONS] = "version = model_versions.key"};
    return conditions[subject];
}

static void add_value(struct filter *filter, const struct comparison *comparison)
{
    if (comparison->text != NULL) {
        filter_values_add_text(&filter->where_values, comparison->text);
    } else {
        filter_values_add_number(&filter->where_values, comparison->number);
    }
}

static bool asks_for_null(const struct comparison *comparison)
{
    return comparison->kind == COMPARE_NULL || comparison->kind == COMPARE_NOT_NULL;
}

/* Compares a column of the row itself. */
static void write_column(struct filter *filter, const char *column, const struct comparison *comparison)
{
    if (asks_for_null(comparison)) {
        text_printf(&filter->where, " AND %s IS %sNULL", column,
                    comparison->kind == COMPARE_NULL ? "" : "NOT ");
        return;
    }
    text_printf(&filter->where, " AND %s%s%s", comparison->before, column, comparison->after);
    add_value(filter, comparison);
}

/* Compares a row of a dependent table. key NULL: any key. */
static void write_exists(struct filter *filter, const char *table, const char *key, const char *column,
                         const struct comparison *comparison)
{
    text_printf(&filter->where, " AND %sEXISTS (SELECT 1 FROM %s WHERE %s",
                comparison->kind == COMPARE_NULL ? "NOT " : "", table, filter_owner(filter->subject));
    if (key != NULL) {
        text_append(&filter->where, " AND name = ?");
        filter_values_add_text(&filter->where_values, key);
    }
    if (!asks_for_null(comparison)) {
        text_printf(&filter->where, " AND %s%s%s", comparison->before, column, comparison->after);
        add_value(filter, comparison);
    } else if (key == NULL) {
        text_printf(&filter->where, " AND %s IS NOT NULL", column);
    }
    text_append(&filter->where, ")");
}

/* NaN is unequal to every number and equal to none. */
static void write_metric(struct filter *filter, const char *key, const struct comparison *comparison)
{
    struct comparison numbers = *comparison;
    autofree char *after = NULL;
    if (!asks_for_null(comparison)) {
        after = xprintf("%s %s", comparison->after, comparison->not_equal ? "OR is_nan)" : "AND is_nan = 0)");
        numbers.before = "(";
        numbers.after = after;
    }
    write_exists(filter, "metrics", key, "value", &numbers);
}

/* Clients also keep prompts in the registry, as models with this tag. A search finds prompts only if its
 * filter asks for the tag. A filter for models without the tag excludes prompts. */
#define TAG_PROMPT "mlflow.prompt.is_prompt"

static bool is_of_registry(const struct filter *filter)
{
    return filter->subject == FILTER_REGISTRY || filter->subject == FILTER_VERSIONS;
}

static bool write_prompts(struct filter *filter, const char *key, const struct comparison *comparison)
{
    if (!is_of_registry(filter) || strcmp(key, TAG_PROMPT) != 0 || comparison->kind != COMPARE_VALUE) {
        return false;
    }
    bool wanted = strcasecmp(comparison->text, comparison->not_equal ? "false" : "true") == 0;
    filter->prompts = filter->prompts || wanted;
    return !wanted;
}

static void hide_prompts(struct filter *filter)
{
    if (is_of_registry(filter) && !filter->prompts) {
        text_append(&filter->where,
                    " AND NOT EXISTS (SELECT 1 FROM registered_model_tags WHERE "
                    "model = registered_models.key AND name = '" TAG_PROMPT "' AND value = 'true')");
    }
}

static void write_comparison(struct filter *filter, const struct filter_name *name,
                             const struct comparison *comparison)
{
    switch (name->entity) {
    case FILTER_METRIC:
        write_metric(filter, name->key, comparison);
        return;
    case FILTER_PARAM:
        write_exists(filter, filter_params_table(filter->subject), name->key, "value", comparison);
        return;
    case FILTER_TAG:
        if (!write_prompts(filter, name->key, comparison)) {
            write_exists(filter, filter_tags_table(filter->subject), name->key, "value", comparison);
        }
        return;
    case FILTER_ATTRIBUTE:
        write_column(filter, name->column, comparison);
        return;
    case FILTER_DATASET:
        write_exists(filter, "inputs", NULL, name->column, comparison);
        return;
    }
}

/* --- grammar --- */

static bool parse_term(struct filter *filter, struct filter_lexer *lexer, struct tracking_error *error)
{
    struct filter_name name;
    struct comparison comparison = {0};
    bool ok = ++filter->terms <= LIMIT_TRACKING_FILTER_TERMS ||
              tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                            "Invalid filter: it has more than %d comparisons.", LIMIT_TRACKING_FILTER_TERMS);
    if (!ok) {
        return false;
    }
    ok = filter_name_read(lexer, filter->subject, &name, error) &&
         read_comparison(lexer, name.is_number, &comparison, error);
    if (ok) {
        write_comparison(filter, &name, &comparison);
    }
    filter_name_finish(&name);
    free(comparison.text);
    return ok;
}

static bool parse_terms(struct filter *filter, struct filter_lexer *lexer, struct tracking_error *error)
{
    if (lexer->token.kind == FILTER_TOKEN_END) {
        return true;
    }
    for (;;) {
        if (!parse_term(filter, lexer, error)) {
            return false;
        }
        if (lexer->token.kind == FILTER_TOKEN_END) {
            return true;
        }
        if (!filter_token_is(lexer, "AND")) {
            return filter_expected(lexer, "AND or the end", error);
        }
        if (!filter_lexer_next(lexer, error)) {
            return false;
        }
    }
}

bool filter_parse(struct filter *filter, const char *text, struct tracking_error *error)
{
    if (strlen(text) > LIMIT_TRACKING_FILTER_BYTES) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "Invalid filter: it is longer than %lld bytes.", LIMIT_TRACKING_FILTER_BYTES);
    }
    struct filter_lexer lexer;
    bool ok = filter_lexer_init(&lexer, "filter", text, error) && parse_terms(filter, &lexer, error);
    filter_lexer_finish(&lexer);
    hide_prompts(filter);
    return ok;
}
