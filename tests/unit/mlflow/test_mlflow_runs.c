/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: making, naming, updating, deleting, what they read and made. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

static json_t *create(json_t *body)
{
    return mlflow_at(mlflow_ask("POST runs/create", body), "run");
}

static json_t *update(json_t *body)
{
    return mlflow_at(mlflow_ask("POST runs/update", body), "run_info");
}

static json_t *only_id(const char *run_id)
{
    return json_pack("{s:s}", "run_id", run_id);
}

START_TEST(a_new_run_has_all_that_clients_look_for)
{
    json_t *run = create(json_pack("{s:s, s:s, s:s, s:s, s:[{s:s, s:s}]}", "experiment_id", "0", "user_id",
                                   "grace", "run_name", "first", "start_time", "1600000000000", "tags", "key",
                                   "mlflow.source.name", "value", "train.py"));
    const char *id = mlflow_text(run, "info.run_id");
    ck_assert_uint_eq(strlen(id), 32);
    ck_assert_str_eq(mlflow_text(run, "info.run_uuid"), id);
    ck_assert(json_is_string(mlflow_at(run, "info.experiment_id")));
    ck_assert_str_eq(mlflow_text(run, "info.experiment_id"), "0");
    ck_assert_str_eq(mlflow_text(run, "info.run_name"), "first");
    ck_assert_str_eq(mlflow_text(run, "info.user_id"), "grace");
    ck_assert_str_eq(mlflow_text(run, "info.status"), "RUNNING");
    ck_assert_int_eq(json_integer_value(mlflow_at(run, "info.start_time")), 1600000000000);
    ck_assert_ptr_null(json_object_get(mlflow_at(run, "info"), "end_time"));
    ck_assert_str_eq(mlflow_text(run, "info.lifecycle_stage"), "active");
    autofree char *uri = xprintf("mlflow-artifacts:/0/%s/artifacts", id);
    ck_assert_str_eq(mlflow_text(run, "info.artifact_uri"), uri);
    json_t *tags = mlflow_at(run, "data.tags");
    ck_assert_str_eq(json_string_value(mlflow_value(tags, "mlflow.source.name")), "train.py");
    ck_assert_str_eq(json_string_value(mlflow_value(tags, "mlflow.runName")), "first");
    ck_assert(json_equal(mlflow_get(id), run));
}
END_TEST

START_TEST(a_run_without_a_name_gets_one_of_three_parts)
{
    json_t *run = create(json_object());
    const char *name = mlflow_text(run, "info.run_name");
    const char *dash = strchr(name, '-');
    ck_assert_ptr_nonnull(dash);
    ck_assert_ptr_nonnull(strchr(dash + 1, '-'));
    ck_assert_str_eq(json_string_value(mlflow_value(mlflow_at(run, "data.tags"), "mlflow.runName")), name);
    ck_assert_str_eq(mlflow_text(run, "info.experiment_id"), "0");
    ck_assert_int_eq(json_integer_value(mlflow_at(run, "info.start_time")), mlflow.now_ms);
}
END_TEST

START_TEST(a_run_of_nobody_belongs_to_the_owner_of_the_token)
{
    ck_assert_str_eq(mlflow_text(create(json_object()), "info.user_id"), "ada");
    ck_assert_str_eq(mlflow_text(create(json_pack("{s:s}", "user_id", "")), "info.user_id"), "ada");
    ck_assert_str_eq(mlflow_text(create(json_pack("{s:s}", "user_id", "unknown")), "info.user_id"), "ada");
}
END_TEST

START_TEST(the_name_may_come_as_a_tag_but_not_as_another_one)
{
    json_t *run = create(json_pack("{s:[{s:s, s:s}]}", "tags", "key", "mlflow.runName", "value", "tagged"));
    ck_assert_str_eq(mlflow_text(run, "info.run_name"), "tagged");
    mlflow_refuse("POST runs/create",
                  json_pack("{s:s, s:[{s:s, s:s}]}", "run_name", "named", "tags", "key", "mlflow.runName",
                            "value", "tagged"),
                  TRACKING_INVALID_PARAMETER_VALUE, "differ");
}
END_TEST

