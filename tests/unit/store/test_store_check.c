/* SPDX-License-Identifier: Apache-2.0 */
/* A database that keeps all promises between its rows is found to, and whichever is broken is named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/check.h"
#include "daemon/store/database/connection.h"
#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

#define A_HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* 1 has succeeded at its second try, 2 runs, 3 waits, 4 is an array whose task 5 has succeeded. */
static const char whole[] =
    "INSERT INTO jobs (key, id, owner, project, gpus, created_ms, state, seq, attempt, user_failures, "
    "infra_failures, started_ms, ended_ms, exit_code, failed_rank, cause, array_key, task) VALUES "
    "(1, 'one', 'a', 'p', 2, 0, 'SUCCEEDED', 4, 2, 0, 1, 0, 0, 0, -1, 'NONE', NULL, NULL),"
    "(2, 'two', 'a', 'p', 1, 0, 'RUNNING', 3, 1, 0, 0, 0, 0, -1, -1, 'NONE', NULL, NULL),"
    "(3, 'three', 'a', 'p', 1, 0, 'QUEUED', 1, 0, 0, 0, 0, 0, -1, -1, 'NONE', NULL, NULL),"
    "(4, 'four', 'a', 'p', 1, 0, 'QUEUED', 1, 0, 0, 0, 0, 0, -1, -1, 'NONE', NULL, NULL),"
    "(5, 'five', 'a', 'p', 1, 0, 'SUCCEEDED', 2, 1, 0, 0, 0, 0, 0, -1, 'NONE', 4, 0);"
    "INSERT INTO specs (job_key, spec) VALUES (1, '{\"function\":{\"blob\":\"" A_HASH "\"}}'),"
    "(2, '{}'), (3, '{}'), (4, '{}');"
    "INSERT INTO arrays VALUES (4, 10, 0, 1, 0, 1, 0, 0, 0);"
    "INSERT INTO dependencies VALUES (3, 2, 'afterok');"
    "INSERT INTO events (job_key, seq, at_ms, kind, attempt) VALUES (1, 1, 0, 'submitted', 0),"
    "(1, 2, 0, 'placed', 1), (1, 3, 0, 'requeued', 1), (1, 4, 0, 'succeeded', 2), (2, 1, 0, 'submitted', 0),"
    "(2, 2, 0, 'placed', 1), (2, 3, 0, 'running', 1), (3, 1, 0, 'submitted', 0), (4, 1, 0, 'submitted', 0),"
    "(5, 1, 0, 'placed', 1), (5, 2, 0, 'succeeded', 1);"
    "INSERT INTO attempts (epoch, job_key, number, state, cause, pool, master_port, created_ms, started_ms, "
    "ended_ms, failed_rank, failed_code) VALUES (4294967297, 1, 1, 'ENDED', 'NODE_LOST', 'p', 0, 0, 0, 0, "
    "-1, 0),"
    "(4294967298, 1, 2, 'ENDED', 'NONE', 'p', 0, 0, 0, 0, -1, 0),"
    "(4294967299, 2, 1, 'STARTED', 'NONE', 'p', 0, 0, 0, 0, -1, 0),"
    "(4294967300, 5, 1, 'ENDED', 'NONE', 'p', 0, 0, 0, 0, -1, 0);"
    "INSERT INTO members (epoch, node_rank, node, first_rank, local_ranks, devices, state) VALUES "
    "(4294967298, 0, 'n', 0, 2, '0,1', 'FLUSHED'),"
    "(4294967299, 0, 'n', 0, 1, '0', 'RUNNING');"
    "INSERT INTO node_jobs VALUES ('n', 1, 4294967298, 0), ('n', 2, 4294967299, 0);"
    "INSERT INTO ranks VALUES (4294967298, 0, 0, 0, 0, 0, 0);"
    "INSERT INTO blobs VALUES (x'" A_HASH "', 3, 0, x'616263');"
    "INSERT INTO results VALUES (4294967298, 0, 'value', 3, x'" A_HASH "', NULL),"
    "(4294967298, 1, 'value', 3, x'" A_HASH "', NULL);"
    "INSERT INTO replies VALUES (1, x'00', x'00', 1, 201, 0, '{}'), (2, x'01', x'01', 0, 200, 0, '{}');";

static void begin(void)
{
    rig_begin();
    rig_close();
    rig_meddle(whole);
}

