/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the promises of checks.h one by one, and names them for people. SQLite finds damage by itself;
 * the caller checks the bytes of blobs that are files. */
#include "daemon/store/check.h"

#include <stddef.h>
#include <stdlib.h>

#include "daemon/store/query.h"
#include "proto/base/text.h"
#include "proto/limits.h"

struct checker {
    struct connection connection;
};

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
    {SQL_CHECK_SPECS, "jobs have specs"},
    {SQL_CHECK_REPLIES, "first answers belong to jobs"},
    {SQL_CHECK_RESULTS, "functions that succeeded have all results"},
    {SQL_CHECK_RESULT_BLOBS, "results have their bytes"},
    {SQL_CHECK_SPEC_BLOBS, "specs have their payloads"},
    {SQL_CHECK_ARRAYS, "arrays count their tasks"},
    {SQL_CHECK_DEPENDENCIES, "dependencies are between jobs"},
};

struct checker *checker_open(const char *path, struct err *err)
{
    struct checker *checker = xzalloc(sizeof *checker);
    if (!connection_open(&checker->connection, path, CONNECTION_CHECKER, NULL, err)) {
        checker_close(checker);
        return NULL;
    }
    checker->connection.serving = true;
    return checker;
}

void checker_close(struct checker *checker)
{
    if (checker != NULL) {
        connection_close(&checker->connection);
        free(checker);
    }
}

bool checker_count(struct checker *checker, struct check_counts *ret_counts, struct err *err)
{
    autoquery struct query query = query_begin(&checker->connection, SQL_CHECK_COUNTS);
    if (!query_step(&query, err)) {
        return false;
    }
    ret_counts->jobs = query_read_number(&query);
    ret_counts->events = query_read_number(&query);
    ret_counts->attempts = query_read_number(&query);
    ret_counts->blobs = query_read_number(&query);
    return query_read_end(&query, err);
}

static bool look_at(struct checker *checker, size_t promise, const struct check_visitor *visitor,
                    struct err *err)
{
    autoquery struct query query = query_begin(&checker->connection, promises[promise].sql);
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

bool checker_look(struct checker *checker, const struct check_visitor *visitor, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof promises / sizeof promises[0]; i++) {
        ok = look_at(checker, i, visitor, err);
    }
    return ok;
}

bool checker_blobs(struct checker *checker, void (*visit)(const struct blob_row *row, void *closure),
                   void *closure, struct err *err)
{
    autoquery struct query query = query_begin(&checker->connection, SQL_CHECK_BLOBS);
    struct blob_row blob;
    while (query_next(&query, TABLE_blobs, &blob, err)) {
        visit(&blob, closure);
    }
    return !query.failed;
}
