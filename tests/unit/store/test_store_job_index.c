/* SPDX-License-Identifier: Apache-2.0 */
/* The index of ids: jobs are found by their ids and by the start of them, at a bounded cost, while runs are
 * filled and merged, and nothing is left of removed jobs. Keys have gaps, so that few jobs fill runs. */
#include <stdlib.h>
#include <string.h>

#include "daemon/store/database/schema.h"
#include "daemon/store/handle.h"
#include "daemon/store/reader/reader.h"
#include "proto/spec/tasks.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

enum { GAP = 700, JOBS = 6500, BATCH = 50 };

static const char *id_of(int64_t key)
{
    static char id[ID_LENGTH + 1];
    task_id("abcdefghijklmnop", key % LIMIT_ARRAY_TASKS, id);
    return id;
}

/* The n-th jobs from `first` to `last`. */
static void fill(int64_t first, int64_t last)
{
    for (int64_t n = first; n <= last;) {
        struct change jobs[BATCH];
        char ids[BATCH][ID_LENGTH + 1];
        size_t count = 0;
        for (; count < BATCH && n <= last; count++, n++) {
            jobs[count] = job_insert(1);
            jobs[count].job.birth.key = jobs[count].job.life.key = n * GAP;
            memcpy(ids[count], id_of(n), sizeof ids[count]);
            jobs[count].job.birth.id = ids[count];
        }
        rig_write(jobs, count);
    }
}

static int64_t key_of(const char *id)
{
    struct job_record job;
    autorows struct rows rows = reader_job(rig.reader, id, &rig.err);
    bool found = rows_job(&rows, &job);
    ck_assert(!rows.failed);
    ck_assert(!found || strcmp(job.birth.id, id) == 0);
    return found ? job.birth.key : 0;
}

static void find_all(int64_t last)
{
    for (int64_t n = 1; n <= last; n++) {
        ck_assert_msg(key_of(id_of(n)) == n * GAP, "job %lld of %lld is not found", (long long)n,
                      (long long)last);
    }
}

