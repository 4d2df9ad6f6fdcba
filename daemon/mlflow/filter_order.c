/* SPDX-License-Identifier: Apache-2.0 */
/* Translates order_by. NaN comes after the numbers, and rows without a value come last, in both
 * directions. */
#include <string.h>

#include "daemon/mlflow/filter.h"
#include "daemon/mlflow/filter_lexer.h"
#include "proto/limits.h"

/* Joins the row of the table that has the value; writes the row's name in the statement, "o0" and so on, to
 * name. */
static void join(struct filter *filter, const char *table, const char *key, char *name, size_t size)
{
    snprintf(name, size, "o%zu", filter->order_terms);
    text_printf(&filter->joins, " LEFT JOIN %s AS %s ON %s.%s AND %s.name = ?", table, name, name,
                filter_owner(filter->subject), name);
    filter_values_add_text(&filter->join_values, key);
}

static void write_term(struct filter *filter, const struct filter_name *name, const char *direction)
{
    char joined[24];
    switch (name->entity) {
    case FILTER_METRIC:
        join(filter, "metrics", name->key, joined, sizeof joined);
        text_printf(&filter->order, "%s.value IS NULL, %s.is_nan, %s.value %s, ", joined, joined, joined,
                    direction);
        return;
    case FILTER_PARAM:
        join(filter, filter_params_table(filter->subject), name->key, joined, sizeof joined);
        break;
    case FILTER_TAG:
        join(filter, filter_tags_table(filter->subject), name->key, joined, sizeof joined);
        break;
    case FILTER_ATTRIBUTE:
    case FILTER_DATASET:
        text_printf(&filter->order, "%s IS NULL, %s %s, ", name->column, name->column, direction);
        return;
    }
    text_printf(&filter->order, "%s.value IS NULL, %s.value %s, ", joined, joined, direction);
}

static bool read_direction(struct filter_lexer *lexer, const char **ret_direction,
                           struct tracking_error *error)
{
    *ret_direction = filter_token_is(lexer, "DESC") ? "DESC" : "ASC";
    if ((filter_token_is(lexer, "DESC") || filter_token_is(lexer, "ASC")) &&
        !filter_lexer_next(lexer, error)) {
        return false;
    }
    return lexer->token.kind == FILTER_TOKEN_END || filter_expected(lexer, "ASC, DESC or the end", error);
}

static bool parse(struct filter *filter, struct filter_lexer *lexer, struct filter_name *name,
                  struct tracking_error *error)
{
    const char *direction;
    size_t at = lexer->token.at;
    if (!filter_name_read(lexer, filter->subject, name, error) || !read_direction(lexer, &direction, error)) {
        return false;
    }
    if (name->entity == FILTER_DATASET) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "Invalid order_by: runs cannot be ordered by data sets (character %zu).", at);
    }
    write_term(filter, name, direction);
    filter->order_terms++;
    return true;
}

bool filter_parse_order(struct filter *filter, const char *text, struct tracking_error *error)
{
    if (filter->order_terms == LIMIT_TRACKING_ORDER_TERMS) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "Invalid order_by: it has more than %d terms.", LIMIT_TRACKING_ORDER_TERMS);
    }
    struct filter_lexer lexer;
    struct filter_name name = {0};
    bool ok = filter_lexer_init(&lexer, "order_by", text, error) && parse(filter, &lexer, &name, error);
    filter_name_finish(&name);
    filter_lexer_finish(&lexer);
    return ok;
}
