/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what becomes of a job's own metrics in its run: their names there, and how far they have come. Points
 * and place change in one transaction, so that no point is lost or logged twice, whenever the program ends.
 * Samples of its nodes come one by one: the table of points takes each of them once. */
#include <stdio.h>
#include <string.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"
#include "daemon/mlflow/metrics.h"
#include "daemon/mlflow/names.h"
#include "daemon/mlflow/runs.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

#define SYSTEM "system/" /* measurements of a node, whose name includes the node */

bool work_job_copied(struct tracking *tracking, const char *run_id, int64_t stream, int64_t *ret_bytes,
                     struct tracking_error *error)
{
    struct run run;
    bool there;
    if (!run_find(tracking, run_id, &run, NULL, error)) {
        return false;
    }
    autoquery sqlite3_stmt *row = database_query(tracking, QUERY_COPIED, "ii", run.key, stream);
    if (!database_step(tracking, row, &there, error)) {
        return false;
    }
    *ret_bytes = there ? sqlite3_column_int64(row, 0) : 0;
    return true;
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

typedef bool put_metric(struct tracking *tracking, int64_t run, const json_t *metric,
                        struct tracking_error *error);

static bool put_point(struct tracking *tracking, int64_t run, const struct tracking_point *point,
                      put_metric *put, struct tracking_error *error)
{
    autofree char *name = name_in_run(point);
    autojson json_t *metric =
        json_pack("{s:s, s:O, s:I, s:I}", "key", name, "value", point->value, "timestamp",
                  (json_int_t)point->at_ms, "step", (json_int_t)point->step);
    return put(tracking, run, metric, error) || error->code == TRACKING_INVALID_PARAMETER_VALUE;
}

bool work_job_copy(struct tracking *tracking, const struct tracking_copy *copy, struct tracking_error *error)
{
    struct run run;
    if (!run_find(tracking, copy->run_id, &run, NULL, error)) {
        return false;
    }
    for (size_t i = 0; i < copy->point_count; i++) {
        if (!put_point(tracking, run.key, &copy->points[i], metric_copy, error)) {
            return false;
        }
    }
    return database_run(tracking, error, QUERY_COPIED_PUT, "iii", run.key, copy->stream, copy->bytes);
}

bool work_job_log(struct tracking *tracking, const char *run_id, const struct tracking_point *points,
                  size_t point_count, struct tracking_error *error)
{
    struct run run;
    bool ok = run_find(tracking, run_id, &run, NULL, error);
    for (size_t i = 0; i < point_count && ok; i++) {
        ok = put_point(tracking, run.key, &points[i], metric_put, error);
    }
    return ok;
}