START_TEST(renaming_a_run_and_setting_its_tag_are_the_same)
{
    const char *id = mlflow_run("0", "first");
    update(json_pack("{s:s, s:s}", "run_id", id, "run_name", "second"));
    json_t *run = mlflow_get(id);
    ck_assert_str_eq(mlflow_text(run, "info.run_name"), "second");
    ck_assert_str_eq(json_string_value(mlflow_value(mlflow_at(run, "data.tags"), "mlflow.runName")),
                     "second");
    mlflow_tag(id, "mlflow.runName", "third");
    ck_assert_str_eq(mlflow_text(mlflow_get(id), "info.run_name"), "third");
}
END_TEST

START_TEST(a_run_in_an_experiment_with_a_place_of_its_own_keeps_its_artifacts_there)
{
    json_t *made = mlflow_ask("POST experiments/create",
                              json_pack("{s:s, s:s}", "name", "s3", "artifact_location", "s3://bucket/a"));
    const char *id = mlflow_run(mlflow_text(made, "experiment_id"), "first");
    autofree char *wanted = xprintf("s3://bucket/a/%s/artifacts", id);
    autofree char *uri = NULL;
    ck_assert(tracking_artifact_uri(mlflow.tracking, NULL, id, &uri, &mlflow.error));
    ck_assert_str_eq(uri, wanted);
    char *none = NULL;
    ck_assert(!tracking_artifact_uri(mlflow.tracking, NULL, "none", &none, &mlflow.error));
    ck_assert_int_eq(mlflow.error.code, TRACKING_RESOURCE_DOES_NOT_EXIST);
}
END_TEST

START_TEST(an_update_changes_what_it_names_and_may_use_the_old_name_of_the_id)
{
    const char *id = mlflow_run("0", "first");
    json_t *info = update(json_pack("{s:s, s:s, s:I}", "run_uuid", id, "status", "FINISHED", "end_time",
                                    (json_int_t)1700000000900));
    ck_assert_str_eq(mlflow_text(info, "status"), "FINISHED");
    ck_assert_str_eq(mlflow_text(info, "end_time"), "1700000000900");
    info = update(json_pack("{s:s, s:s}", "run_id", id, "status", "RUNNING"));
    ck_assert_str_eq(mlflow_text(info, "status"), "RUNNING");
    ck_assert_str_eq(mlflow_text(info, "end_time"), "1700000000900");
    info = update(json_pack("{s:s, s:i}", "run_id", id, "status", 5));
    ck_assert_str_eq(mlflow_text(info, "status"), "KILLED");
    mlflow_refuse("POST runs/update", json_pack("{s:s, s:s}", "run_id", id, "status", "DONE"),
                  TRACKING_INVALID_PARAMETER_VALUE, "RUNNING, SCHEDULED, FINISHED, FAILED, KILLED");
}
END_TEST

START_TEST(values_are_logged_whatever_the_status_is)
{
    const char *id = mlflow_run("0", "first");
    update(json_pack("{s:s, s:s}", "run_id", id, "status", "FINISHED"));
    mlflow_log(id, "late", 1, 1, 1);
    mlflow_param(id, "late", "1");
    mlflow_tag(id, "late", "1");
    ck_assert_str_eq(mlflow_text(mlflow_get(id), "data.metrics.0.key"), "late");
}
END_TEST

START_TEST(a_run_that_is_not_there_does_not_exist)
{
    mlflow_refuse("GET runs/get", only_id("nobody"), TRACKING_RESOURCE_DOES_NOT_EXIST, "nobody");
    mlflow_refuse("GET runs/get", json_object(), TRACKING_INVALID_PARAMETER_VALUE, "'run_id'");
    mlflow_refuse("GET runs/get", json_pack("{s:i}", "run_id", 4), TRACKING_INVALID_PARAMETER_VALUE,
                  "'run_id'");
    mlflow_refuse("POST runs/create", json_pack("{s:s}", "experiment_id", "9"),
                  TRACKING_RESOURCE_DOES_NOT_EXIST, "id=9");
}
END_TEST

START_TEST(a_deleted_run_is_shown_but_takes_nothing_until_it_is_restored)
{
    const char *id = mlflow_run("0", "first");
    mlflow_ask("POST runs/delete", only_id(id));
    ck_assert_str_eq(mlflow_text(mlflow_get(id), "info.lifecycle_stage"), "deleted");
    mlflow_refuse("POST runs/set-tag", json_pack("{s:s, s:s, s:s}", "run_id", id, "key", "k", "value", "v"),
                  TRACKING_INVALID_PARAMETER_VALUE, "Current state is deleted");
    mlflow_refuse("POST runs/log-batch", only_id(id), TRACKING_INVALID_PARAMETER_VALUE,
                  "Current state is deleted");
    mlflow_ask("POST runs/delete", only_id(id));
    mlflow_ask("POST runs/restore", only_id(id));
    mlflow_tag(id, "k", "v");
}
END_TEST

