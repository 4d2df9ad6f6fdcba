/* SPDX-License-Identifier: Apache-2.0 */
/* Translates MLflow's search language to SQL: texts of clients become only bound parameters. */
#ifndef MLFLOW_FILTER_H
#define MLFLOW_FILTER_H

#include <sqlite3.h>
#include <stddef.h>

#include "daemon/mlflow/call/call.h"
#include "daemon/mlflow/search/subjects.h"

/* The number of the first parameter of the parts below. */
enum { FILTER_FIRST_PARAMETER = 5 };

/* The parts of a SELECT over the subject. Initialise it with {call, subject}. */
struct filter {
    struct call *call;
    const struct subject *subject;
    struct text joins; /* " LEFT JOIN ..." */
    struct text where; /* " AND ..." for each comparison */
    struct text order; /* "..., " for each term */
    json_t *values;    /* of the parameters: texts and numbers */
    size_t terms, order_terms;
    bool prompts; /* the filter asks for prompts of the registry */
};

void filter_finish(struct filter *filter);

/* Parses comparisons joined by AND: metrics.loss < 0.5 and params.`a b` = 'x' and tags.k LIKE 'a%' and
 * attributes.status IN ('FAILED', 'KILLED'). An empty text has no comparisons. An error fails the call with
 * INVALID_PARAMETER_VALUE and names its place. */
void filter_parse(struct filter *filter, const char *text);

/* Parses one term, such as "metrics.loss DESC". NaN comes after the numbers, and rows without a value come
 * last, in both directions. */
void filter_parse_order(struct filter *filter, const char *text);

void filter_bind(const struct filter *filter, sqlite3_stmt *statement);

/* --- between the files of the filter --- */

enum entity { ENTITY_METRIC, ENTITY_PARAM, ENTITY_TAG, ENTITY_ATTRIBUTE, ENTITY_DATASET };

struct lexer;

/* The name in a comparison or an order. */
struct filter_name {
    enum entity entity;
    char *key;          /* owned */
    const char *table;  /* of a metric, a parameter or a tag */
    const char *column; /* of an attribute or a data set */
    bool is_number;
};

/* Reads "metrics.loss", "tags.`a b`" or "start_time" and moves past it. The caller frees the key. */
struct filter_name filter_name_read(struct lexer *lexer, const struct subject *subject);

#endif
