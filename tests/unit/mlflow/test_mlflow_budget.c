/* SPDX-License-Identifier: Apache-2.0 */
/* What a search may cost: its time, the bytes of a row, and the log of changes that it keeps from ending. */
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/mlflow/database/database.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_tracking.h"
#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

/* Collects a member of all pages; *ret_pages is how many there were. */
static size_t count_rows(const char *call, json_t *body, const char *member, int *ret_pages)
{
    autojson json_t *asked = body;
    size_t seen = 0;
    const char *token = "";
    for (*ret_pages = 0; token != NULL; ++*ret_pages) {
        json_object_set_new(asked, "page_token", json_string(token));
        json_t *answer = mlflow_ask(call, json_deep_copy(asked));
        seen += json_array_size(mlflow_at(answer, member));
        token = json_string_value(json_object_get(answer, "next_page_token"));
    }
    return seen;
}

START_TEST(a_search_that_is_late_ends_its_page_and_leads_to_the_rest)
{
    int pages;
    const char *run = mlflow_run("0", "one");
    mlflow_run("0", "two");
    mlflow_run("0", "three");
    for (int i = 0; i < 4; i++) {
        mlflow_log(run, "loss", i, 1000 + i, i);
    }
    mlflow.tracking->search_ms = 0;
    ck_assert_uint_eq(
        count_rows("POST runs/search", json_pack("{s:[s]}", "experiment_ids", "0"), "runs", &pages), 3);
    ck_assert_int_eq(pages, 3);
    json_t *history = json_pack("{s:s, s:s}", "run_id", run, "metric_key", "loss");
    ck_assert_uint_eq(count_rows("GET metrics/get-history", history, "metrics", &pages), 4);
    ck_assert_int_eq(pages, 4);
}
END_TEST

START_TEST(a_search_whose_time_is_over_is_ended_and_says_how_to_ask_for_less)
{
    static const char fill[] =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
        "INSERT INTO runs SELECT i, 'r' || i, 0, 'name', '', 'RUNNING', i, NULL, 0, '', '', '' FROM n";
    mlflow_meddle(fill);
    json_t *search = json_pack("{s:[s], s:s, s:i}", "experiment_ids", "0", "filter",
                               "attributes.run_name LIKE '%x%'", "max_results", 5);
    mlflow.tracking->search_ms = -1000;
    mlflow_refuse("POST runs/search", json_incref(search), TRACKING_INVALID_PARAMETER_VALUE,
                  "Narrow it down with filter, or ask for fewer rows with max_results and for the rest with "
                  "page_token.");
    mlflow.tracking->search_ms = LIMIT_TRACKING_SEARCH_MS;
    ck_assert_uint_eq(json_array_size(json_object_get(mlflow_ask("POST runs/search", search), "runs")), 0);
}
END_TEST

START_TEST(a_row_that_is_too_large_is_refused)
{
    const char *run = mlflow_run("0", "large");
    mlflow_tag(run, "text", "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789");
    sqlite3_limit(mlflow.tracking->db, SQLITE_LIMIT_LENGTH, 200);
    mlflow_refuse("POST runs/search", json_pack("{s:[s]}", "experiment_ids", "0"),
                  TRACKING_INVALID_PARAMETER_VALUE, "A row of the answer is larger than 64 MiB");
}
END_TEST

static int64_t log_bytes(void)
{
    struct stat status;
    autofree char *path = xprintf("%s-wal", mlflow.path);
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_size;
}

/* Writes more than the log may have, while somebody reads what was there before. */
static void grow_log(const char *run)
{
    for (int i = 0; log_bytes() <= LIMIT_TRACKING_LOG_BYTES; i++) {
        json_t *metrics = json_array();
        for (int j = 0; j < 1000; j++) {
            json_array_append_new(metrics, json_pack("{s:s, s:i, s:i, s:i}", "key", "m", "value", j,
                                                     "timestamp", (i * 7919) % 1000, "step", i * 1000 + j));
        }
        mlflow_ask("POST runs/log-batch", json_pack("{s:s, s:o}", "run_id", run, "metrics", metrics));
    }
}

START_TEST(the_log_that_searches_have_kept_begins_anew_between_two_of_them)
{
    sqlite3 *reader;
    const char *run = mlflow_run("0", "long");
    ck_assert_int_eq(sqlite3_open(mlflow.path, &reader), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(reader, "BEGIN; SELECT * FROM runs", NULL, NULL, NULL), SQLITE_OK);
    grow_log(run);
    ck_assert_int_eq(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    tracking_shorten_log(mlflow.tracking);
    /* the next search begins before the next change */
    ck_assert_int_eq(sqlite3_exec(reader, "BEGIN; SELECT * FROM runs", NULL, NULL, NULL), SQLITE_OK);
    mlflow_log(run, "m", 1, 1, 1);
    ck_assert_int_le(log_bytes(), LIMIT_TRACKING_LOG_BYTES);
    ck_assert_int_eq(sqlite3_close(reader), SQLITE_OK);
}
END_TEST

Suite *mlflow_budget_suite(void)
{
    Suite *suite = suite_create("mlflow-budget");
    TCase *tests = tcase_create("budget");
    tcase_add_checked_fixture(tests, mlflow_setup, mlflow_teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_search_that_is_late_ends_its_page_and_leads_to_the_rest);
    tcase_add_test(tests, a_search_whose_time_is_over_is_ended_and_says_how_to_ask_for_less);
    tcase_add_test(tests, a_row_that_is_too_large_is_refused);
    tcase_add_test(tests, the_log_that_searches_have_kept_begins_anew_between_two_of_them);
    suite_add_tcase(suite, tests);
    return suite;
}
