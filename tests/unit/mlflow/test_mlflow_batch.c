/* SPDX-License-Identifier: Apache-2.0 */
/* runs/log-batch and its limits. */
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

/* A batch of so many values with keys that count. */
static json_t *batch(int metrics, int params, int tags)
{
    json_t *body = json_pack("{s:s, s:[], s:[], s:[]}", "run_id", run, "metrics", "params", "tags");
    for (int i = 0; i < metrics; i++) {
        autofree char *key = xprintf("m%d", i);
        json_array_append_new(
            json_object_get(body, "metrics"),
            json_pack("{s:s, s:f, s:i, s:i}", "key", key, "value", i / 2.0, "timestamp", i, "step", 1));
    }
    for (int i = 0; i < params + tags; i++) {
        autofree char *key = xprintf("k%d", i);
        json_array_append_new(json_object_get(body, i < params ? "params" : "tags"),
                              json_pack("{s:s, s:s}", "key", key, "value", "v"));
    }
    return body;
}

static size_t count(const char *list)
{
    return json_array_size(mlflow_at(mlflow_get(run), list));
}

START_TEST(a_batch_logs_metrics_parameters_and_tags)
{
    mlflow_ask("POST runs/log-batch", batch(3, 2, 1));
    ck_assert_uint_eq(count("data.metrics"), 3);
    ck_assert_uint_eq(count("data.params"), 2);
    ck_assert_uint_eq(count("data.tags"), 2); /* the name is one */
}
END_TEST

START_TEST(an_empty_batch_is_no_error)
{
    mlflow_ask("POST runs/log-batch", json_pack("{s:s}", "run_id", run));
}
END_TEST

START_TEST(a_batch_may_be_as_large_as_the_limits)
{
    mlflow_ask("POST runs/log-batch", batch(1000, 0, 0));
    mlflow_ask("POST runs/log-batch", batch(800, 100, 100));
    ck_assert_uint_eq(count("data.metrics"), 1000);
    ck_assert_uint_eq(count("data.params"), 100);
    ck_assert_uint_eq(count("data.tags"), 101);
}
END_TEST

static void too_large(int metrics, int params, int tags, const char *text)
{
    mlflow_refuse("POST runs/log-batch", batch(metrics, params, tags), TRACKING_INVALID_PARAMETER_VALUE,
                  text);
    ck_assert_uint_eq(count("data.metrics"), 0);
}

START_TEST(a_batch_above_a_limit_is_refused_in_the_words_that_clients_know)
{
    too_large(1001, 0, 0,
              "A batch logging request can contain at most 1000 metrics. Got 1001 metrics. Please split up "
              "metrics across multiple requests and try again.");
    too_large(
        0, 101, 0,
        "A batch logging request can contain at most 100 params. Got 101 params. Please split up params "
        "across multiple requests and try again.");
    too_large(
        0, 0, 101,
        "A batch logging request can contain at most 100 tags. Got 101 tags. Please split up tags across "
        "multiple requests and try again.");
    too_large(801, 100, 100,
              "A batch logging request can contain at most 1000 metrics, params, and tags. Got 1001 metrics, "
              "params, and tags.");
}
END_TEST

START_TEST(a_parameter_twice_in_a_batch_is_refused_even_with_the_same_value)
{
    json_t *body = batch(0, 2, 0);
    json_object_set_new(mlflow_at(body, "params.1"), "key", json_string("k0"));
    mlflow_refuse("POST runs/log-batch", body, TRACKING_INVALID_PARAMETER_VALUE,
                  "Duplicate parameter keys have been submitted: ['k0']");
}
END_TEST

START_TEST(a_batch_with_something_wrong_in_it_writes_nothing)
{
    mlflow_param(run, "k1", "other");
    mlflow_refuse("POST runs/log-batch", batch(3, 2, 1), TRACKING_INVALID_PARAMETER_VALUE, "'k1'");
    json_t *body = batch(3, 1, 1);
    json_object_set_new(mlflow_at(body, "tags.0"), "key", json_string("../up"));
    mlflow_refuse("POST runs/log-batch", body, TRACKING_INVALID_PARAMETER_VALUE, "../up");
    ck_assert_uint_eq(count("data.metrics"), 0);
    ck_assert_uint_eq(count("data.params"), 1);
    ck_assert_uint_eq(count("data.tags"), 1);
}
END_TEST

START_TEST(a_batch_sent_twice_is_as_one)
{
    mlflow_ask("POST runs/log-batch", batch(3, 2, 1));
    mlflow_ask("POST runs/log-batch", batch(3, 2, 1));
    json_t *history =
        mlflow_ask("GET metrics/get-history", json_pack("{s:s, s:s}", "run_id", run, "metric_key", "m1"));
    ck_assert_uint_eq(json_array_size(mlflow_at(history, "metrics")), 1);
}
END_TEST

START_TEST(lists_that_are_none_are_refused)
{
    mlflow_refuse("POST runs/log-batch", json_pack("{s:s, s:{}}", "run_id", run, "metrics"),
                  TRACKING_INVALID_PARAMETER_VALUE, "'metrics'");
    mlflow_refuse("POST runs/log-batch", json_pack("{s:s, s:[s]}", "run_id", run, "tags", "t"),
                  TRACKING_INVALID_PARAMETER_VALUE, "'tags'");
    mlflow_refuse("POST runs/log-batch", json_pack("{s:s, s:[{}]}", "run_id", run, "params"),
                  TRACKING_INVALID_PARAMETER_VALUE, "'key'");
}
END_TEST

Suite *mlflow_batch_suite(void)
{
    Suite *suite = suite_create("mlflow-batch");
    TCase *tests = tcase_create("batch");
    tcase_add_checked_fixture(tests, setup, mlflow_teardown);
    tcase_add_test(tests, a_batch_logs_metrics_parameters_and_tags);
    tcase_add_test(tests, an_empty_batch_is_no_error);
    tcase_add_test(tests, a_batch_may_be_as_large_as_the_limits);
    tcase_add_test(tests, a_batch_above_a_limit_is_refused_in_the_words_that_clients_know);
    tcase_add_test(tests, a_parameter_twice_in_a_batch_is_refused_even_with_the_same_value);
    tcase_add_test(tests, a_batch_with_something_wrong_in_it_writes_nothing);
    tcase_add_test(tests, a_batch_sent_twice_is_as_one);
    tcase_add_test(tests, lists_that_are_none_are_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
