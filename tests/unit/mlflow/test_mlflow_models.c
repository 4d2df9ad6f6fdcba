/* SPDX-License-Identifier: Apache-2.0 */
/* Logged models: their life, what they are found by, and which run made them. */
#include <string.h>

#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

static json_t *named(const char *id)
{
    return json_pack("{s:s}", "model_id", id);
}

static const char *make(const char *name, const char *type)
{
    json_t *answer =
        mlflow_ask("POST logged-models",
                   json_pack("{s:s, s:s, s:s, s:s, s:[{s:s, s:s}], s:[{s:s, s:s}]}", "experiment_id", "0",
                             "name", name, "model_type", type, "source_run_id", "abc", "params", "key", "C",
                             "value", "0.5", "tags", "key", "team", "value", name));
    return mlflow_text(answer, "model.info.model_id");
}

static json_t *get(const char *id)
{
    return mlflow_at(mlflow_ask("GET logged-models/{model_id}", named(id)), "model");
}

static size_t found(const char *filter)
{
    json_t *answer = mlflow_ask("POST logged-models/search",
                                json_pack("{s:[s], s:s}", "experiment_ids", "0", "filter", filter));
    return json_array_size(mlflow_at(answer, "models"));
}

START_TEST(a_model_waits_for_its_files_until_it_is_finalized)
{
    const char *id = make("first", "agent");
    json_t *model = get(id);
    ck_assert_str_eq(mlflow_text(model, "info.status"), "LOGGED_MODEL_PENDING");
    ck_assert_str_eq(mlflow_text(model, "info.source_run_id"), "abc");
    ck_assert_str_eq(mlflow_text(model, "data.params.0.value"), "0.5");
    ck_assert_ptr_nonnull(strstr(mlflow_text(model, "info.artifact_uri"), id));
    mlflow.now_ms += 5;
    mlflow_ask("PATCH logged-models/{model_id}",
               json_pack("{s:s, s:s}", "model_id", id, "status", "LOGGED_MODEL_READY"));
    mlflow_reopen();
    ck_assert_str_eq(mlflow_text(get(id), "info.status"), "LOGGED_MODEL_READY");
    ck_assert_str_eq(mlflow_text(get(id), "info.creation_timestamp_ms"), "1700000000000");
    ck_assert_str_eq(mlflow_text(get(id), "info.last_updated_timestamp_ms"), "1700000000005");
    mlflow_refuse("PATCH logged-models/{model_id}",
                  json_pack("{s:s, s:s}", "model_id", id, "status", "LOGGED_MODEL_PENDING"),
                  TRACKING_INVALID_PARAMETER_VALUE, "status");
}
END_TEST

START_TEST(models_are_found_by_name_parameter_tag_and_type)
{
    make("first", "agent");
    make("second", "");
    ck_assert_uint_eq(found(""), 2);
    ck_assert_uint_eq(found("name = 'second'"), 1);
    ck_assert_uint_eq(found("model_type = 'agent' AND tags.team = 'first'"), 1);
    ck_assert_uint_eq(found("params.C = '0.5'"), 2);
    ck_assert_uint_eq(found("params.C = '1'"), 0);
    mlflow_refuse("POST logged-models/search",
                  json_pack("{s:[s], s:s}", "experiment_ids", "0", "filter", "metrics.x > 1"),
                  TRACKING_INVALID_PARAMETER_VALUE, "models have no metrics");
    json_t *ordered = mlflow_ask("POST logged-models/search",
                                 json_pack("{s:[s], s:[{s:s, s:b}], s:i}", "experiment_ids", "0", "order_by",
                                           "field_name", "name", "ascending", 0, "max_results", 1));
    ck_assert_str_eq(mlflow_text(ordered, "models.0.info.name"), "second");
    ck_assert_ptr_nonnull(mlflow_at(ordered, "next_page_token"));
}
END_TEST

