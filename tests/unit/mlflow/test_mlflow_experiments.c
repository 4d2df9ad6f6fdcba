/* SPDX-License-Identifier: Apache-2.0 */
/* Experiments: making, finding, renaming, tags, deleting and restoring. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

static const char *make(const char *name)
{
    return mlflow_text(mlflow_ask("POST experiments/create", json_pack("{s:s}", "name", name)),
                       "experiment_id");
}

static json_t *by_id(const char *id)
{
    return mlflow_at(mlflow_ask("GET experiments/get", json_pack("{s:s}", "experiment_id", id)),
                     "experiment");
}

static json_t *only_id(const char *id)
{
    return json_pack("{s:s}", "experiment_id", id);
}

static json_t *search(json_t *body)
{
    return mlflow_at(mlflow_ask("POST experiments/search", body), "experiments");
}

START_TEST(the_experiment_default_has_the_id_0)
{
    json_t *experiment =
        mlflow_at(mlflow_ask("GET experiments/get-by-name", json_pack("{s:s}", "experiment_name", "Default")),
                  "experiment");
    ck_assert(json_is_string(mlflow_at(experiment, "experiment_id")));
    ck_assert_str_eq(mlflow_text(experiment, "experiment_id"), "0");
    ck_assert_str_eq(mlflow_text(experiment, "lifecycle_stage"), "active");
    ck_assert_str_eq(mlflow_text(experiment, "artifact_location"), "mlflow-artifacts:/0");
}
END_TEST

START_TEST(a_new_experiment_is_found_by_id_and_by_name)
{
    json_t *answer =
        mlflow_ask("POST experiments/create", json_pack("{s:s, s:[{s:s, s:s}]}", "name", "vision ü", "tags",
                                                        "key", "team", "value", "blue"));
    const char *id = mlflow_text(answer, "experiment_id");
    ck_assert_str_eq(id, "1");
    json_t *experiment = by_id(id);
    ck_assert_str_eq(mlflow_text(experiment, "name"), "vision ü");
    ck_assert_str_eq(mlflow_text(experiment, "creation_time"), "1700000000000");
    ck_assert_str_eq(mlflow_text(experiment, "last_update_time"), "1700000000000");
    ck_assert_str_eq(mlflow_text(experiment, "tags.0.value"), "blue");
    json_t *named =
        mlflow_ask("GET experiments/get-by-name", json_pack("{s:s}", "experiment_name", "vision ü"));
    ck_assert(json_equal(mlflow_at(named, "experiment"), experiment));
}
END_TEST

START_TEST(an_experiment_that_is_not_there_does_not_exist)
{
    mlflow_refuse("GET experiments/get", only_id("7"), TRACKING_RESOURCE_DOES_NOT_EXIST, "id=7");
    mlflow_refuse("GET experiments/get", only_id("x"), TRACKING_RESOURCE_DOES_NOT_EXIST, "id=x");
    mlflow_refuse("GET experiments/get-by-name", json_pack("{s:s}", "experiment_name", "none"),
                  TRACKING_RESOURCE_DOES_NOT_EXIST, "'none'");
    mlflow_refuse("GET experiments/get", json_object(), TRACKING_INVALID_PARAMETER_VALUE, "'experiment_id'");
}
END_TEST

START_TEST(a_name_is_taken_once_even_by_a_deleted_experiment)
{
    const char *id = make("vision");
    mlflow_refuse("POST experiments/create", json_pack("{s:s}", "name", "vision"),
                  TRACKING_RESOURCE_ALREADY_EXISTS, "already exists");
    mlflow_ask("POST experiments/delete", only_id(id));
    mlflow_refuse("POST experiments/create", json_pack("{s:s}", "name", "vision"),
                  TRACKING_RESOURCE_ALREADY_EXISTS, "deleted state");
}
END_TEST

START_TEST(names_of_experiments_have_1_to_500_characters)
{
    struct text name = {0};
    for (int i = 0; i < 500; i++) {
        text_append(&name, "ü");
    }
    make(name.bytes);
    text_append(&name, "x");
    mlflow_refuse("POST experiments/create", json_pack("{s:s}", "name", name.bytes),
                  TRACKING_INVALID_PARAMETER_VALUE, "maximum length of 500");
    text_finish(&name);
    mlflow_refuse("POST experiments/create", json_pack("{s:s}", "name", ""), TRACKING_INVALID_PARAMETER_VALUE,
                  "Invalid experiment name");
    mlflow_refuse("POST experiments/create", json_pack("{s:i}", "name", 5), TRACKING_INVALID_PARAMETER_VALUE,
                  "'name'");
    mlflow_refuse("POST experiments/create", json_object(), TRACKING_INVALID_PARAMETER_VALUE, "'name'");
}
END_TEST

static void location(const char *place, bool allowed)
{
    autofree char *name = xprintf("at %s", place);
    json_t *body = json_pack("{s:s, s:s}", "name", name, "artifact_location", place);
    if (allowed) {
        const char *id = mlflow_text(mlflow_ask("POST experiments/create", body), "experiment_id");
        ck_assert_str_eq(mlflow_text(by_id(id), "artifact_location"), place);
    } else {
        mlflow_refuse("POST experiments/create", body, TRACKING_INVALID_PARAMETER_VALUE, "artifact_location");
    }
}

START_TEST(artifacts_may_go_to_a_uri_or_an_absolute_path)
{
    location("s3://bucket/a", true);
    location("/data/mlflow", true);
    location("relative", false);
    location("s3://bucket/../other", false);
    location("s3://bucket/a?b=c", false);
    location("runs:/1", false);
}
END_TEST

START_TEST(tags_of_experiments_are_set_replaced_and_removed)
{
    const char *id = make("vision");
    mlflow_ask("POST experiments/set-experiment-tag",
               json_pack("{s:s, s:s, s:s}", "experiment_id", id, "key", "k", "value", "1"));
    mlflow.now_ms++;
    mlflow_ask("POST experiments/set-experiment-tag",
               json_pack("{s:s, s:s, s:s}", "experiment_id", id, "key", "k", "value", "2"));
    ck_assert_str_eq(mlflow_text(by_id(id), "tags.0.value"), "2");
    mlflow_ask("POST experiments/delete-experiment-tag",
               json_pack("{s:s, s:s}", "experiment_id", id, "key", "k"));
    ck_assert_uint_eq(json_array_size(mlflow_at(by_id(id), "tags")), 0);
    mlflow_refuse("POST experiments/delete-experiment-tag",
                  json_pack("{s:s, s:s}", "experiment_id", id, "key", "k"), TRACKING_RESOURCE_DOES_NOT_EXIST,
                  "No tag");
}
END_TEST

START_TEST(an_experiment_is_renamed_to_a_name_that_is_free)
{
    const char *id = make("vision");
    make("speech");
    mlflow.now_ms += 5;
    mlflow_ask("POST experiments/update", json_pack("{s:s, s:s}", "experiment_id", id, "new_name", "sight"));
    ck_assert_str_eq(mlflow_text(by_id(id), "name"), "sight");
    ck_assert_str_eq(mlflow_text(by_id(id), "last_update_time"), "1700000000005");
    mlflow_refuse("POST experiments/update",
                  json_pack("{s:s, s:s}", "experiment_id", id, "new_name", "speech"),
                  TRACKING_RESOURCE_ALREADY_EXISTS, "speech");
}
END_TEST

static const char *phase(const char *run)
{
    return mlflow_text(mlflow_get(run), "info.lifecycle_stage");
}

START_TEST(deleting_and_restoring_takes_along_the_runs_that_were_not_deleted_by_themselves)
{
    const char *id = make("vision");
    const char *kept = mlflow_run(id, "kept");
    const char *gone = mlflow_run(id, "gone");
    mlflow_ask("POST runs/delete", json_pack("{s:s}", "run_id", gone));
    mlflow_ask("POST experiments/delete", only_id(id));
    ck_assert_str_eq(mlflow_text(by_id(id), "lifecycle_stage"), "deleted");
    ck_assert_str_eq(phase(kept), "deleted");
    mlflow_refuse("POST runs/create", only_id(id), TRACKING_INVALID_PARAMETER_VALUE, "'active' state");
    mlflow_refuse("POST runs/restore", json_pack("{s:s}", "run_id", kept), TRACKING_INVALID_PARAMETER_VALUE,
                  "Restore the experiment");
    mlflow_refuse("POST experiments/delete", only_id(id), TRACKING_RESOURCE_DOES_NOT_EXIST, "already");
    mlflow_ask("POST runs/delete", json_pack("{s:s}", "run_id", kept));
    mlflow_ask("POST experiments/restore", only_id(id));
    mlflow_refuse("POST experiments/restore", only_id(id), TRACKING_RESOURCE_DOES_NOT_EXIST, "is deleted");
    ck_assert_str_eq(mlflow_text(by_id(id), "lifecycle_stage"), "active");
    ck_assert_str_eq(phase(kept), "active");
    ck_assert_str_eq(phase(gone), "deleted");
}
END_TEST

START_TEST(the_experiment_default_cannot_be_deleted)
{
    mlflow_refuse("POST experiments/delete", only_id("0"), TRACKING_INVALID_PARAMETER_VALUE, "experiment 0");
}
END_TEST

START_TEST(experiments_are_searched_by_name_tag_and_view)
{
    const char *speech = make("speech one");
    mlflow.now_ms++;
    const char *vision = make("vision one");
    mlflow_ask("POST experiments/set-experiment-tag",
               json_pack("{s:s, s:s, s:s}", "experiment_id", vision, "key", "team", "value", "blue"));
    json_t *found = search(json_pack("{s:s}", "filter", "name LIKE '% one'"));
    ck_assert_uint_eq(json_array_size(found), 2);
    ck_assert_str_eq(mlflow_text(found, "0.name"), "vision one");
    found = search(json_pack("{s:s, s:s}", "filter", "attribute.name ILIKE '% ONE'", "order_by", "name ASC"));
    ck_assert_str_eq(mlflow_text(found, "0.name"), "speech one");
    found = search(json_pack("{s:s}", "filter", "tags.team = 'blue'"));
    ck_assert_uint_eq(json_array_size(found), 1);
    ck_assert_str_eq(mlflow_text(found, "0.tags.0.value"), "blue");
    mlflow_ask("POST experiments/delete", only_id(speech));
    ck_assert_uint_eq(json_array_size(search(json_object())), 2);
    ck_assert_uint_eq(json_array_size(search(json_pack("{s:s}", "view_type", "DELETED_ONLY"))), 1);
    ck_assert_uint_eq(json_array_size(search(json_pack("{s:s}", "view_type", "ALL"))), 3);
    ck_assert_uint_eq(json_array_size(search(json_pack("{s:i}", "view_type", 3))), 3);
    mlflow_refuse("POST experiments/search", json_pack("{s:s}", "view_type", "SOME"),
                  TRACKING_INVALID_PARAMETER_VALUE, "ACTIVE_ONLY");
    mlflow_refuse("POST experiments/search", json_pack("{s:s}", "filter", "metrics.x > 1"),
                  TRACKING_INVALID_PARAMETER_VALUE, "no metrics");
}
END_TEST

START_TEST(parameters_of_a_query_may_all_be_text)
{
    make("speech");
    make("vision");
    json_t *page =
        mlflow_ask("POST experiments/search", json_pack("{s:s, s:[s, s]}", "max_results", "2", "order_by",
                                                        "name DESC", "creation_time ASC"));
    ck_assert_str_eq(mlflow_text(page, "experiments.0.name"), "vision");
    ck_assert_uint_eq(json_array_size(mlflow_at(page, "experiments")), 2);
    json_t *rest = mlflow_ask("POST experiments/search",
                              json_pack("{s:s, s:s, s:s}", "max_results", "2", "order_by", "name DESC",
                                        "page_token", mlflow_text(page, "next_page_token")));
    ck_assert_str_eq(mlflow_text(rest, "experiments.0.name"), "Default");
    ck_assert_ptr_null(json_object_get(rest, "next_page_token"));
}
END_TEST

Suite *mlflow_experiments_suite(void)
{
    Suite *suite = suite_create("mlflow-experiments");
    TCase *tests = tcase_create("experiments");
    tcase_add_checked_fixture(tests, mlflow_setup, mlflow_teardown);
    tcase_add_test(tests, the_experiment_default_has_the_id_0);
    tcase_add_test(tests, a_new_experiment_is_found_by_id_and_by_name);
    tcase_add_test(tests, an_experiment_that_is_not_there_does_not_exist);
    tcase_add_test(tests, a_name_is_taken_once_even_by_a_deleted_experiment);
    tcase_add_test(tests, names_of_experiments_have_1_to_500_characters);
    tcase_add_test(tests, artifacts_may_go_to_a_uri_or_an_absolute_path);
    tcase_add_test(tests, tags_of_experiments_are_set_replaced_and_removed);
    tcase_add_test(tests, an_experiment_is_renamed_to_a_name_that_is_free);
    tcase_add_test(tests, deleting_and_restoring_takes_along_the_runs_that_were_not_deleted_by_themselves);
    tcase_add_test(tests, the_experiment_default_cannot_be_deleted);
    tcase_add_test(tests, experiments_are_searched_by_name_tag_and_view);
    tcase_add_test(tests, parameters_of_a_query_may_all_be_text);
    suite_add_tcase(suite, tests);
    return suite;
}
