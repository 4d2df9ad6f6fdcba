/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics with their history, parameters and tags. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

static const char *run;

static void setup(void)
{
    mlflow_setup();
    run = mlflow_run("0", "first");
}

static json_t *metric(const char *key, json_t *value)
{
    return json_pack("{s:s, s:s, s:o, s:i, s:i}", "run_id", run, "key", key, "value", value, "timestamp", 5,
                     "step", 1);
}

static json_t *history(json_t *body)
{
    json_object_set_new(body, "run_id", json_string(run));
    json_object_set_new(body, "metric_key", json_string("loss"));
    return mlflow_ask("GET metrics/get-history", body);
}

static json_t *latest(const char *key)
{
    json_t *metrics = mlflow_at(mlflow_get(run), "data.metrics");
    for (size_t i = 0; i < json_array_size(metrics); i++) {
        if (strcmp(mlflow_text(json_array_get(metrics, i), "key"), key) == 0) {
            return json_array_get(metrics, i);
        }
    }
    ck_abort_msg("there is no metric %s", key);
}

/* --- metrics --- */

START_TEST(the_latest_value_is_by_step_then_time_then_value)
{
    mlflow_log(run, "loss", 3, 100, 2);
    mlflow_log(run, "loss", 9, 900, 1);
    ck_assert_str_eq(mlflow_text(latest("loss"), "value"), "3");
    mlflow_log(run, "loss", 1, 101, 2);
    ck_assert_str_eq(mlflow_text(latest("loss"), "value"), "1");
    mlflow_log(run, "loss", 0.5, 101, 2);
    ck_assert_str_eq(mlflow_text(latest("loss"), "value"), "1");
    mlflow_log(run, "loss", -1, 0, 3);
    ck_assert_str_eq(mlflow_text(latest("loss"), "value"), "-1");
    ck_assert_str_eq(mlflow_text(latest("loss"), "step"), "3");
    ck_assert_uint_eq(json_array_size(mlflow_at(history(json_object()), "metrics")), 5);
}
END_TEST

START_TEST(a_history_is_in_order_of_time_and_a_repeated_point_counts_once)
{
    mlflow_log(run, "loss", 2, 20, 1);
    mlflow_log(run, "loss", 1, 10, 2);
    mlflow_log(run, "loss", 2, 20, 1);
    json_t *metrics = mlflow_at(history(json_object()), "metrics");
    ck_assert_uint_eq(json_array_size(metrics), 2);
    ck_assert_str_eq(mlflow_text(metrics, "0.key"), "loss");
    ck_assert_str_eq(mlflow_text(metrics, "0.timestamp"), "10");
    ck_assert_str_eq(mlflow_text(metrics, "1.step"), "1");
}
END_TEST

START_TEST(a_history_in_pages_is_the_whole_one)
{
    enum { POINTS = 50 };
    for (int i = 0; i < POINTS; i++) {
        json_t *value = i % 3 == 0 ? json_string(i % 2 == 0 ? "Infinity" : "-Infinity") : json_integer(i);
        mlflow_ask("POST runs/log-metric",
                   json_pack("{s:s, s:s, s:o, s:i, s:i}", "run_id", run, "key", "loss", "value", value,
                             "timestamp", i / 7, "step", i / 2));
    }
    mlflow_ask("POST runs/log-metric", metric("loss", json_string("NaN")));
    json_t *whole = mlflow_at(history(json_object()), "metrics");
    size_t seen = 0;
    const char *token = "";
    while (token != NULL) {
        json_t *page = history(json_pack("{s:i, s:s}", "max_results", 7, "page_token", token));
        json_t *metrics = mlflow_at(page, "metrics");
        ck_assert_uint_ge(json_array_size(metrics), 1);
        ck_assert_uint_le(json_array_size(metrics), 7);
        for (size_t i = 0; i < json_array_size(metrics); i++) {
            ck_assert(json_equal(json_array_get(metrics, i), json_array_get(whole, seen++)));
        }
        token = json_string_value(json_object_get(page, "next_page_token"));
    }
    ck_assert_uint_eq(seen, POINTS + 1);
    ck_assert_uint_eq(json_array_size(whole), POINTS + 1);
}
END_TEST

START_TEST(a_metric_that_was_never_logged_has_an_empty_history)
{
    ck_assert_uint_eq(json_array_size(mlflow_at(history(json_object()), "metrics")), 0);
}
END_TEST

