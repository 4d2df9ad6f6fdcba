/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the handle and the errors of MLflow, and runs each call as one transaction: a failed call changes
 * nothing. The files for experiments, runs, metrics and so on do the work. */
#include "daemon/mlflow/tracking.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/mlflow/database.h"
#include "daemon/mlflow/endpoints.h"

/* --- errors --- */

static const struct {
    const char *name;
    int http;
} codes[] = {
#define AS_ROW(name, http) [TRACKING_##name] = {#name, (http)},
    TRACKING_CODES(AS_ROW)
#undef AS_ROW
};

const char *tracking_code_name(enum tracking_code code)
{
    return codes[code].name;
}

int tracking_code_http(enum tracking_code code)
{
    return codes[code].http;
}

bool tracking_fail(struct tracking_error *error, enum tracking_code code, const char *format, ...)
{
    error->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return false;
}

void tracking_error_render(const struct tracking_error *error, struct text *out)
{
    text_printf(out, "{\"error_code\": \"%s\", \"message\": ", tracking_code_name(error->code));
    text_json_string(out, error->message, strlen(error->message));
    text_append(out, "}");
}

/* --- the handle --- */

struct tracking *tracking_open(const char *path, struct err *err)
{
    struct tracking *tracking = xzalloc(sizeof *tracking);
    if (!database_open(tracking, path, err)) {
        tracking_close(tracking);
        return NULL;
    }
    return tracking;
}

bool tracking_sync(struct tracking *tracking, struct err *err)
{
    return database_sync(tracking, err);
}

void tracking_close(struct tracking *tracking)
{
    if (tracking != NULL) {
        database_close(tracking);
        free(tracking);
    }
}

/* --- transactions --- */

#define BEGIN(tracking, kind, error) begin(tracking, QUERY_BEGIN_##kind, error)

/* If a rollback failed, its transaction is still open and is rolled back now. */
static bool begin(struct tracking *tracking, enum query query, struct tracking_error *error)
{
    return (sqlite3_get_autocommit(tracking->db) || database_run(tracking, error, QUERY_ROLLBACK, "")) &&
           database_run(tracking, error, query, "");
}

/* Commits, or rolls back after a failure. The first error is returned; SQLite may have rolled back
 * already. */
static bool end(struct tracking *tracking, bool ok, struct tracking_error *error)
{
    if (ok && database_run(tracking, error, QUERY_COMMIT, "")) {
        return true;
    }
    struct tracking_error later;
    if (!sqlite3_get_autocommit(tracking->db)) {
        database_run(tracking, &later, QUERY_ROLLBACK, "");
    }
    return false;
}

static bool serve(struct tracking *tracking, const struct tracking_request *request, tracking_endpoint *work,
                  struct text *out, struct tracking_error *error)
{
    size_t before = out->length;
    if (end(tracking, work(tracking, request, out, error), error)) {
        return true;
    }
    if (out->bytes != NULL) {
        out->length = before;
        out->bytes[before] = '\0';
    }
    return false;
}

#define AS_ENDPOINT(name, kind)                                                                              \
    bool tracking_##name(struct tracking *tracking, const struct tracking_request *request,                  \
                         struct text *out, struct tracking_error *error)                                     \
    {                                                                                                        \
        return BEGIN(tracking, kind, error) && serve(tracking, request, work_##name, out, error);            \
    }
ENDPOINTS(AS_ENDPOINT)

bool tracking_job_begin(struct tracking *tracking, const struct tracking_job *job,
                        struct tracking_error *error)
{
    return BEGIN(tracking, WRITE, error) && end(tracking, work_job_begin(tracking, job, error), error);
}

bool tracking_job_end(struct tracking *tracking, const char *run_id, enum tracking_status status,
                      int64_t end_ms, struct tracking_error *error)
{
    return BEGIN(tracking, WRITE, error) &&
           end(tracking, work_job_end(tracking, run_id, status, end_ms, error), error);
}

bool tracking_jobs_running(struct tracking *tracking, bool (*visit)(const char *job_id, void *closure),
                           void *closure, struct tracking_error *error)
{
    return BEGIN(tracking, READ, error) &&
           end(tracking, work_jobs_running(tracking, visit, closure, error), error);
}

bool tracking_run_summary(struct tracking *tracking, const char *run_id, struct text *out, bool *ret_there,
                          int64_t *ret_experiment, struct tracking_error *error)
{
    return BEGIN(tracking, READ, error) &&
           end(tracking, work_run_summary(tracking, run_id, out, ret_there, ret_experiment, error), error);
}

bool tracking_job_copied(struct tracking *tracking, const char *run_id, int64_t stream, int64_t *ret_bytes,
                         struct tracking_error *error)
{
    return BEGIN(tracking, READ, error) &&
           end(tracking, work_job_copied(tracking, run_id, stream, ret_bytes, error), error);
}

bool tracking_job_points(struct tracking *tracking, const struct tracking_listing *listing, int64_t *after,
                         bool *ret_more, struct tracking_error *error)
{
    return BEGIN(tracking, READ, error) &&
           end(tracking, work_job_points(tracking, listing, after, ret_more, error), error);
}

bool tracking_job_copy(struct tracking *tracking, const struct tracking_copy *copy,
                       struct tracking_error *error)
{
    return BEGIN(tracking, WRITE, error) && end(tracking, work_job_copy(tracking, copy, error), error);
}

bool tracking_job_log(struct tracking *tracking, const char *run_id, const struct tracking_point *points,
                      size_t point_count, struct tracking_error *error)
{
    return BEGIN(tracking, WRITE, error) &&
           end(tracking, work_job_log(tracking, run_id, points, point_count, error), error);
}