struct seen {
    struct text broken;   /* promises, one a line */
    struct text findings; /* likewise */
    int promises, rows, blobs;
    struct check_counts counts;
};

static void looked(const char *promise, int64_t broken, void *closure)
{
    struct seen *seen = closure;
    seen->promises++;
    if (broken > 0) {
        text_printf(&seen->broken, "%s\n", promise);
    }
}

static void found(const char *finding, void *closure)
{
    struct seen *seen = closure;
    seen->rows++;
    text_printf(&seen->findings, "%s\n", finding);
}

static void counted(const struct check_counts *counts, void *closure)
{
    ((struct seen *)closure)->counts = *counts;
}

static void see_blob(const struct blob_row *row, void *closure)
{
    ((struct seen *)closure)->blobs++;
}

static void look(struct seen *seen)
{
    const struct check_visitor visitor = {
        .counted = counted, .found = found, .looked = looked, .blob = see_blob, .closure = seen};
    ck_assert_msg(check_database(rig.path, &visitor, &rig.err), "%s", rig.err.text);
}

static void seen_finish(struct seen *seen)
{
    text_finish(&seen->broken);
    text_finish(&seen->findings);
}

START_TEST(a_database_that_keeps_every_promise_has_no_findings)
{
    struct seen seen = {0};
    look(&seen);
    ck_assert_msg(seen.rows == 0, "%s", seen.findings.bytes);
    ck_assert_int_eq(seen.promises, 15);
    ck_assert_int_eq(seen.counts.jobs, 5);
    ck_assert_int_eq(seen.counts.events, 11);
    ck_assert_int_eq(seen.counts.attempts, 4);
    ck_assert_int_eq(seen.counts.blobs, 1);
    ck_assert_int_eq(seen.blobs, 1);
    seen_finish(&seen);
}
END_TEST

