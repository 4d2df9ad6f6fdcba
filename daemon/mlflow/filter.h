/* SPDX-License-Identifier: Apache-2.0 */
/* MLflow's search language made into SQL: what a client wrote only ever becomes a bound parameter. */
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

/* The parts of a SELECT over runs, experiments, models, registered models or their versions. Starts as
 * {.subject = ...}. */
struct filter {
    enum filter_subject subject;
    struct text joins; /* " LEFT JOIN ..." */
    struct text where; /* " AND ..." for each comparison */
    struct text order; /* "..., " for each term */
    struct filter_values join_values, where_values;
    size_t terms, order_terms;
    bool prompts; /* the filter asks for the prompts of the registry */
};

void filter_finish(struct filter *filter);

/* Comparisons joined by AND, as: metrics.loss < 0.5 and params.`a b` = 'x' and tags.k LIKE 'a%' and
 * attributes.status IN ('FAILED', 'KILLED'). An empty text is none. INVALID_PARAMETER_VALUE names the place
 * that is wrong. */
bool filter_parse(struct filter *filter, const char *text, struct tracking_error *error);

/* One term, as "metrics.loss DESC". What has no value comes last either way. */
bool filter_parse_order(struct filter *filter, const char *text, struct tracking_error *error);

/* Binds values from parameter first on; returns the one after the last. */
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

/* What is compared or ordered by. */
struct filter_name {
    enum filter_entity entity;
    char *key;          /* owned */
    const char *column; /* of an attribute or data set */
    bool is_number;
};

void filter_name_finish(struct filter_name *name);
/* Reads "metrics.loss", "tags.`a b`", "start_time" and goes behind it. */
bool filter_name_read(struct filter_lexer *lexer, enum filter_subject subject, struct filter_name *ret_name,
                      struct tracking_error *error);

/* What the tables of the subject's parameters and tags are called, and the condition that ties their rows to
 * its own. */
const char *filter_params_table(enum filter_subject subject);
const char *filter_tags_table(enum filter_subject subject);
const char *filter_owner(enum filter_subject subject);

/* Takes a copy of the text. */
void filter_values_add_text(struct filter_values *values, const char *text);
void filter_values_add_number(struct filter_values *values, double number);

#endif
