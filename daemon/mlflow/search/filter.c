/* SPDX-License-Identifier: Apache-2.0 */
/* Parses filters and orders and translates them to SQL. Texts are compared exactly; LIKE matches case, ILIKE
 * ignores it. A comparison with a value that the row does not have is false, also with !=. */
#include "daemon/mlflow/search/filter.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/mlflow/search/lexer.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_tracking.h"

void filter_finish(struct filter *filter)
{
    text_finish(&filter->joins);
    text_finish(&filter->where);
    text_finish(&filter->order);
    json_decref(filter->values);
}

/* Takes the value over; returns the number of its parameter. */
static size_t add_value(struct filter *filter, json_t *value)
{
    if (filter->values == NULL) {
        filter->values = json_array();
    }
    json_array_append_new(filter->values, value);
    return FILTER_FIRST_PARAMETER + json_array_size(filter->values) - 1;
}

void filter_bind(const struct filter *filter, sqlite3_stmt *statement)
{
    size_t i;
    const json_t *value;
    json_array_foreach (filter->values, i, value) {
        int at = FILTER_FIRST_PARAMETER + (int)i;
        int code = json_is_string(value)
                       ? sqlite3_bind_text(statement, at, json_string_value(value), -1, SQLITE_STATIC)
                       : sqlite3_bind_double(statement, at, json_real_value(value));
        assert(code == SQLITE_OK);
    }
}

/* --- the right side of a comparison --- */

static const struct comparator {
    const char *word;
    const char *before, *between, *after; /* the column and the value */
    bool numbers, texts;                  /* takes them */
    bool list;                            /* of texts */
} comparators[] = {
    {"=", "", " = ", "", true, true, false},
    {"!=", "", " <> ", "", true, true, false},
    {"<", "", " < ", "", true, false, false},
    {"<=", "", " <= ", "", true, false, false},
    {">", "", " > ", "", true, false, false},
    {">=", "", " >= ", "", true, false, false},
    {"LIKE", "", " LIKE ", "", false, true, false},
    {"ILIKE", "lower(", ") LIKE lower(", ")", false, true, false},
    {"IN", "", " IN (SELECT value FROM json_each(", "))", false, true, true},
    {"NOT IN", "", " NOT IN (SELECT value FROM json_each(", "))", false, true, true},
};

/* The part after a name. */
struct comparison {
    const struct comparator *comparator; /* NULL: IS NULL or IS NOT NULL */
    bool is_null;
    json_t *value; /* a number, or a text; a list is the text of a JSON array */
};

static json_t *read_number(struct lexer *lexer)
{
    const char *word = lexer->text;
    char *rest;
    double number = strtod(word, &rest);
    if (lexer->kind != TOKEN_WORD || *rest != '\0' || !isfinite(number) ||
        strspn(word, "+-.0123456789eE") != strlen(word)) {
        lexer_expected(lexer, "a number");
        number = 0;
    }
    lexer_next(lexer);
    return json_real(number);
}

static json_t *read_text(struct lexer *lexer)
{
    if (lexer->kind != TOKEN_TEXT && lexer->kind != TOKEN_EITHER) {
        lexer_expected(lexer, "a text in quotes");
    }
    json_t *text = json_string(lexer->text);
    lexer_next(lexer);
    return text;
}

/* Reads ('a', 'b'). */
static json_t *read_list(struct lexer *lexer)
{
    autojson json_t *items = json_array();
    if (!lexer_is(lexer, "(")) {
        lexer_expected(lexer, "a list in parentheses");
    }
    do {
        lexer_next(lexer);
        json_array_append_new(items, read_text(lexer));
    } while (lexer_is(lexer, ","));
    if (!lexer_skip(lexer, ")")) {
        lexer_expected(lexer, "a comma or a closing parenthesis");
    }
    autofree char *text = json_text(items);
    return json_string(text);
}