/* Each breaks one promise, and is found under its name in these words. */
static const struct {
    const char *sql, *promise, *finding;
} breaks[] = {
    {"DELETE FROM events WHERE job_key = 1 AND seq = 2", "histories have no gaps",
     "job one: its history has 3 events from 1 to 4, and the job says 4"},
    {"UPDATE jobs SET seq = 5 WHERE key = 1", "histories have no gaps", "and the job says 5"},
    {"DELETE FROM events WHERE job_key = 3", "histories have no gaps", "job three: its history has 0 events"},
    {"INSERT INTO events VALUES (77, 1, 0, 'submitted', 0, NULL)", "histories belong to jobs", "key 77"},
    {"UPDATE events SET kind = 'failed' WHERE job_key = 1 AND seq = 3",
     "jobs that have ended have done so once", "job one: it is SUCCEEDED, and its history has 2 ends"},
    {"UPDATE events SET kind = 'failed' WHERE job_key = 1 AND seq = 4",
     "jobs that have ended have done so once", "the last one failed"},
    {"UPDATE events SET kind = 'placed' WHERE job_key = 5 AND seq = 2",
     "jobs that have ended have done so once", "job five: it is SUCCEEDED, and its history has 0 ends"},
    {"UPDATE events SET kind = 'canceled' WHERE job_key = 2 AND seq = 3",
     "jobs that have ended have done so once", "job two: it is RUNNING, and its history has 1 ends"},
    {"UPDATE attempts SET state = 'STOPPING' WHERE epoch = 4294967298", "jobs have one live attempt at most",
     "job one: 1 attempts are not over, and it is SUCCEEDED"},
    {"DROP INDEX attempts_live; UPDATE jobs SET attempt = 2 WHERE key = 2; INSERT INTO attempts SELECT "
     "4294967301, 2, 2, state, cause, NULL, 'p', NULL, 0, 0, 0, 0, -1, 0, NULL, 'entitled', NULL, 0, 0, "
     "NULL FROM "
     "attempts WHERE job_key = 2",
     "jobs have one live attempt at most", "job two: 2 attempts are not over"},
    {"UPDATE attempts SET number = 3 WHERE epoch = 4294967298", "attempts are counted without gaps",
     "job one: 2 attempts up to number 3, and the job says 2"},
    {"UPDATE jobs SET attempt = 1 WHERE key = 1", "attempts are counted without gaps", "the job says 1"},
    {"UPDATE meta SET value = 0 WHERE name = 'incarnation'", "epochs grow",
     "job two: attempt 1 has the epoch 4294967299"},
    {"UPDATE attempts SET number = 9 WHERE epoch = 4294967297; UPDATE attempts SET number = 1 WHERE epoch = "
     "4294967298; UPDATE attempts SET number = 2 WHERE epoch = 4294967297",
     "epochs grow", "job one: attempt 2 has the epoch 4294967297"},
    {"INSERT INTO members (epoch, node_rank, node, first_rank, local_ranks, devices, state) VALUES "
     "(4294967299, 1, 'n', 1, 1, '1,0', 'RUNNING')",
     "devices are held once", "device 0 of node n is held by 2 attempts"},
    {"DELETE FROM node_jobs WHERE job_key = 2", "nodes know their jobs",
     "job two: it is not among the jobs of node n"},
    {"UPDATE node_jobs SET epoch = 4294967297 WHERE job_key = 1", "nodes know their jobs",
     "job one: it is not among the jobs of node n"},
    {"INSERT INTO node_jobs VALUES ('n', 3, 4294967299, 0)", "nodes know their jobs",
     "node n has a job without an attempt there: key 3"},
    {"DELETE FROM attempts WHERE epoch = 4294967300; INSERT INTO ranks VALUES (4294967300, 0, 0, 0, 0, 0, 0)",
     "members, ranks and results belong to attempts", "a rank of an attempt that is not there"},
    {"DELETE FROM specs WHERE job_key = 4", "jobs have specs", "job five: it has no spec"},
    {"DELETE FROM results WHERE rank = 1", "functions that succeeded have all results",
     "job one: it has 1 results of 2 ranks"},
    {"DELETE FROM results", "functions that succeeded have all results", "job one: it has 0 results"},
    {"UPDATE results SET hash = x'ff' WHERE rank = 1", "results have their bytes",
     "the result of rank 1 of epoch 4294967298 is not there: blob ff"},
    {"UPDATE specs SET spec = '{\"bundle\":{\"blob\":\"abcd\"}}' WHERE job_key = 2",
     "specs have their payloads", "job two: its spec names a blob that is not there: abcd"},
    {"UPDATE specs SET spec = '{\"environment\":{\"blob\":\"abcd\"}}' WHERE job_key = 2",
     "specs have their payloads", "not there: abcd"},
    {"UPDATE arrays SET placed = 2", "arrays count their tasks", "array four: it counts 2 tasks placed"},
    {"UPDATE arrays SET succeeded = 0", "arrays count their tasks", "0 succeeded; there are 1, 0 and 1"},
    {"UPDATE dependencies SET on_key = 50", "dependencies are between jobs", "on job key 50"},
};

START_TEST(a_promise_that_is_broken_is_named_with_the_row_that_breaks_it)
{
    struct seen seen = {0};
    rig_meddle(breaks[_i].sql);
    look(&seen);
    ck_assert_msg(seen.broken.bytes != NULL && strstr(seen.broken.bytes, breaks[_i].promise) != NULL,
                  "after \"%s\" these are broken:\n%s", breaks[_i].sql, seen.broken.bytes);
    ck_assert_msg(strstr(seen.findings.bytes, breaks[_i].finding) != NULL, "%s", seen.findings.bytes);
    seen_finish(&seen);
}
END_TEST

START_TEST(no_more_than_some_rows_are_named_one_by_one)
{
    struct seen seen = {0};
    rig_meddle("WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 300) "
               "INSERT INTO events SELECT i, 1, 0, 'submitted', 0, NULL FROM n");
    look(&seen);
    ck_assert_int_eq(seen.rows, LIMIT_CHECK_FINDINGS);
    seen_finish(&seen);
}
END_TEST

Suite *store_check_suite(void)
{
    Suite *suite = suite_create("store-check");
    TCase *cases = tcase_create("check");
    tcase_add_checked_fixture(cases, begin, rig_end);
    tcase_add_test(cases, a_database_that_keeps_every_promise_has_no_findings);
    tcase_add_loop_test(cases, a_promise_that_is_broken_is_named_with_the_row_that_breaks_it, 0,
                        sizeof breaks / sizeof breaks[0]);
    tcase_add_test(cases, no_more_than_some_rows_are_named_one_by_one);
    suite_add_tcase(suite, cases);
    return suite;
}
