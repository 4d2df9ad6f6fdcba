/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the walk over the promises of checks.h, and their names for people. It promises that each of them is
 * looked at. The bytes of blobs that are files, and the damage that SQLite itself finds, are left to the
 * caller. */
#include "daemon/store/check.h"

#include <stddef.h>
#include <stdlib.h>

#include "daemon/store/columns.h"
#include "daemon/store/connection.h"
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
    {SQL_CHECK_EPOCHS, "epochs grow"},
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
    autoreset sqlite3_stmt *statement = checker->connection.statements[SQL_CHECK_COUNTS];
    bool row;
    if (!connection_step(&checker->connection, statement, &row, err)) {
        return false;
    }
    int64_t *const counts[] = {&ret_counts->jobs, &ret_counts->events, &ret_counts->attempts,
                               &ret_counts->blobs};
    for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++) {
        *counts[i] = sqlite3_column_int64(statement, i);
    }
    return true;
}

static bool look_at(struct checker *checker, size_t promise, const struct check_visitor *visitor,
                    struct err *err)
{
    autoreset sqlite3_stmt *statement = checker->connection.statements[promises[promise].sql];
    int64_t broken = 0;
    bool ok, row;
    while ((ok = connection_step(&checker->connection, statement, &row, err)) && row) {
        if (broken++ < LIMIT_CHECK_FINDINGS) {
            const char *finding = connection_text(statement, 0);
            visitor->found(finding != NULL ? finding : "a row that cannot be named", visitor->closure);
        }
    }
    if (ok) {
        visitor->looked(promises[promise].promise, broken, visitor->closure);
    }
    return ok;
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
    autoreset sqlite3_stmt *statement = checker->connection.statements[SQL_CHECK_BLOBS];
    bool ok, row;
    while ((ok = connection_step(&checker->connection, statement, &row, err)) && row) {
        struct blob_row blob;
        if (!columns_blob(statement, &blob, err)) {
            return false;
        }
        visit(&blob, closure);
    }
    return ok;
}
