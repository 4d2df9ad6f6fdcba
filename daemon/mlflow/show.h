/* SPDX-License-Identifier: Apache-2.0 */
/* Runs, experiments and values as the JSON of MLflow. */
#ifndef MLFLOW_SHOW_H
#define MLFLOW_SHOW_H

#include <sqlite3.h>
#include <stdbool.h>

#include "daemon/mlflow/queries.h"
#include "daemon/mlflow/tracking.h"

/* Append an object. The statement is at a row of COLUMNS_RUN or COLUMNS_EXPERIMENT. */
void show_run_info(sqlite3_stmt *row, struct text *out);
bool show_run(struct tracking *tracking, sqlite3_stmt *row, struct text *out, struct tracking_error *error);
bool show_experiment(struct tracking *tracking, sqlite3_stmt *row, struct text *out,
                     struct tracking_error *error);

/* Appends [{"key": ..., "value": ...}] from the rows (name, value) of the query for the owner. */
bool show_pairs(struct tracking *tracking, enum query query, int64_t of, struct text *out,
                struct tracking_error *error);

/* Appends a string with its quotes. */
void show_text(struct text *out, const char *value);
/* Appends the shortest number that reads back as the same value; "NaN", "Infinity" and "-Infinity" as
 * strings. */
void show_double(struct text *out, double value, bool is_nan);
/* Appends ', "next_page_token": "..."' with the numbers, for page_token_read. */
void show_page_token(struct text *out, const int64_t *numbers, size_t count);

/* Reads a token back; false with INVALID_PARAMETER_VALUE unless it has count numbers. */
bool page_token_read(const char *token, int64_t *out, size_t count, struct tracking_error *error);

#endif
