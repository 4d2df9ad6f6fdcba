/* SPDX-License-Identifier: Apache-2.0 */
/* Searching runs: order, pages, views, experiments. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

/* The names of the runs that are found, in their order. */
static const char *found(json_t *body)
{
    json_t *runs = mlflow_at(mlflow_ask("POST runs/search", body), "runs");
    static char names[256];
    names[0] = '\0';
    for (size_t i = 0; i < json_array_size(runs); i++) {
        strcat(names, i > 0 ? " " : "");
        strcat(names, mlflow_text(json_array_get(runs, i), "info.run_name"));
    }
    return names;
}

static const char *ordered(const char *term)
{
    return found(json_pack("{s:[s], s:[s]}", "experiment_ids", "0", "order_by", term));
}

START_TEST(the_newest_run_comes_first_by_itself)
{
    mlflow_run("0", "a");
    mlflow_run("0", "b");
    mlflow_run("0", "c");
    ck_assert_str_eq(found(json_pack("{s:[s]}", "experiment_ids", "0")), "c b a");
}
END_TEST

START_TEST(what_has_no_value_comes_last_in_both_directions_and_nan_before_it)
{
    mlflow_run("0", "none");
    const char *low = mlflow_run("0", "low");
    const char *high = mlflow_run("0", "high");
    const char *nan = mlflow_run("0", "nan");
    mlflow_log(low, "a b", 1, 1, 1);
    mlflow_log(high, "a b", 2, 1, 1);
    mlflow_ask("POST runs/log-metric", json_pack("{s:s, s:s, s:s, s:i}", "run_id", nan, "key", "a b", "value",
                                                 "NaN", "timestamp", 1));
    ck_assert_str_eq(ordered("metrics.`a b`"), "low high nan none");
    ck_assert_str_eq(ordered("metrics.`a b` ASC"), "low high nan none");
    ck_assert_str_eq(ordered("metrics.\"a b\" desc"), "high low nan none");
    mlflow_param(low, "p", "x");
    mlflow_param(high, "p", "y");
    ck_assert_str_eq(ordered("params.p DESC"), "high low nan none");
    mlflow_tag(nan, "t", "x");
    ck_assert_str_eq(ordered("tags.t"), "nan high low none");
    ck_assert_str_eq(ordered("attributes.start_time ASC"), "none low high nan");
    ck_assert_str_eq(ordered("run_name DESC"), "none nan low high");
}
END_TEST

START_TEST(an_order_may_have_several_terms)
{
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"a", "b", "c", "d"};
        const char *run = mlflow_run("0", names[i]);
        mlflow_param(run, "group", i < 2 ? "1" : "2");
        mlflow_log(run, "loss", i % 2, 1, 1);
    }
    ck_assert_str_eq(found(json_pack("{s:[s], s:[s, s], s:s}", "experiment_ids", "0", "order_by",
                                     "params.group DESC", "metrics.loss ASC", "filter", "metrics.loss >= 0")),
                     "c d a b");
}
END_TEST

START_TEST(only_the_experiments_and_the_view_that_are_asked_for_are_searched)
{
    const char *other = mlflow_text(
        mlflow_ask("POST experiments/create", json_pack("{s:s}", "name", "other")), "experiment_id");
    mlflow_run("0", "a");
    mlflow_run(other, "b");
    const char *gone = mlflow_run("0", "c");
    mlflow_ask("POST runs/delete", json_pack("{s:s}", "run_id", gone));
    ck_assert_str_eq(found(json_pack("{s:[s]}", "experiment_ids", other)), "b");
    ck_assert_str_eq(found(json_pack("{s:[s, s, s]}", "experiment_ids", "0", other, "x")), "b a");
    ck_assert_str_eq(found(json_pack("{s:[]}", "experiment_ids")), "");
    ck_assert_str_eq(found(json_object()), "");
    ck_assert_str_eq(found(json_pack("{s:[s], s:s}", "experiment_ids", "0", "run_view_type", "DELETED_ONLY")),
                     "c");
    ck_assert_str_eq(found(json_pack("{s:[s], s:s}", "experiment_ids", "0", "run_view_type", "ALL")), "c a");
}
END_TEST