static int64_t count(const char *sql)
{
    sqlite3_stmt *statement = NULL;
    ck_assert_int_eq(sqlite3_prepare_v2(rig.reader->connection.db, sql, -1, &statement, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* Steps of SQLite's machine that a search takes. */
static int64_t steps_of(const char *id)
{
    sqlite3_stmt *statement = rig.reader->connection.statements[SQL_JOB];
    sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1);
    key_of(id);
    return sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1);
}

START_TEST(each_job_is_found_while_runs_are_filled_and_merged)
{
    for (int64_t last = 250; last <= JOBS; last += 250) {
        fill(last - 249, last);
        if (last % 1000 == 0) {
            rig_reopen();
        }
        if (last % 500 == 0) {
            find_all(last);
        }
    }
    ck_assert_int_gt(count("SELECT count(*) FROM job_ids WHERE run >> 40 = 1"), 1000);
    ck_assert_int_gt(count("SELECT value FROM meta WHERE name = 'indexed'"), 130);
}
END_TEST

START_TEST(an_unknown_id_costs_no_more_than_a_few_searches_a_run)
{
    fill(1, JOBS);
    int64_t runs = count("SELECT count(DISTINCT run) FROM job_ids");
    int64_t parts =
        count("SELECT (max(key) >> 10) - 32 * (SELECT value FROM meta WHERE name = 'indexed') FROM jobs");
    ck_assert_int_lt(runs, 80);
    ck_assert_int_lt(parts, 64);
    ck_assert_int_lt(steps_of("zzzzzzzzzzzzzzzz"), 30 * (runs + parts) + 100);
    ck_assert_int_lt(steps_of(id_of(1)), 30 * (runs + parts) + 200);
}
END_TEST

START_TEST(jobs_are_listed_by_a_long_start_of_their_ids)
{
    fill(1, JOBS);
    for (int64_t n = 1; n <= JOBS; n += 97) {
        char prefix[LIMIT_LONG_PREFIX + 2] = "";
        memcpy(prefix, id_of(n), LIMIT_LONG_PREFIX + 1);
        const struct job_filter filter = {.id_prefix = prefix, .limit = 10};
        autorows struct rows rows = reader_jobs(rig.reader, &filter, &rig.err);
        struct job_record job;
        bool found = false;
        for (int64_t before = INT64_MAX; rows_job(&rows, &job); before = job.birth.key) {
            ck_assert_int_lt(job.birth.key, before);
            ck_assert_int_eq(strncmp(job.birth.id, prefix, strlen(prefix)), 0);
            found = found || job.birth.key == n * GAP;
        }
        ck_assert(!rows.failed && found);
    }
}
END_TEST

START_TEST(submissions_pay_for_the_index_row_by_row)
{
    fill(1, JOBS);
    int64_t before = count("SELECT count(*) FROM job_ids"), credit = rig.store->job_index.credit, paid = 0;
    rig_write_one(node_put("n")); /* nothing is submitted: nothing moves */
    ck_assert_int_eq(count("SELECT count(*) FROM job_ids"), before);
    for (int64_t n = JOBS + 1; n <= JOBS + 200; n++) {
        fill(n, n);
        int64_t now = count("SELECT count(*) FROM job_ids"), left = rig.store->job_index.credit;
        ck_assert_int_le(left, 0);
        ck_assert_int_le(now - before, credit + JOB_INDEX_PACE - left);
        paid += now - before;
        before = now;
        credit = left;
    }
    ck_assert_int_gt(paid, 100);
}
END_TEST

/* Steps of SQLite's machine in the writer since the last call. */
static int64_t steps_of_writer(enum sql sql)
{
    return sqlite3_stmt_status(rig.store->connection.statements[sql], SQLITE_STMTSTATUS_VM_STEP, 1);
}

START_TEST(the_removal_of_an_id_does_not_read_its_run)
{
    fill(1, JOBS);
    ck_assert_int_gt(count("SELECT count(*) FROM job_ids WHERE run = 1 << 40"), 1000);
    rig_write_one((struct change){.kind = CHANGE_JOB_DELETE, .job.life.key = GAP});
    ck_assert_int_gt(steps_of_writer(SQL_DELETE_JOB_ID), 10);
    rig_write_one((struct change){.kind = CHANGE_JOB_DELETE, .job.life.key = 500 * GAP});
    ck_assert_int_lt(steps_of_writer(SQL_DELETE_JOB_ID), 300);
    rig_write_one((struct change){.kind = CHANGE_REMOVAL_PIECE, .removal.job_key = 500 * GAP});
    ck_assert_int_lt(steps_of_writer(SQL_DELETE_TASK_IDS), 300);
}
END_TEST

START_TEST(no_id_is_left_of_a_job_that_is_removed)
{
    fill(1, JOBS);
    for (int64_t n = 1; n <= JOBS; n++) {
        char id[ID_LENGTH + 1];
        memcpy(id, id_of(n), sizeof id);
        rig_write_one((struct change){.kind = CHANGE_JOB_DELETE, .job.life.key = n * GAP});
        ck_assert_int_eq(key_of(id), 0);
    }
    ck_assert_int_eq(count("SELECT count(*) FROM job_ids"), 0);
}
END_TEST

START_TEST(no_id_is_left_of_the_tasks_of_an_array_that_is_removed)
{
    struct change array = job_insert(1);
    rig_write((struct change[]){array, {.kind = CHANGE_ARRAY_PUT, .array = {.whole = 1, .tasks = 300}}}, 2);
    for (int64_t i = 0; i < 300; i++) {
        struct change task = job_insert(2 + i);
        task.job.birth.key = task.job.life.key = 1000 + i * GAP;
        task.job.birth.array_key = 1;
        task.job.birth.task = i;
        rig_write_one(task);
    }
    ck_assert_int_gt(count("SELECT count(*) FROM job_ids"), 100);
    rig_write_one((struct change){.kind = CHANGE_JOB_DELETE, .job.life.key = 1});
    for (int i = 0; i < 3; i++) {
        rig_write_one((struct change){.kind = CHANGE_REMOVAL_PIECE, .removal.job_key = 1});
    }
    ck_assert_int_eq(count("SELECT count(*) FROM jobs"), 0);
    ck_assert_int_eq(count("SELECT count(*) FROM job_ids"), 0);
}
END_TEST

START_TEST(a_database_of_the_eighth_version_gets_the_index_with_the_migration)
{
    fill(1, JOBS);
    int64_t before = count("SELECT value FROM meta WHERE name = 'indexed'");
    rig_close();
    rig_meddle(
        "DROP TABLE schedules; DROP TABLE schedule_uses;"
        "DROP TABLE node_jobs; DROP TABLE audit; DROP TABLE secrets; ALTER TABLE tokens DROP COLUMN used_ms;"
        "ALTER TABLE tokens DROP COLUMN project; ALTER TABLE tokens DROP COLUMN subject;"
        "ALTER TABLE tokens DROP COLUMN groups;"
        "ALTER TABLE nodes DROP COLUMN millicpus; ALTER TABLE nodes DROP COLUMN memory_bytes;"
        "ALTER TABLE members DROP COLUMN millicpus; ALTER TABLE members DROP COLUMN memory_bytes;"
        "ALTER TABLE members DROP COLUMN isolated; ALTER TABLE jobs DROP COLUMN program;"
        "ALTER TABLE jobs DROP COLUMN kept_until_ms;"
        "ALTER TABLE jobs DROP COLUMN labels; ALTER TABLE jobs DROP COLUMN retry_of;"
        "DROP TABLE webhooks; DROP TABLE deliveries; ALTER TABLE jobs DROP COLUMN idle_since_ms;"
        "DROP TABLE hours; ALTER TABLE members DROP COLUMN use;"
        "DROP TABLE job_ids; DROP TABLE uploads; DROP INDEX tokens_created; ALTER TABLE nodes DROP "
        "COLUMN heard_ms; DELETE FROM meta WHERE "
        "name = 'indexed'; PRAGMA user_version = 8");
    rig_reopen();
    ck_assert_int_ge(count("SELECT value FROM meta WHERE name = 'indexed'"), before);
    ck_assert_int_lt(count("SELECT count(DISTINCT run) FROM job_ids"), 64);
    ck_assert_int_gt(count("SELECT count(*) FROM job_ids WHERE run >> 40 = 1"), 1000);
    find_all(JOBS);
    fill(JOBS + 1, JOBS + 500);
    find_all(JOBS + 500);
}
END_TEST

Suite *store_job_index_suite(void)
{
    Suite *suite = suite_create("store-job-index");
    TCase *cases = tcase_create("job-index");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, each_job_is_found_while_runs_are_filled_and_merged);
    tcase_add_test(cases, an_unknown_id_costs_no_more_than_a_few_searches_a_run);
    tcase_add_test(cases, jobs_are_listed_by_a_long_start_of_their_ids);
    tcase_add_test(cases, submissions_pay_for_the_index_row_by_row);
    tcase_add_test(cases, the_removal_of_an_id_does_not_read_its_run);
    tcase_add_test(cases, no_id_is_left_of_a_job_that_is_removed);
    tcase_add_test(cases, no_id_is_left_of_the_tasks_of_an_array_that_is_removed);
    tcase_add_test(cases, a_database_of_the_eighth_version_gets_the_index_with_the_migration);
    suite_add_tcase(suite, cases);
    return suite;
}
