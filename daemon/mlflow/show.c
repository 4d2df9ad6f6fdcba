/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the JSON for clients. Ids are texts, times are numbers of milliseconds, and values that a run does
 * not have are left out. */
#include "daemon/mlflow/show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/models.h"
#include "proto/base/cleanup.h"

/* --- values --- */

void show_text(struct text *out, const char *value)
{
    text_json_string(out, value, strlen(value));
}

void show_double(struct text *out, double value, bool is_nan)
{
    if (is_nan) {
        text_append(out, "\"NaN\"");
        return;
    }
    if (isinf(value)) {
        text_append(out, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    char digits[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    text_append(out, digits);
}

void show_page_token(struct text *out, const int64_t *numbers, size_t count)
{
    text_append(out, ", \"next_page_token\": \"");
    for (size_t i = 0; i < count; i++) {
        text_append(out, i > 0 ? "." : "");
        text_append_int(out, numbers[i]);
    }
    text_append(out, "\"");
}

/* Reads exactly count numbers with dots between them. */
static bool split_numbers(char *part, int64_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *dot = strchr(part, '.');
        if ((dot == NULL) != (i + 1 == count)) {
            return false;
        }
        if (dot != NULL) {
            *dot = '\0';
        }
        if (!text_to_int(part, INT64_MIN, INT64_MAX, &out[i])) {
            return false;
        }
        part = dot != NULL ? dot + 1 : part;
    }
    return true;
}

bool page_token_read(const char *token, int64_t *out, size_t count, struct tracking_error *error)
{
    autofree char *copy = xstrdup(token);
    return split_numbers(copy, out, count) ||
           tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                         "Invalid page_token '%.100s': it is not one of this list.", token);
}

static void member_text(struct text *out, const char *name, const char *value)
{
    text_printf(out, "\"%s\": ", name);
    show_text(out, value);
    text_append(out, ", ");
}

static void member_int(struct text *out, const char *name, int64_t value)
{
    text_printf(out, "\"%s\": ", name);
    text_append_int(out, value);
    text_append(out, ", ");
}

bool show_pairs(struct tracking *tracking, enum query query, int64_t of, struct text *out,
                struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, query, "i", of);
    bool there, ok;
    text_append(out, "[");
    for (int count = 0; (ok = database_step(tracking, row, &there, error)) && there; count++) {
        text_append(out, count > 0 ? ", {\"key\": " : "{\"key\": ");
        show_text(out, column_text(row, 0));
        text_append(out, ", \"value\": ");
        show_text(out, column_text(row, 1));
        text_append(out, "}");
    }
    text_append(out, "]");
    return ok;
}

/* --- runs --- */

void show_run_info(sqlite3_stmt *row, struct text *out)
{
    char experiment[24];
    snprintf(experiment, sizeof experiment, "%lld", (long long)sqlite3_column_int64(row, 2));
    text_append(out, "{");
    member_text(out, "run_id", column_text(row, 1));
    member_text(out, "run_uuid", column_text(row, 1));
    member_text(out, "run_name", column_text(row, 3));
    member_text(out, "experiment_id", experiment);
    member_text(out, "user_id", column_text(row, 4));
    member_text(out, "status", column_text(row, 5));
    member_int(out, "start_time", sqlite3_column_int64(row, 6));
    if (sqlite3_column_type(row, 7) != SQLITE_NULL) {
        member_int(out, "end_time", sqlite3_column_int64(row, 7));
    }
    member_text(out, "artifact_uri", column_text(row, 9));
    text_printf(out, "\"lifecycle_stage\": \"%s\"}", sqlite3_column_int(row, 8) == 0 ? "active" : "deleted");
}

static bool show_metrics(struct tracking *tracking, int64_t run, struct text *out,
                         struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_METRICS, "i", run);
    bool there, ok;
    text_append(out, "[");
    for (int count = 0; (ok = database_step(tracking, row, &there, error)) && there; count++) {
        text_append(out, count > 0 ? ", {\"key\": " : "{\"key\": ");
        show_text(out, column_text(row, 0));
        text_append(out, ", \"value\": ");
        show_double(out, sqlite3_column_double(row, 1), sqlite3_column_int(row, 2) != 0);
        text_append(out, ", \"timestamp\": ");
        text_append_int(out, sqlite3_column_int64(row, 3));
        text_append(out, ", \"step\": ");
        text_append_int(out, sqlite3_column_int64(row, 4));
        text_append(out, "}");
    }
    text_append(out, "]");
    return ok;
}

/* Data sets are stored in the form in which they are shown. */
static bool show_inputs(struct tracking *tracking, int64_t run, struct text *out,
                        struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_INPUTS, "i", run);
    bool there, ok;
    text_append(out, "{\"dataset_inputs\": [");
    for (int count = 0; (ok = database_step(tracking, row, &there, error)) && there; count++) {
        text_append(out, count > 0 ? ", " : "");
        text_append(out, column_text(row, 0));
    }
    text_append(out, "]}");
    return ok;
}

bool show_run(struct tracking *tracking, sqlite3_stmt *row, struct text *out, struct tracking_error *error)
{
    int64_t run = sqlite3_column_int64(row, 0);
    text_append(out, "{\"info\": ");
    show_run_info(row, out);
    text_append(out, ", \"data\": {\"metrics\": ");
    if (!show_metrics(tracking, run, out, error)) {
        return false;
    }
    text_append(out, ", \"params\": ");
    if (!show_pairs(tracking, QUERY_PARAMS, run, out, error)) {
        return false;
    }
    text_append(out, ", \"tags\": ");
    if (!show_pairs(tracking, QUERY_TAGS, run, out, error)) {
        return false;
    }
    text_append(out, "}, \"inputs\": ");
    if (!show_inputs(tracking, run, out, error)) {
        return false;
    }
    text_append(out, ", \"outputs\": {\"model_outputs\": ");
    if (!show_model_outputs(tracking, run, out, error)) {
        return false;
    }
    text_append(out, "}}");
    return true;
}

/* --- experiments --- */

bool show_experiment(struct tracking *tracking, sqlite3_stmt *row, struct text *out,
                     struct tracking_error *error)
{
    int64_t id = sqlite3_column_int64(row, 0);
    text_printf(out, "{\"experiment_id\": \"%lld\", ", (long long)id);
    member_text(out, "name", column_text(row, 1));
    member_text(out, "artifact_location", column_text(row, 2));
    member_text(out, "lifecycle_stage", sqlite3_column_int(row, 3) == 0 ? "active" : "deleted");
    member_int(out, "creation_time", sqlite3_column_int64(row, 4));
    member_int(out, "last_update_time", sqlite3_column_int64(row, 5));
    text_append(out, "\"tags\": ");
    if (!show_pairs(tracking, QUERY_EXPERIMENT_TAGS, id, out, error)) {
        return false;
    }
    text_append(out, "}");
    return true;
}