START_TEST(tags_and_parameters_of_a_model_change_by_themselves)
{
    const char *id = make("first", "");
    mlflow_ask("PATCH logged-models/{model_id}/tags",
               json_pack("{s:s, s:[{s:s, s:s}]}", "model_id", id, "tags", "key", "a", "value", "b"));
    mlflow_ask("POST logged-models/{model_id}/params",
               json_pack("{s:s, s:[{s:s, s:s}]}", "model_id", id, "params", "key", "p", "value", "q"));
    ck_assert_str_eq(json_string_value(mlflow_value(mlflow_at(get(id), "info.tags"), "a")), "b");
    ck_assert_str_eq(json_string_value(mlflow_value(mlflow_at(get(id), "data.params"), "p")), "q");
    mlflow_ask("DELETE logged-models/{model_id}/tags/{tag_key}",
               json_pack("{s:s, s:s}", "model_id", id, "tag_key", "a"));
    ck_assert_ptr_null(mlflow_value(mlflow_at(get(id), "info.tags"), "a"));
    mlflow_refuse("DELETE logged-models/{model_id}/tags/{tag_key}",
                  json_pack("{s:s, s:s}", "model_id", id, "tag_key", "a"), TRACKING_RESOURCE_DOES_NOT_EXIST,
                  "No tag");
}
END_TEST

START_TEST(a_deleted_model_is_shown_to_nobody)
{
    const char *id = make("first", "");
    mlflow_ask("DELETE logged-models/{model_id}", named(id));
    mlflow_ask("DELETE logged-models/{model_id}", named(id));
    mlflow_refuse("GET logged-models/{model_id}", named(id), TRACKING_RESOURCE_DOES_NOT_EXIST, "not found");
    ck_assert_uint_eq(found(""), 0);
    mlflow_refuse("DELETE logged-models/{model_id}", named("m-0"), TRACKING_RESOURCE_DOES_NOT_EXIST,
                  "not found");
}
END_TEST

START_TEST(names_that_clients_cannot_make_paths_of_are_refused)
{
    static const char *const wrong[] = {"", "a/b", "a:b", "a.b", "a%b", "a'b"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mlflow_refuse("POST logged-models", json_pack("{s:s, s:s}", "experiment_id", "0", "name", wrong[i]),
                      TRACKING_INVALID_PARAMETER_VALUE, "Invalid model name");
    }
    mlflow_refuse("POST logged-models", json_pack("{s:s, s:s}", "experiment_id", "9", "name", "a"),
                  TRACKING_RESOURCE_DOES_NOT_EXIST, "9");
}
END_TEST

START_TEST(a_run_tells_which_models_it_made)
{
    const char *run = mlflow_run("0", "first");
    mlflow_ask("POST runs/outputs",
               json_pack("{s:s, s:[{s:s, s:i}]}", "run_id", run, "models", "model_id", "m-1", "step", 4));
    json_t *shown = mlflow_get(run);
    ck_assert_str_eq(mlflow_text(shown, "outputs.model_outputs.0.model_id"), "m-1");
    ck_assert_str_eq(mlflow_text(shown, "outputs.model_outputs.0.step"), "4");
}
END_TEST

Suite *mlflow_models_suite(void)
{
    Suite *suite = suite_create("mlflow-models");
    TCase *tests = tcase_create("models");
    tcase_add_checked_fixture(tests, mlflow_setup, mlflow_teardown);
    tcase_add_test(tests, a_model_waits_for_its_files_until_it_is_finalized);
    tcase_add_test(tests, models_are_found_by_name_parameter_tag_and_type);
    tcase_add_test(tests, tags_and_parameters_of_a_model_change_by_themselves);
    tcase_add_test(tests, a_deleted_model_is_shown_to_nobody);
    tcase_add_test(tests, names_that_clients_cannot_make_paths_of_are_refused);
    tcase_add_test(tests, a_run_tells_which_models_it_made);
    suite_add_tcase(suite, tests);
    return suite;
}