static const struct comparator *read_comparator(struct lexer *lexer, bool is_number)
{
    bool is_not = lexer_skip(lexer, "NOT");
    for (size_t i = 0; i < sizeof comparators / sizeof comparators[0]; i++) {
        const struct comparator *item = &comparators[i];
        bool is =
            is_not ? strcmp(item->word, "NOT IN") == 0 && lexer_is(lexer, "IN") : lexer_is(lexer, item->word);
        if (is && (is_number ? item->numbers : item->texts)) {
            lexer_next(lexer);
            return item;
        }
    }
    lexer_expected(lexer, is_number ? "one of =, !=, <, <=, >, >="
                                    : "one of =, !=, LIKE, ILIKE, IN, NOT IN, as it is no number,");
    return &comparators[0];
}

static struct comparison read_comparison(struct lexer *lexer, bool is_number)
{
    struct comparison comparison = {0};
    if (lexer_skip(lexer, "IS")) {
        comparison.is_null = !lexer_skip(lexer, "NOT");
        if (!lexer_skip(lexer, "NULL")) {
            lexer_expected(lexer, "NULL or NOT NULL");
        }
        return comparison;
    }
    comparison.comparator = read_comparator(lexer, is_number);
    comparison.value = is_number                     ? read_number(lexer)
                       : comparison.comparator->list ? read_list(lexer)
                                                     : read_text(lexer);
    return comparison;
}

/* --- SQL --- */

/* Writes the comparison of a column with the value. */
static void write_value(struct filter *filter, const char *column, const struct comparison *comparison)
{
    const struct comparator *comparator = comparison->comparator;
    text_printf(&filter->where, "%s%s%s?%zu%s", comparator->before, column, comparator->between,
                add_value(filter, json_incref(comparison->value)), comparator->after);
}

static void write_attribute(struct filter *filter, const char *column, const struct comparison *comparison)
{
    text_append(&filter->where, " AND ");
    if (comparison->comparator != NULL) {
        write_value(filter, column, comparison);
    } else {
        text_printf(&filter->where, "%s IS %s", column, comparison->is_null ? "NULL" : "NOT NULL");
    }
}

/* NaN is unequal to every number and equal to none. */
static void write_number(struct filter *filter, const struct comparison *comparison)
{
    text_append(&filter->where, "(");
    write_value(filter, "value", comparison);
    text_append(&filter->where,
                strcmp(comparison->comparator->word, "!=") == 0 ? " OR is_nan)" : " AND is_nan = 0)");
}

/* Compares a row of a dependent table. */
static void write_exists(struct filter *filter, const struct filter_name *name,
                         const struct comparison *comparison)
{
    bool is_input = name->entity == ENTITY_DATASET;
    text_printf(&filter->where, " AND %sEXISTS (SELECT 1 FROM %s WHERE %s", comparison->is_null ? "NOT " : "",
                is_input ? "inputs" : name->table, filter->subject->owner);
    if (!is_input) {
        text_printf(&filter->where, " AND name = ?%zu", add_value(filter, json_string(name->key)));
    } else if (comparison->comparator == NULL) {
        text_printf(&filter->where, " AND %s IS NOT NULL", name->column);
    }
    if (comparison->comparator != NULL) {
        text_append(&filter->where, " AND ");
        if (name->entity == ENTITY_METRIC) {
            write_number(filter, comparison);
        } else {
            write_value(filter, is_input ? name->column : "value", comparison);
        }
    }
    text_append(&filter->where, ")");
}

/* Clients also keep prompts in the registry, as models with this tag. A search finds prompts only if its
 * filter asks for the tag. A filter for models without the tag excludes prompts. */
#define TAG_PROMPT "mlflow.prompt.is_prompt"

/* Whether the comparison only says that prompts are hidden, which they are anyway. */
static bool hides_prompts(struct filter *filter, const struct filter_name *name,
                          const struct comparison *comparison)
{
    if (!filter->subject->of_registry || name->entity != ENTITY_TAG || strcmp(name->key, TAG_PROMPT) != 0 ||
        comparison->comparator == NULL || comparison->comparator->list) {
        return false;
    }
    const char *asked = strcmp(comparison->comparator->word, "!=") == 0 ? "false" : "true";
    bool wanted = strcasecmp(json_string_value(comparison->value), asked) == 0;
    filter->prompts = filter->prompts || wanted;
    return !wanted;
}