static json_t *page(int rows, const char *token)
{
    return mlflow_ask("POST runs/search", json_pack("{s:[s], s:i, s:s}", "experiment_ids", "0", "max_results",
                                                    rows, "page_token", token));
}

START_TEST(pages_are_the_whole_and_runs_made_meanwhile_change_none)
{
    enum { RUNS = 11 };
    for (int i = 0; i < RUNS; i++) {
        autofree char *name = xprintf("run %d", i);
        mlflow_run("0", name);
    }
    int seen = 0;
    const char *token = "";
    while (token != NULL) {
        json_t *answer = page(4, token);
        json_t *runs = mlflow_at(answer, "runs");
        for (size_t i = 0; i < json_array_size(runs); i++) {
            autofree char *wanted = xprintf("run %d", RUNS - 1 - seen++);
            ck_assert_str_eq(mlflow_text(json_array_get(runs, i), "info.run_name"), wanted);
        }
        mlflow_run("0", "new");
        token = json_string_value(json_object_get(answer, "next_page_token"));
    }
    ck_assert_int_eq(seen, RUNS);
}
END_TEST

START_TEST(a_page_that_ends_with_the_last_run_has_no_token)
{
    mlflow_run("0", "a");
    mlflow_run("0", "b");
    ck_assert_ptr_null(json_object_get(page(2, ""), "next_page_token"));
    ck_assert_ptr_nonnull(json_object_get(page(1, ""), "next_page_token"));
}
END_TEST

START_TEST(a_page_of_large_runs_ends_early_with_a_token)
{
    enum { RUNS = 12, TAGS = 100 };
    autotext struct text value = {0};
    while (value.length < 8000) {
        text_append(&value, "0123456789");
    }
    for (int i = 0; i < RUNS; i++) {
        json_t *tags = json_array();
        for (int j = 0; j < TAGS; j++) {
            autofree char *key = xprintf("t%d", j);
            json_array_append_new(tags, json_pack("{s:s, s:s}", "key", key, "value", value.bytes));
        }
        mlflow_ask("POST runs/create", json_pack("{s:o}", "tags", tags));
    }
    size_t seen = 0;
    int pages = 0;
    const char *token = "";
    for (; token != NULL; pages++) {
        json_t *answer = page(1000, token);
        seen += json_array_size(mlflow_at(answer, "runs"));
        token = json_string_value(json_object_get(answer, "next_page_token"));
    }
    ck_assert_uint_eq(seen, RUNS);
    ck_assert_int_eq(pages, 2);
}
END_TEST

START_TEST(pages_that_cannot_be_are_refused)
{
    mlflow_refuse("POST runs/search", json_pack("{s:s}", "page_token", "1"), TRACKING_INVALID_PARAMETER_VALUE,
                  "page_token");
    mlflow_refuse("POST runs/search", json_pack("{s:s}", "page_token", "-1.5"),
                  TRACKING_INVALID_PARAMETER_VALUE, "page_token");
    mlflow_refuse("POST runs/search", json_pack("{s:i}", "max_results", 50001),
                  TRACKING_INVALID_PARAMETER_VALUE, "max_results");
    mlflow_refuse("POST runs/search", json_pack("{s:i}", "max_results", 0), TRACKING_INVALID_PARAMETER_VALUE,
                  "max_results");
}
END_TEST

Suite *mlflow_search_suite(void)
{
    Suite *suite = suite_create("mlflow-search");
    TCase *tests = tcase_create("search");
    tcase_add_checked_fixture(tests, mlflow_setup, mlflow_teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_newest_run_comes_first_by_itself);
    tcase_add_test(tests, what_has_no_value_comes_last_in_both_directions_and_nan_before_it);
    tcase_add_test(tests, an_order_may_have_several_terms);
    tcase_add_test(tests, only_the_experiments_and_the_view_that_are_asked_for_are_searched);
    tcase_add_test(tests, pages_are_the_whole_and_runs_made_meanwhile_change_none);
    tcase_add_test(tests, a_page_that_ends_with_the_last_run_has_no_token);
    tcase_add_test(tests, a_page_of_large_runs_ends_early_with_a_token);
    tcase_add_test(tests, pages_that_cannot_be_are_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