/* --- data sets and models --- */

static json_t *dataset(const char *name, const char *context)
{
    return json_pack("{s:[{s:s, s:s}], s:{s:s, s:s, s:s, s:s}}", "tags", "key", "mlflow.data.context",
                     "value", context, "dataset", "name", name, "digest", "abc123", "source_type", "local",
                     "source", "{\"uri\": \"/d\"}");
}

START_TEST(data_sets_are_shown_with_the_run_and_found_by_it)
{
    const char *id = mlflow_run("0", "first");
    json_t *body = json_pack("{s:s, s:[o, o]}", "run_id", id, "datasets", dataset("iris", "training"),
                             dataset("mnist", "test"));
    mlflow_ask("POST runs/log-inputs", json_incref(body));
    mlflow_ask("POST runs/log-inputs", body);
    json_t *inputs = mlflow_at(mlflow_get(id), "inputs.dataset_inputs");
    ck_assert_uint_eq(json_array_size(inputs), 2);
    ck_assert_str_eq(mlflow_text(inputs, "0.dataset.name"), "iris");
    ck_assert_str_eq(mlflow_text(inputs, "0.dataset.source"), "{\"uri\": \"/d\"}");
    ck_assert_str_eq(mlflow_text(inputs, "0.tags.0.value"), "training");
    json_t *found =
        mlflow_ask("POST runs/search", json_pack("{s:[s], s:s}", "experiment_ids", "0", "filter",
                                                 "dataset.name = 'iris' AND datasets.context = 'training'"));
    ck_assert_uint_eq(json_array_size(mlflow_at(found, "runs")), 1);
    mlflow_refuse("POST runs/log-inputs", json_pack("{s:s, s:[{}]}", "run_id", id, "datasets"),
                  TRACKING_INVALID_PARAMETER_VALUE, "'dataset'");
}
END_TEST

START_TEST(models_are_gathered_in_a_tag)
{
    const char *id = mlflow_run("0", "first");
    for (int i = 0; i < 2; i++) {
        mlflow_ask("POST runs/log-model",
                   json_pack("{s:s, s:s}", "run_id", id, "model_json",
                             i == 0 ? "{\"artifact_path\": \"a\"}" : "{\"artifact_path\": \"b\"}"));
    }
    const char *tag =
        json_string_value(mlflow_value(mlflow_at(mlflow_get(id), "data.tags"), "mlflow.log-model.history"));
    struct err err;
    autojson json_t *models = json_parse(tag, strlen(tag), &err);
    ck_assert_uint_eq(json_array_size(models), 2);
    ck_assert_str_eq(mlflow_text(models, "1.artifact_path"), "b");
    mlflow_refuse("POST runs/log-model", json_pack("{s:s, s:s}", "run_id", id, "model_json", "[1"),
                  TRACKING_INVALID_PARAMETER_VALUE, "model_json");
}
END_TEST

Suite *mlflow_runs_suite(void)
{
    Suite *suite = suite_create("mlflow-runs");
    TCase *tests = tcase_create("runs");
    tcase_add_checked_fixture(tests, mlflow_setup, mlflow_teardown);
    tcase_add_test(tests, a_new_run_has_all_that_clients_look_for);
    tcase_add_test(tests, a_run_without_a_name_gets_one_of_three_parts);
    tcase_add_test(tests, a_run_of_nobody_belongs_to_the_owner_of_the_token);
    tcase_add_test(tests, the_name_may_come_as_a_tag_but_not_as_another_one);
    tcase_add_test(tests, renaming_a_run_and_setting_its_tag_are_the_same);
    tcase_add_test(tests, a_run_in_an_experiment_with_a_place_of_its_own_keeps_its_artifacts_there);
    tcase_add_test(tests, an_update_changes_what_it_names_and_may_use_the_old_name_of_the_id);
    tcase_add_test(tests, values_are_logged_whatever_the_status_is);
    tcase_add_test(tests, a_run_that_is_not_there_does_not_exist);
    tcase_add_test(tests, a_deleted_run_is_shown_but_takes_nothing_until_it_is_restored);
    tcase_add_test(tests, data_sets_are_shown_with_the_run_and_found_by_it);
    tcase_add_test(tests, models_are_gathered_in_a_tag);
    suite_add_tcase(suite, tests);
    return suite;
}