static void write_comparison(struct filter *filter, const struct filter_name *name,
                             const struct comparison *comparison)
{
    if (name->entity == ENTITY_ATTRIBUTE) {
        write_attribute(filter, name->column, comparison);
    } else if (!hides_prompts(filter, name, comparison)) {
        write_exists(filter, name, comparison);
    }
}

/* --- grammar --- */

static void parse_term(struct filter *filter, struct lexer *lexer)
{
    if (++filter->terms > LIMIT_TRACKING_FILTER_TERMS) {
        call_refuse(filter->call, "Invalid filter: it has more than %d comparisons.",
                    LIMIT_TRACKING_FILTER_TERMS);
    }
    struct filter_name name = filter_name_read(lexer, filter->subject);
    struct comparison comparison = read_comparison(lexer, name.is_number);
    if (!filter->call->failed) {
        write_comparison(filter, &name, &comparison);
    }
    free(name.key);
    json_decref(comparison.value);
}

void filter_parse(struct filter *filter, const char *text)
{
    struct lexer lexer;
    if (strlen(text) > LIMIT_TRACKING_FILTER_BYTES) {
        call_refuse(filter->call, "Invalid filter: it is longer than %lld bytes.",
                    LIMIT_TRACKING_FILTER_BYTES);
    }
    lexer_init(&lexer, filter->call, "filter", text);
    for (bool more = lexer.kind != TOKEN_END; more; more = lexer_skip(&lexer, "AND")) {
        parse_term(filter, &lexer);
    }
    if (lexer.kind != TOKEN_END) {
        lexer_expected(&lexer, "AND or the end");
    }
    lexer_finish(&lexer);
    if (filter->subject->of_registry && !filter->prompts) {
        text_append(&filter->where,
                    " AND NOT EXISTS (SELECT 1 FROM registered_model_tags WHERE "
                    "model = registered_models.key AND name = '" TAG_PROMPT "' AND value = 'true')");
    }
}

/* Joins the row of the table that has the value, as o0, o1 and so on. */
static void write_order(struct filter *filter, const struct filter_name *name, const char *direction)
{
    size_t number = filter->order_terms++;
    if (name->entity == ENTITY_ATTRIBUTE) {
        text_printf(&filter->order, "%s %s NULLS LAST, ", name->column, direction);
        return;
    }
    text_printf(&filter->joins, " LEFT JOIN %s AS o%zu ON o%zu.%s AND o%zu.name = ?%zu", name->table, number,
                number, filter->subject->owner, number, add_value(filter, json_string(name->key)));
    if (name->entity == ENTITY_METRIC) {
        text_printf(&filter->order, "o%zu.is_nan NULLS LAST, ", number);
    }
    text_printf(&filter->order, "o%zu.value %s NULLS LAST, ", number, direction);
}

void filter_parse_order(struct filter *filter, const char *text)
{
    struct lexer lexer;
    if (filter->order_terms == LIMIT_TRACKING_ORDER_TERMS) {
        call_refuse(filter->call, "Invalid order_by: it has more than %d terms.", LIMIT_TRACKING_ORDER_TERMS);
    }
    lexer_init(&lexer, filter->call, "order_by", text);
    size_t at = lexer.at;
    struct filter_name name = filter_name_read(&lexer, filter->subject);
    bool descends = lexer_skip(&lexer, "DESC");
    if (!descends) {
        lexer_skip(&lexer, "ASC");
    }
    if (lexer.kind != TOKEN_END) {
        lexer_expected(&lexer, "ASC, DESC or the end");
    }
    if (name.entity == ENTITY_DATASET) {
        call_refuse(filter->call, "Invalid order_by: runs cannot be ordered by data sets (character %zu).",
                    at);
    }
    if (!filter->call->failed) {
        write_order(filter, &name, descends ? "DESC" : "ASC");
    }
    free(name.key);
    lexer_finish(&lexer);
}