START_TEST(pages_that_cannot_be_are_refused)
{
    mlflow_log(run, "loss", 1, 1, 1);
    static const char *const tokens[] = {"x", "1", "1.2.3", "1.2.3.4.5", "1..2.3", "1.2.3.4 OR 1"};
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        mlflow_refuse(
            "GET metrics/get-history",
            json_pack("{s:s, s:s, s:s}", "run_id", run, "metric_key", "loss", "page_token", tokens[i]),
            TRACKING_INVALID_PARAMETER_VALUE, "page_token");
    }
    for (int count = -1; count < 1; count++) {
        mlflow_refuse("GET metrics/get-history",
                      json_pack("{s:s, s:s, s:i}", "run_id", run, "metric_key", "loss", "max_results", count),
                      TRACKING_INVALID_PARAMETER_VALUE, "max_results");
    }
}
END_TEST

START_TEST(values_that_are_no_numbers_come_back_as_they_went_in)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        autofree char *key = xprintf("w%zu", i);
        mlflow_ask("POST runs/log-metric", metric(key, json_string(words[i])));
        ck_assert_str_eq(mlflow_text(latest(key), "value"), words[i]);
    }
}
END_TEST

START_TEST(numbers_come_back_exactly)
{
    static const double numbers[] = {0.1,    1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0,
                                     123456, 1e21,    2.5e-7, 9007199254740993.0};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        autofree char *key = xprintf("n%zu", i);
        mlflow_log(run, key, numbers[i], 1, 1);
        ck_assert(json_number_value(mlflow_at(latest(key), "value")) == numbers[i]);
    }
}
END_TEST

START_TEST(whole_numbers_may_come_as_text)
{
    mlflow_ask("POST runs/log-metric",
               json_pack("{s:s, s:s, s:s, s:s, s:s}", "run_id", run, "key", "loss", "value", "0.5",
                         "timestamp", "9007199254740993", "step", "-4"));
    ck_assert_int_eq(json_integer_value(mlflow_at(latest("loss"), "timestamp")), 9007199254740993);
    ck_assert_int_eq(json_integer_value(mlflow_at(latest("loss"), "step")), -4);
    ck_assert_str_eq(mlflow_text(latest("loss"), "value"), "0.5");
}
END_TEST

START_TEST(points_that_cannot_be_are_refused)
{
    mlflow_refuse("POST runs/log-metric", metric("loss", json_string("much")),
                  TRACKING_INVALID_PARAMETER_VALUE, "'value'");
    mlflow_refuse("POST runs/log-metric", metric("loss", json_true()), TRACKING_INVALID_PARAMETER_VALUE,
                  "'value'");
    mlflow_refuse("POST runs/log-metric", metric("loss", json_null()), TRACKING_INVALID_PARAMETER_VALUE,
                  "'value'");
    mlflow_refuse("POST runs/log-metric",
                  json_pack("{s:s, s:s, s:f}", "run_id", run, "key", "loss", "value", 0.5),
                  TRACKING_INVALID_PARAMETER_VALUE, "'timestamp'");
    mlflow_refuse(
        "POST runs/log-metric",
        json_pack("{s:s, s:s, s:f, s:i}", "run_id", run, "key", "loss", "value", 0.5, "timestamp", -1),
        TRACKING_INVALID_PARAMETER_VALUE, "nonnegative");
    mlflow_refuse(
        "POST runs/log-metric",
        json_pack("{s:s, s:s, s:f, s:f}", "run_id", run, "key", "loss", "value", 0.5, "timestamp", 1.5),
        TRACKING_INVALID_PARAMETER_VALUE, "'timestamp'");
    ck_assert_uint_eq(json_array_size(mlflow_at(mlflow_get(run), "data.metrics")), 0);
}
END_TEST

/* --- names --- */

START_TEST(names_may_have_parts_and_other_scripts_but_must_not_resolve_to_others)
{
    static const char *const good[] = {"a",  "val/loss", "system/gpu_0 power.w", "a:b-c", "größe",
                                       ".a", "..a"};
    static const char *const bad[] = {"",    "/a",  "a/",  "a//b", "a/../b", "..",  ".",
                                      "./a", "a/.", "a,b", "a'b",  "a\"b",   "a;b", "a\nb"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        mlflow_log(run, good[i], 1, 1, 1);
        mlflow_param(run, good[i], "v");
        mlflow_tag(run, good[i], "v");
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mlflow_refuse("POST runs/log-metric", metric(bad[i], json_real(1)), TRACKING_INVALID_PARAMETER_VALUE,
                      "metric");
        mlflow_refuse("POST runs/set-tag",
                      json_pack("{s:s, s:s, s:s}", "run_id", run, "key", bad[i], "value", "v"),
                      TRACKING_INVALID_PARAMETER_VALUE, "tag");
    }
}
END_TEST

