/* SPDX-License-Identifier: Apache-2.0 */
/* Which files the tracking store opens, and what two handles of one file do to each other. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "daemon/mlflow/database/database.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "tests/sim/disk/disk.h"
#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

static void expect_refused(const char *text)
{
    struct err err;
    ck_assert_ptr_null(tracking_open(mlflow.path, &err));
    ck_assert_int_eq(err.code, ERR_IO);
    ck_assert_msg(strstr(err.text, text) != NULL, "%s", err.text);
}

static void close_store(void)
{
    tracking_close(mlflow.tracking);
    mlflow.tracking = NULL;
}

START_TEST(a_new_database_is_readable_by_its_owner_only)
{
    struct stat info;
    ck_assert_int_eq(stat(mlflow.path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0600);
}
END_TEST

/* They are prepared when first used, so a start does not show one that SQLite cannot read. */
START_TEST(each_statement_can_be_prepared)
{
    struct tracking_error error;
    struct call call = {.tracking = mlflow.tracking, .error = &error};
    for (int query = 0; query < QUERY_COUNT; query++) {
        database_query(&call, query, "");
        ck_assert_msg(!call.failed, "statement %d: %s", query, error.message);
    }
}
END_TEST

START_TEST(what_was_written_is_there_after_reopening)
{
    const char *run = mlflow_run("0", "first");
    mlflow_log(run, "loss", 0.25, 10, 1);
    mlflow_param(run, "rate", "0.1");
    mlflow_reopen();
    json_t *shown = mlflow_get(run);
    ck_assert_str_eq(mlflow_text(shown, "info.run_name"), "first");
    ck_assert_str_eq(mlflow_text(shown, "data.metrics.0.value"), "0.25");
    ck_assert_str_eq(mlflow_text(shown, "data.params.0.value"), "0.1");
}
END_TEST

START_TEST(what_was_written_is_there_for_a_handle_that_opens_while_the_first_is_open)
{
    const char *run = mlflow_run("0", "first");
    struct tracking *first = mlflow.tracking;
    struct err err;
    mlflow.tracking = tracking_open(mlflow.path, &err);
    ck_assert_ptr_nonnull(mlflow.tracking);
    ck_assert_str_eq(mlflow_text(mlflow_get(run), "info.run_name"), "first");
    tracking_close(first);
}
END_TEST

START_TEST(a_newer_schema_is_refused_and_the_file_left_as_it_is)
{
    close_store();
    mlflow_meddle("PRAGMA user_version = 1000");
    autofree char *before = NULL;
    autofree char *after = NULL;
    size_t size_before, size_after;
    struct err err;
    ck_assert(file_read(mlflow.path, 1 << 24, &before, &size_before, &err));
    expect_refused("schema version 1000");
    ck_assert(file_read(mlflow.path, 1 << 24, &after, &size_after, &err));
    ck_assert_uint_eq(size_before, size_after);
    ck_assert_mem_eq(before, after, size_before);
}
END_TEST

START_TEST(a_database_of_another_program_is_refused)
{
    close_store();
    mlflow_meddle("PRAGMA application_id = 7");
    expect_refused("another program");
}
END_TEST

START_TEST(a_file_that_is_no_database_is_refused)
{
    close_store();
    struct err err;
    static const char rubbish[8192] = "this is a letter, not a database";
    ck_assert(file_replace(mlflow.path, rubbish, sizeof rubbish, 0600, &err));
    expect_refused("not a database");
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_named)
{
    struct err err;
    ck_assert_ptr_null(tracking_open("/nowhere/mlflow.db", &err));
    ck_assert_msg(strstr(err.text, "/nowhere/mlflow.db") != NULL, "%s", err.text);
}
END_TEST

START_TEST(a_database_that_fails_half_way_is_an_internal_error_without_half_an_answer)
{
    const char *run = mlflow_run("0", "first");
    mlflow_meddle("DROP TABLE inputs");
    mlflow_refuse("GET runs/get", json_pack("{s:s}", "run_id", run), TRACKING_INTERNAL_ERROR, "inputs");
    mlflow_tag(run, "still", "writable");
}
END_TEST

/* --- two handles --- */

enum { ROUNDS = 200 };

