/* SPDX-License-Identifier: Apache-2.0 */
/* Translates MLflow's search language to SQL: texts of clients become only bound parameters. */
#ifndef MLFLOW_FILTER_H
#define MLFLOW_FILTER_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/mlflow/tracking.h"

enum filter_subject { FILTER_RUNS, FILTER_EXPERIMENTS, FILTER_MODELS, FILTER_REGISTRY, FILTER_VERSIONS };

struct filter_value {
    char *text; /* owned; NULL: a number */
    double number;
};

struct filter_values {
    struct filter_value *items;
    size_t count, room;
};

/* The parts of a SELECT over runs, experiments, models, registered models or their versions. Initialise it
 * with {.subject = ...}. */
struct filter {
    enum filter_subject subject;
    struct text joins; /* " LEFT JOIN ..." */
    struct text where; /* " AND ..." for each comparison */
    struct text order; /* "..., " for each term */
    struct filter_values join_values, where_values;
    size_t terms, order_terms;
    bool prompts; /* the filter asks for prompts of the registry */
};

void filter_finish(struct filter *filter);

/* Parses comparisons joined by AND: metrics.loss < 0.5 and params.`a b` = 'x' and tags.k LIKE 'a%' and
 * attributes.status IN ('FAILED', 'KILLED'). An empty text has no comparisons. INVALID_PARAMETER_VALUE names
 * the place of the error. */
bool filter_parse(struct filter *filter, const char *text, struct tracking_error *error);

/* Parses one term, such as "metrics.loss DESC". Rows without a value come last in both directions. */
bool filter_parse_order(struct filter *filter, const char *text, struct tracking_error *error);

/* Binds the values from parameter first on; returns the parameter after the last. */
int filter_bind(const struct filter_values *values, sqlite3_stmt *statement, int first);

/* --- between the files of the filter --- */

enum filter_entity {
    FILTER_METRIC,
    FILTER_PARAM,
    FILTER_TAG,
    FILTER_ATTRIBUTE,
    FILTER_DATASET,
};

struct filter_lexer;

/* The name in a comparison or an order. */
struct filter_name {
    enum filter_entity entity;
    char *key;          /* owned */
    const char *column; /* of an attribute or a data set */
    bool is_number;
};

void filter_name_finish(struct filter_name *name);
/* Reads "metrics.loss", "tags.`a b`" or "start_time" and moves past it. */
bool filter_name_read(struct filter_lexer *lexer, enum filter_subject subject, struct filter_name *ret_name,
                      struct tracking_error *error);

/* The subject's tables of parameters and tags, and the condition that joins their rows to the subject's. */
const char *filter_params_table(enum filter_subject subject);
const char *filter_tags_table(enum filter_subject subject);
const char *filter_owner(enum filter_subject subject);

/* Copies the text. */
void filter_values_add_text(struct filter_values *values, const char *text);
void filter_values_add_number(struct filter_values *values, double number);

#endif