START_TEST(names_have_at_most_250_characters)
{
    struct text name = {0};
    for (int i = 0; i < 250; i++) {
        text_append(&name, "ü");
    }
    mlflow_log(run, name.bytes, 1, 1, 1);
    text_append(&name, "x");
    mlflow_refuse("POST runs/log-metric", metric(name.bytes, json_real(1)), TRACKING_INVALID_PARAMETER_VALUE,
                  "maximum length of 250");
    mlflow_refuse("POST runs/log-parameter",
                  json_pack("{s:s, s:s, s:s}", "run_id", run, "key", name.bytes, "value", "v"),
                  TRACKING_INVALID_PARAMETER_VALUE, "maximum length of 250");
    text_finish(&name);
}
END_TEST

/* --- parameters and tags --- */

START_TEST(a_parameter_is_written_once_and_saying_the_same_again_is_no_error)
{
    mlflow_param(run, "rate", "0.1");
    mlflow_param(run, "rate", "0.1");
    mlflow_refuse("POST runs/log-parameter",
                  json_pack("{s:s, s:s, s:s}", "run_id", run, "key", "rate", "value", "0.2"),
                  TRACKING_INVALID_PARAMETER_VALUE, "already logged with value='0.1'");
    ck_assert_str_eq(mlflow_text(mlflow_get(run), "data.params.0.value"), "0.1");
}
END_TEST

static size_t cut_length(void (*put)(const char *, const char *, const char *), const char *list, int length)
{
    autofree char *key = xprintf("k%d", length);
    struct text value = {0};
    for (int i = 0; i < length; i++) {
        text_append(&value, "ü");
    }
    put(run, key, value.bytes);
    text_finish(&value);
    return strlen(json_string_value(mlflow_value(mlflow_at(mlflow_get(run), list), key))) / strlen("ü");
}

START_TEST(values_of_parameters_and_tags_that_are_too_long_are_cut)
{
    ck_assert_uint_eq(cut_length(mlflow_param, "data.params", 6000), 6000);
    ck_assert_uint_eq(cut_length(mlflow_param, "data.params", 6001), 6000);
    ck_assert_uint_eq(cut_length(mlflow_tag, "data.tags", 8000), 8000);
    ck_assert_uint_eq(cut_length(mlflow_tag, "data.tags", 8001), 8000);
}
END_TEST

START_TEST(tags_are_set_replaced_and_removed)
{
    mlflow_tag(run, "k", "1");
    mlflow_tag(run, "k", "two \"quoted\"\n");
    ck_assert_str_eq(json_string_value(mlflow_value(mlflow_at(mlflow_get(run), "data.tags"), "k")),
                     "two \"quoted\"\n");
    mlflow_ask("POST runs/delete-tag", json_pack("{s:s, s:s}", "run_id", run, "key", "k"));
    ck_assert_ptr_null(mlflow_value(mlflow_at(mlflow_get(run), "data.tags"), "k"));
    mlflow_refuse("POST runs/delete-tag", json_pack("{s:s, s:s}", "run_id", run, "key", "k"),
                  TRACKING_RESOURCE_DOES_NOT_EXIST, "No tag");
}
END_TEST

Suite *mlflow_values_suite(void)
{
    Suite *suite = suite_create("mlflow-values");
    TCase *tests = tcase_create("values");
    tcase_add_checked_fixture(tests, setup, mlflow_teardown);
    tcase_add_test(tests, the_latest_value_is_by_step_then_time_then_value);
    tcase_add_test(tests, a_history_is_in_order_of_time_and_a_repeated_point_counts_once);
    tcase_add_test(tests, a_history_in_pages_is_the_whole_one);
    tcase_add_test(tests, a_metric_that_was_never_logged_has_an_empty_history);
    tcase_add_test(tests, pages_that_cannot_be_are_refused);
    tcase_add_test(tests, values_that_are_no_numbers_come_back_as_they_went_in);
    tcase_add_test(tests, numbers_come_back_exactly);
    tcase_add_test(tests, whole_numbers_may_come_as_text);
    tcase_add_test(tests, points_that_cannot_be_are_refused);
    tcase_add_test(tests, names_may_have_parts_and_other_scripts_but_must_not_resolve_to_others);
    tcase_add_test(tests, names_have_at_most_250_characters);
    tcase_add_test(tests, a_parameter_is_written_once_and_saying_the_same_again_is_no_error);
    tcase_add_test(tests, values_of_parameters_and_tags_that_are_too_long_are_cut);
    tcase_add_test(tests, tags_are_set_replaced_and_removed);
    suite_add_tcase(suite, tests);
    return suite;
}