/* Logs into one run through a handle of its own. */
static void *log_rounds(void *closure)
{
    struct err err;
    struct tracking *tracking = tracking_open(mlflow.path, &err);
    for (int i = 0; tracking != NULL && i < ROUNDS; i++) {
        json_t *body = json_pack("{s:s, s:s, s:f, s:i, s:i}", "run_id", (const char *)closure, "key", "loss",
                                 "value", 0.5, "timestamp", i, "step", i + ROUNDS);
        struct tracking_request request = {.body = body, .owner = "grace", .now_ms = 1};
        struct tracking_error error;
        struct text out = {0};
        bool ok = mlflow_serve(tracking, "POST runs/log-metric", &request, &out, &error);
        text_finish(&out);
        json_decref(body);
        if (!ok) {
            break;
        }
    }
    tracking_close(tracking);
    return NULL;
}

START_TEST(two_handles_write_at_once_and_nothing_is_lost)
{
    const char *run = mlflow_run("0", "shared");
    autofree char *copy = xstrdup(run);
    pthread_t other;
    ck_assert_int_eq(pthread_create(&other, NULL, log_rounds, copy), 0);
    for (int i = 0; i < ROUNDS; i++) {
        mlflow_log(run, "loss", 0.5, i, i);
    }
    pthread_join(other, NULL);
    json_t *history =
        mlflow_ask("GET metrics/get-history", json_pack("{s:s, s:s}", "run_id", run, "metric_key", "loss"));
    ck_assert_uint_eq(json_array_size(mlflow_at(history, "metrics")), 2 * ROUNDS);
    ck_assert_int_eq(json_integer_value(mlflow_at(mlflow_get(run), "data.metrics.0.step")), 2 * ROUNDS - 1);
}
END_TEST

static struct disk *disk;

static void setup_on_disk(void)
{
    disk = disk_create("tracking", true, 1);
    mlflow_setup();
}

static void teardown_on_disk(void)
{
    mlflow_teardown();
    disk_destroy(disk);
}

/* C8: what a call is answered with yes is kept through a loss of power. */
START_TEST(what_was_synced_is_there_after_a_loss_of_power)
{
    struct err err;
    disk_seed(disk, (uint64_t)_i);
    const char *run = mlflow_run("0", "first");
    mlflow_log(run, "loss", 0.25, 10, 1);
    ck_assert(tracking_sync(mlflow.tracking, &err));
    disk_restart(disk, true);
    mlflow_reopen();
    ck_assert_str_eq(mlflow_text(mlflow_get(run), "data.metrics.0.value"), "0.25");
}
END_TEST

START_TEST(a_sync_that_fails_is_told)
{
    struct err err;
    ck_assert(tracking_sync(mlflow.tracking, &err));
    mlflow_run("0", "first");
    disk_fail_after(disk, 0, SQLITE_IOERR, false);
    ck_assert(!tracking_sync(mlflow.tracking, &err));
    ck_assert_int_eq(err.code, ERR_UNKNOWN_OUTCOME);
    disk_heal(disk);
    ck_assert(tracking_sync(mlflow.tracking, &err));
}
END_TEST

static TCase *power_tests(void)
{
    TCase *tests = tcase_create("power");
    tcase_add_checked_fixture(tests, setup_on_disk, teardown_on_disk);
    tcase_add_loop_test(tests, what_was_synced_is_there_after_a_loss_of_power, 0, 20);
    tcase_add_test(tests, a_sync_that_fails_is_told);
    return tests;
}

Suite *mlflow_open_suite(void)
{
    Suite *suite = suite_create("mlflow-open");
    TCase *tests = tcase_create("open");
    tcase_add_checked_fixture(tests, mlflow_setup, mlflow_teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_new_database_is_readable_by_its_owner_only);
    tcase_add_test(tests, each_statement_can_be_prepared);
    tcase_add_test(tests, what_was_written_is_there_after_reopening);
    tcase_add_test(tests, what_was_written_is_there_for_a_handle_that_opens_while_the_first_is_open);
    tcase_add_test(tests, a_newer_schema_is_refused_and_the_file_left_as_it_is);
    tcase_add_test(tests, a_database_of_another_program_is_refused);
    tcase_add_test(tests, a_file_that_is_no_database_is_refused);
    tcase_add_test(tests, a_folder_that_is_not_there_is_named);
    tcase_add_test(tests, a_database_that_fails_half_way_is_an_internal_error_without_half_an_answer);
    tcase_add_test(tests, two_handles_write_at_once_and_nothing_is_lost);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, power_tests());
    return suite;
}
