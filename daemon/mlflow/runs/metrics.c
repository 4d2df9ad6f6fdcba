/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the values of metrics: all points, and for each metric the latest by step, then time, then value.
 * Points that clients log into a run are numbered in the order in which they arrive. */
#include "daemon/mlflow/runs/metrics.h"

#include <math.h>
#include <string.h>

#include "daemon/mlflow/call/endpoints.h"
#include "daemon/mlflow/call/field.h"
#include "daemon/mlflow/call/names.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/runs/pairs.h"
#include "daemon/mlflow/runs/runs.h"
#include "proto/limits_tracking.h"

/* --- logging --- */

/* NaN is stored as 0 with a mark. */
static double stored(const struct metric_point *point)
{
    return isnan(point->value) ? 0 : point->value;
}

/* Writes the latest value; returns the key of the metric. */
static int64_t put_latest(struct call *call, int64_t run, const struct metric_point *point)
{
    int64_t key = database_int(call, 0, QUERY_METRIC, "it", run, point->name);
    if (key != 0) {
        database_run(call, QUERY_METRIC_UPDATE, "iiidb", key, point->at_ms, point->step, stored(point),
                     isnan(point->value));
        return key;
    }
    database_run(call, QUERY_METRIC_INSERT, "itiidb", run, point->name, point->at_ms, point->step,
                 stored(point), isnan(point->value));
    return sqlite3_last_insert_rowid(call->tracking->db);
}

void metric_put(struct call *call, int64_t run, const struct metric_point *point)
{
    int64_t key = put_latest(call, run, point);
    database_run(call, QUERY_POINT_INSERT, "iiidbi", key, point->at_ms, point->step, stored(point),
                 isnan(point->value), run);
}

void metric_copy(struct call *call, int64_t run, const struct metric_point *point)
{
    int64_t key = put_latest(call, run, point);
    database_run(call, QUERY_POINT_COPY, "iiidb", key, point->at_ms, point->step, stored(point),
                 isnan(point->value));
}

/* Logs one object {key, value, timestamp, step}. */
static void put_object(struct call *call, int64_t run, const json_t *metric)
{
    struct metric_point point = {.name = field_need_text(call, metric, "key")};
    name_check(call, "metric", point.name);
    point.value = field_double(call, metric, "value");
    point.at_ms = field_need_int(call, metric, "timestamp");
    point.step = field_int(call, metric, "step", 0);
    json_t *value = json_object_get(metric, "value");
    if (value == NULL || json_is_null(value)) {
        call_refuse(call, "Missing value for required parameter 'value' of metric '%.250s'.", point.name);
    }
    if (point.at_ms < 0) {
        call_refuse(call,
                    "Got invalid timestamp %lld for metric '%.250s'. Timestamp must be a nonnegative long "
                    "(64-bit integer)",
                    (long long)point.at_ms, point.name);
    }
    metric_put(call, run, &point);
}

void work_runs_log_metric(struct call *call)
{
    struct run run = run_find_active(call);
    put_object(call, run.key, call->request.body);
}

/* --- batches --- */

static void check_count(struct call *call, const char *what, size_t limit, size_t count)
{
    if (count > limit) {
        call_refuse(call,
                    "A batch logging request can contain at most %zu %s. Got %zu %s. Please split up %s "
                    "across multiple requests and try again.",
                    limit, what, count, what, what);
    }
}

/* There are at most a hundred parameters, so comparing all pairs is fastest. */
static void check_keys_differ(struct call *call, const json_t *params)
{
    for (size_t i = 1; i < json_array_size(params) && !call->failed; i++) {
        const char *key = json_string_value(json_object_get(json_array_get(params, i), "key"));
        for (size_t j = 0; key != NULL && j < i; j++) {
            const char *other = json_string_value(json_object_get(json_array_get(params, j), "key"));
            if (other != NULL && strcmp(key, other) == 0) {
                call_refuse(call,
                            "Duplicate parameter keys have been submitted: ['%.250s']. Please ensure the "
                            "request contains only one param value per param key.",
                            key);
            }
        }
    }
}

/* A batch is written as a whole or not at all. Clients know the error texts. */
void work_runs_log_batch(struct call *call)
{
    const json_t *metrics = field_objects(call, call->request.body, "metrics");
    const json_t *params = field_objects(call, call->request.body, "params");
    const json_t *tags = field_objects(call, call->request.body, "tags");
    size_t all = json_array_size(metrics) + json_array_size(params) + json_array_size(tags);
    check_count(call, "metrics", LIMIT_TRACKING_METRICS, json_array_size(metrics));
    check_count(call, "params", LIMIT_TRACKING_PARAMS, json_array_size(params));
    check_count(call, "tags", LIMIT_TRACKING_TAGS, json_array_size(tags));
    check_count(call, "metrics, params, and tags", LIMIT_TRACKING_ENTITIES, all);
    check_keys_differ(call, params);
    struct run run = run_find_active(call);
    size_t i;
    const json_t *item;
    json_array_foreach (params, i, item) {
        param_put(call, field_need_run_id(call), run.key, item);
    }
    json_array_foreach (metrics, i, item) {
        put_object(call, run.key, item);
    }
    pairs_put(call, &run_tags, run.key, tags);
}

/* --- history --- */

/* A page continues after a point: its time, step, bits of the value, is_nan. */
enum { TOKEN_AT, TOKEN_STEP, TOKEN_VALUE, TOKEN_NAN, TOKEN_COUNT };

/* Takes the point of a row of QUERY_POINTS. */
static void take_token(sqlite3_stmt *row, int64_t token[TOKEN_COUNT])
{
    double value = sqlite3_column_double(row, 3);
    token[TOKEN_AT] = sqlite3_column_int64(row, 1);
    token[TOKEN_STEP] = sqlite3_column_int64(row, 2);
    memcpy(&token[TOKEN_VALUE], &value, sizeof value);
    token[TOKEN_NAN] = sqlite3_column_int64(row, 4);
}

void work_metrics_get_history(struct call *call)
{
    int64_t token[TOKEN_COUNT] = {INT64_MIN, INT64_MIN, 0, -1};
    double value;
    const char *run_id = field_need_run_id(call);
    const char *name = field_need_text(call, call->request.body, "metric_key");
    int64_t limit = field_max_results(call, LIMIT_TRACKING_HISTORY_ROWS, LIMIT_TRACKING_ROWS);
    limit = limit < LIMIT_TRACKING_HISTORY_ROWS ? limit : LIMIT_TRACKING_HISTORY_ROWS;
    field_page_token(call, token, TOKEN_COUNT);
    memcpy(&value, &token[TOKEN_VALUE], sizeof value);
    int64_t metric =
        database_int(call, 0, QUERY_METRIC, "it", run_find(call, TRACKING_SEES, run_id).key, name);
    autoquery sqlite3_stmt *row = database_query(call, QUERY_POINTS, "iiidiit", metric, token[TOKEN_AT],
                                                 token[TOKEN_STEP], value, token[TOKEN_NAN], limit + 1, name);
    text_append(call->out, "{\"metrics\":[");
    bool there;
    for (int64_t count = 0; (there = database_next(call, row)) && count < limit; count++) {
        if (count > 0 && database_is_late(call)) {
            break;
        }
        text_append(call->out, count > 0 ? "," : "");
        text_append(call->out, column_text(row, 0));
        take_token(row, token);
    }
    text_append(call->out, "]");
    if (there) {
        page_token_append(call->out, token, TOKEN_COUNT);
    }
    text_append(call->out, "}");
}
