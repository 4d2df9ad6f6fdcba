/* SPDX-License-Identifier: Apache-2.0 */
/* Logs a job's own metrics into its run, and remembers how far they have come. Points and position change in
 * one transaction, so that no point is lost or logged twice, whenever the program ends. Samples of the job's
 * nodes come one by one: the table of points takes each of them once. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/mlflow/call/names.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/runs/metrics.h"
#include "daemon/mlflow/runs/runs.h"
#include "daemon/mlflow/tracking.h"
#include "proto/base/cleanup.h"
#include "proto/limits_tracking.h"

#define SYSTEM "system/" /* measurements of a node, whose name includes the node */

/* --- logging --- */

bool tracking_job_copied(struct tracking *tracking, const char *run_id, int64_t stream, int64_t *ret_bytes,
                         struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .error = error};
    database_begin(&call, false);
    *ret_bytes =
        database_int(&call, 0, QUERY_COPIED, "ii", run_find(&call, TRACKING_CHANGES, run_id).key, stream);
    return database_end(&call);
}

/* The caller frees it. */
static char *name_in_run(const struct tracking_point *point)
{
    char suffix[32] = "";
    if (point->rank > 0 && strncmp(point->name, SYSTEM, sizeof SYSTEM - 1) != 0) {
        snprintf(suffix, sizeof suffix, "/rank_%lld", (long long)point->rank);
    }
    return name_fit(point->name, suffix);
}

typedef void put_metric(struct call *call, int64_t run, const struct metric_point *point);

/* A point without a time that MLflow allows is left out. */
static void put_points(struct call *call, int64_t run, const struct tracking_point *points, size_t count,
                       put_metric *put)
{
    for (size_t i = 0; i < count; i++) {
        autofree char *name = name_in_run(&points[i]);
        const struct metric_point point = {name, points[i].value, points[i].step, points[i].at_ms};
        if (point.at_ms >= 0) {
            put(call, run, &point);
        }
    }
}

bool tracking_job_copy(struct tracking *tracking, const struct tracking_copy *copy,
                       struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .error = error};
    database_begin(&call, true);
    struct run run = run_find(&call, TRACKING_CHANGES, copy->run_id);
    put_points(&call, run.key, copy->points, copy->point_count, metric_copy);
    database_run(&call, QUERY_COPIED_PUT, "iii", run.key, copy->stream, copy->bytes);
    return database_end(&call);
}

bool tracking_job_log(struct tracking *tracking, const char *run_id, const struct tracking_point *points,
                      size_t point_count, struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .error = error};
    database_begin(&call, true);
    struct run run = run_find(&call, TRACKING_CHANGES, run_id);
    put_points(&call, run.key, points, point_count, metric_put);
    return database_end(&call);
}

/* --- in order of logging --- */

/* Visits the point of a row of QUERY_POINTS_LOGGED; false: the listing does not ask for it. */
static bool visit(const struct tracking_listing *listing, sqlite3_stmt *row)
{
    const struct tracking_logged point = {
        .name = column_text(row, 0),
        .value = sqlite3_column_int(row, 2) != 0 ? (double)NAN : sqlite3_column_double(row, 1),
        .at_ms = sqlite3_column_int64(row, 3),
        .step = sqlite3_column_int64(row, 4),
        .number = sqlite3_column_int64(row, 5)};
    if (listing->name != NULL && strcmp(listing->name, point.name) != 0) {
        return false;
    }
    listing->visit(&point, listing->closure);
    return true;
}

static bool visit_points(struct call *call, const struct tracking_listing *listing, int64_t *after)
{
    struct run run = run_find(call, TRACKING_CHANGES, listing->run_id);
    int64_t visited = 0, looked = 0;
    bool there;
    autoquery sqlite3_stmt *row = database_query(call, QUERY_POINTS_LOGGED, "iii", run.key, *after,
                                                 (int64_t)LIMIT_TRACKING_SCAN_ROWS + 1);
    while ((there = database_next(call, row)) && visited < listing->limit &&
           looked < LIMIT_TRACKING_SCAN_ROWS) {
        visited += visit(listing, row) ? 1 : 0;
        *after = sqlite3_column_int64(row, 5);
        looked++;
    }
    return there;
}

bool tracking_job_points(struct tracking *tracking, const struct tracking_listing *listing, int64_t *after,
                         bool *ret_more, struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .error = error};
    database_begin(&call, false);
    *ret_more = visit_points(&call, listing, after);
    return database_end(&call);
}
