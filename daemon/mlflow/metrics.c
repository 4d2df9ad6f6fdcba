/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the values of metrics: all points, and for each metric the latest by step, then time, then value.
 * Points that clients log into a run are numbered in the order in which they arrive. */
#include "daemon/mlflow/metrics.h"

#include <math.h>
#include <string.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/field.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/runs.h"
#include "daemon/mlflow/show.h"
#include "proto/limits.h"

struct point {
    const char *name;
    int64_t at_ms, step;
    double value; /* 0 for NaN */
    int is_nan;
};

/* --- logging --- */

static bool read_point(const json_t *metric, struct point *point, struct tracking_error *error)
{
    *point = (struct point){0};
    if (!field_need_text(metric, "key", &point->name, error) || !name_check("metric", point->name, error) ||
        !field_double(metric, "value", &point->value, error) ||
        !field_need_int(metric, "timestamp", &point->at_ms, error) ||
        !field_int(metric, "step", &point->step, error)) {
        return false;
    }
    if (!json_is_number(json_object_get(metric, "value")) &&
        !json_is_string(json_object_get(metric, "value"))) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "Missing value for required parameter 'value' of metric '%.250s'.", point->name);
    }
    if (point->at_ms < 0) {
        return tracking_fail(
            error, TRACKING_INVALID_PARAMETER_VALUE,
            "Got invalid timestamp %lld for metric '%.250s'. Timestamp must be a nonnegative "
            "long (64-bit integer)",
            (long long)point->at_ms, point->name);
    }
    if (isnan(point->value)) {
        point->value = 0;
        point->is_nan = 1;
    }
    return true;
}

static bool find(struct tracking *tracking, int64_t run, const char *name, int64_t *ret_key, bool *ret_there,
                 struct tracking_error *error)
{
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_METRIC, "it", run, name);
    if (!database_step(tracking, row, ret_there, error)) {
        return false;
    }
    *ret_key = *ret_there ? sqlite3_column_int64(row, 0) : 0;
    return true;
}

static bool put_latest(struct tracking *tracking, int64_t run, const struct point *point, int64_t *ret_key,
                       struct tracking_error *error)
{
    bool there;
    if (!find(tracking, run, point->name, ret_key, &there, error)) {
        return false;
    }
    if (there) {
        return database_run(tracking, error, QUERY_METRIC_UPDATE, "iiidb", *ret_key, point->step,
                            point->at_ms, point->value, point->is_nan);
    }
    bool ok = database_run(tracking, error, QUERY_METRIC_INSERT, "itiidb", run, point->name, point->step,
                           point->at_ms, point->value, point->is_nan);
    *ret_key = sqlite3_last_insert_rowid(tracking->db);
    return ok;
}

bool metric_put(struct tracking *tracking, int64_t run, const json_t *metric, struct tracking_error *error)
{
    struct point point;
    int64_t key;
    return read_point(metric, &point, error) && put_latest(tracking, run, &point, &key, error) &&
           database_run(tracking, error, QUERY_POINT_INSERT, "iiidbi", key, point.at_ms, point.step,
                        point.value, point.is_nan, run);
}

bool metric_copy(struct tracking *tracking, int64_t run, const json_t *metric, struct tracking_error *error)
{
    struct point point;
    int64_t key;
    return read_point(metric, &point, error) && put_latest(tracking, run, &point, &key, error) &&
           database_run(tracking, error, QUERY_POINT_COPY, "iiidb", key, point.at_ms, point.step, point.value,
                        point.is_nan);
}

bool work_runs_log_metric(struct tracking *tracking, const struct tracking_request *request, struct text *out,
                          struct tracking_error *error)
{
    struct run run;
    if (!run_find_active(tracking, request, &run, error) ||
        !metric_put(tracking, run.key, request->body, error)) {
        return false;
    }
    text_append(out, "{}");
    return true;
}

/* --- history --- */

/* A page continues after a point: its time, step, bits of the value, is_nan. */
enum { TOKEN_AT, TOKEN_STEP, TOKEN_VALUE, TOKEN_NAN, TOKEN_COUNT };

static void append_point(struct text *out, const char *name, const struct point *point)
{
    text_append(out, "{\"key\": ");
    show_text(out, name);
    text_append(out, ", \"value\": ");
    show_double(out, point->value, point->is_nan != 0);
    text_append(out, ", \"timestamp\": ");
    text_append_int(out, point->at_ms);
    text_append(out, ", \"step\": ");
    text_append_int(out, point->step);
    text_append(out, "}");
}

