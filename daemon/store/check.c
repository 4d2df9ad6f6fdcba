/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the promises of checks.h one by one, and names them for people. SQLite finds damage by itself;
 * the caller checks the bytes of blobs that are files. */
#include "daemon/store/check.h"

#include <stddef.h>

#include "daemon/store/query.h"
#include "proto/limits_controller.h"

static const struct {
    enum sql sql;
    const char *promise;
} promises[] = {
    {SQL_CHECK_EVENTS, "histories have no gaps"},
    {SQL_CHECK_EVENTS_OF_JOBS, "histories belong to jobs"},
    {SQL_CHECK_ENDS, "jobs that have ended have done so once"},
    {SQL_CHECK_LIVE_ATTEMPTS, "jobs have one live attempt at most"},
    {SQL_CHECK_ATTEMPT_NUMBERS, "attempts are counted without gaps"},
    {SQL_CHECK_ATTEMPT_IDS, "epochs grow"},
    {SQL_CHECK_DEVICES, "devices are held once"},
    {SQL_CHECK_PARTS, "members, ranks and results belong to attempts"},
    {SQL_CHECK_NODE_JOBS, "nodes know their jobs"},
    {SQL_CHECK_SPECS, "jobs have specs"},
    {SQL_CHECK_RESULTS, "functions that succeeded have all results"},
    {SQL_CHECK_RESULT_BLOBS, "results have their bytes"},
    {SQL_CHECK_SPEC_BLOBS, "specs have their payloads"},
    {SQL_CHECK_ARRAYS, "arrays count their tasks"},
    {SQL_CHECK_DEPENDENCIES, "dependencies are between jobs"},
};

static bool count(struct connection *connection, const struct check_visitor *visitor, struct err *err)
{
    autoquery struct query query = query_begin(connection, SQL_CHECK_COUNTS);
    if (!query_step(&query, err)) {
        return false;
    }
    struct check_counts counts;
    counts.jobs = query_read_number(&query);
    counts.events = query_read_number(&query);
    counts.attempts = query_read_number(&query);
    counts.blobs = query_read_number(&query);
    if (!query_read_end(&query, err)) {
        return false;
    }
    visitor->counted(&counts, visitor->closure);
    return true;
}

static bool look_at(struct connection *connection, size_t promise, const struct check_visitor *visitor,
                    struct err *err)
{
    autoquery struct query query = query_begin(connection, promises[promise].sql);
    int64_t broken = 0;
    while (query_step(&query, err)) {
        if (broken++ < LIMIT_CHECK_FINDINGS) {
            const char *finding = query_read_text(&query);
            visitor->found(finding != NULL ? finding : "a row that cannot be named", visitor->closure);
        }
    }
    if (!query.failed) {
        visitor->looked(promises[promise].promise, broken, visitor->closure);
    }
    return !query.failed;
}

static bool visit_blobs(struct connection *connection, const struct check_visitor *visitor, struct err *err)
{
    autoquery struct query query = query_begin(connection, SQL_CHECK_BLOBS);
    struct blob_row blob;
    while (query_next(&query, TABLE_blobs, &blob, err)) {
        visitor->blob(&blob, visitor->closure);
    }
    return !query.failed;
}

bool check_database(const char *path, const struct check_visitor *visitor, struct err *err)
{
    struct connection connection;
    bool ok = connection_open(&connection, path, CONNECTION_CHECKER, NULL, err);
    connection.serving = true;
    ok = ok && count(&connection, visitor, err);
    for (size_t i = 0; ok && i < sizeof promises / sizeof promises[0]; i++) {
        ok = look_at(&connection, i, visitor, err);
    }
    ok = ok && visit_blobs(&connection, visitor, err);
    connection_close(&connection);
    return ok;
}