static bool append_points(struct tracking *tracking, int64_t metric, const char *name,
                          const int64_t token[TOKEN_COUNT], int64_t limit, struct text *out,
                          struct tracking_error *error)
{
    double value;
    memcpy(&value, &token[TOKEN_VALUE], sizeof value);
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_POINTS, "iiidii", metric, token[TOKEN_AT],
                                                 token[TOKEN_STEP], value, token[TOKEN_NAN], limit + 1);
    struct point point = {0};
    bool there, ok;
    int64_t count = 0;
    text_append(out, "{\"metrics\": [");
    for (; (ok = database_step(tracking, row, &there, error)) && there && count < limit; count++) {
        point = (struct point){.value = sqlite3_column_double(row, 0),
                               .is_nan = sqlite3_column_int(row, 1),
                               .at_ms = sqlite3_column_int64(row, 2),
                               .step = sqlite3_column_int64(row, 3)};
        text_append(out, count > 0 ? ", " : "");
        append_point(out, name, &point);
    }
    text_append(out, "]");
    if (ok && there) {
        int64_t next[TOKEN_COUNT] = {point.at_ms, point.step, 0, point.is_nan};
        memcpy(&next[TOKEN_VALUE], &point.value, sizeof point.value);
        show_page_token(out, next, TOKEN_COUNT);
    }
    text_append(out, "}");
    return ok;
}

bool work_metrics_get_history(struct tracking *tracking, const struct tracking_request *request,
                              struct text *out, struct tracking_error *error)
{
    const char *run_id;
    const char *name;
    const char *page = "";
    int64_t limit, metric;
    int64_t token[TOKEN_COUNT] = {INT64_MIN, INT64_MIN, 0, -1};
    struct run run;
    bool there;
    if (!field_need_run_id(request->body, &run_id, error) ||
        !field_need_text(request->body, "metric_key", &name, error) ||
        !field_max_results(request->body, LIMIT_TRACKING_HISTORY_ROWS, LIMIT_TRACKING_ROWS, &limit, error) ||
        !field_text(request->body, "page_token", &page, error) ||
        (page[0] != '\0' && !page_token_read(page, token, TOKEN_COUNT, error)) ||
        !run_find(tracking, run_id, &run, NULL, error) ||
        !find(tracking, run.key, name, &metric, &there, error)) {
        return false;
    }
    if (!there) {
        text_append(out, "{\"metrics\": []}");
        return true;
    }
    limit = limit < LIMIT_TRACKING_HISTORY_ROWS ? limit : LIMIT_TRACKING_HISTORY_ROWS;
    return append_points(tracking, metric, name, token, limit, out, error);
}

/* --- in order of logging --- */

static bool is_asked_for(const struct tracking_listing *listing, const char *name)
{
    return listing->name == NULL || strcmp(listing->name, name) == 0;
}

static void visit(const struct tracking_listing *listing, sqlite3_stmt *row)
{
    const struct tracking_logged point = {
        .name = column_text(row, 0),
        .value = sqlite3_column_int(row, 2) != 0 ? (double)NAN : sqlite3_column_double(row, 1),
        .at_ms = sqlite3_column_int64(row, 3),
        .step = sqlite3_column_int64(row, 4),
        .number = sqlite3_column_int64(row, 5)};
    listing->visit(&point, listing->closure);
}

bool work_job_points(struct tracking *tracking, const struct tracking_listing *listing, int64_t *after,
                     bool *ret_more, struct tracking_error *error)
{
    struct run run;
    bool there, ok;
    int64_t visited = 0, looked = 0;
    if (!run_find(tracking, listing->run_id, &run, NULL, error)) {
        return false;
    }
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_POINTS_LOGGED, "iii", run.key, *after,
                                                 (int64_t)LIMIT_TRACKING_SCAN_ROWS + 1);
    while ((ok = database_step(tracking, row, &there, error)) && there && visited < listing->limit &&
           looked < LIMIT_TRACKING_SCAN_ROWS) {
        if (is_asked_for(listing, column_text(row, 0))) {
            visit(listing, row);
            visited++;
        }
        *after = sqlite3_column_int64(row, 5);
        looked++;
    }
    *ret_more = ok && there;
    return ok;
}
