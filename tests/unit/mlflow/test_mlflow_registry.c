/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: names, versions, aliases, stages, what they are found by, and what a version may be made of.
 */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits_tracking.h"
#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

static json_t *named(const char *name)
{
    return json_pack("{s:s}", "name", name);
}

static json_t *numbered(const char *name, const char *number)
{
    return json_pack("{s:s, s:s}", "name", name, "version", number);
}

static void make(const char *name)
{
    mlflow_ask("POST registered-models/create", named(name));
}

static json_t *from(const char *name, const char *source)
{
    return json_pack("{s:s, s:s}", "name", name, "source", source);
}

/* Makes a version and returns its number. */
static const char *add(const char *name)
{
    return mlflow_text(mlflow_ask("POST model-versions/create", from(name, "s3://bucket/model")),
                       "model_version.version");
}

static json_t *model(const char *name)
{
    return mlflow_at(mlflow_ask("GET registered-models/get", named(name)), "registered_model");
}

static json_t *version(const char *name, const char *number)
{
    return mlflow_at(mlflow_ask("GET model-versions/get", numbered(name, number)), "model_version");
}

static void set_alias(const char *name, const char *alias, const char *number)
{
    mlflow_ask("POST registered-models/alias",
               json_pack("{s:s, s:s, s:s}", "name", name, "alias", alias, "version", number));
}

static json_t *aliased(const char *name, const char *alias)
{
    return json_pack("{s:s, s:s}", "name", name, "alias", alias);
}

static size_t found(const char *search, const char *member, const char *filter)
{
    return json_array_size(mlflow_at(mlflow_ask(search, json_pack("{s:s}", "filter", filter)), member));
}

static size_t models_found(const char *filter)
{
    return found("GET registered-models/search", "registered_models", filter);
}

static size_t versions_found(const char *filter)
{
    return found("GET model-versions/search", "model_versions", filter);
}

/* --- names and versions --- */

START_TEST(a_registered_model_keeps_its_description_tags_and_versions)
{
    mlflow_ask("POST registered-models/create",
               json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "name", "main.ml.digits", "description", "d", "tags",
                         "key", "team", "value", "a"));
    ck_assert_str_eq(add("main.ml.digits"), "1");
    mlflow.now_ms += 5;
    ck_assert_str_eq(add("main.ml.digits"), "2");
    mlflow_reopen();
    json_t *shown = model("main.ml.digits");
    ck_assert_str_eq(mlflow_text(shown, "description"), "d");
    ck_assert_str_eq(mlflow_text(shown, "tags.0.value"), "a");
    ck_assert_str_eq(mlflow_text(shown, "creation_timestamp"), "1700000000000");
    ck_assert_str_eq(mlflow_text(shown, "last_updated_timestamp"), "1700000000005");
    ck_assert_uint_eq(json_array_size(mlflow_at(shown, "latest_versions")), 1);
    ck_assert_str_eq(mlflow_text(shown, "latest_versions.0.version"), "2");
    json_t *first = version("main.ml.digits", "1");
    ck_assert_str_eq(mlflow_text(first, "status"), "READY");
    ck_assert_str_eq(mlflow_text(first, "current_stage"), "None");
    ck_assert_str_eq(mlflow_text(first, "user_id"), "ada");
    ck_assert_str_eq(mlflow_text(first, "source"), "s3://bucket/model");
}
END_TEST

START_TEST(the_number_of_a_deleted_version_is_not_given_again)
{
    make("m");
    add("m");
    add("m");
    mlflow_ask("DELETE model-versions/delete", numbered("m", "2"));
    mlflow_refuse("GET model-versions/get", numbered("m", "2"), TRACKING_RESOURCE_DOES_NOT_EXIST,
                  "version=2");
    ck_assert_str_eq(add("m"), "3");
}
END_TEST

START_TEST(a_deleted_model_leaves_nothing_to_one_of_its_name)
{
    make("m");
    add("m");
    set_alias("m", "best", "1");
    mlflow_ask("POST registered-models/set-tag",
               json_pack("{s:s, s:s, s:s}", "name", "m", "key", "a", "value", "b"));
    mlflow_ask("POST model-versions/set-tag",
               json_pack("{s:s, s:s, s:s, s:s}", "name", "m", "version", "1", "key", "a", "value", "b"));
    mlflow_ask("DELETE registered-models/delete", named("m"));
    mlflow_refuse("GET registered-models/get", named("m"), TRACKING_RESOURCE_DOES_NOT_EXIST,
                  "name=m not found");
    make("m");
    json_t *shown = model("m");
    ck_assert_uint_eq(json_array_size(mlflow_at(shown, "tags")), 0);
    ck_assert_uint_eq(json_array_size(mlflow_at(shown, "aliases")), 0);
    ck_assert_uint_eq(json_array_size(mlflow_at(shown, "latest_versions")), 0);
    ck_assert_str_eq(add("m"), "1");
    ck_assert_uint_eq(json_array_size(mlflow_at(version("m", "1"), "tags")), 0);
}
END_TEST

START_TEST(a_renamed_model_keeps_what_is_below_it)
{
    make("a");
    make("b");
    add("a");
    set_alias("a", "best", "1");
    mlflow_ask("POST registered-models/rename", json_pack("{s:s, s:s}", "name", "a", "new_name", "c"));
    ck_assert_str_eq(
        mlflow_text(mlflow_ask("GET registered-models/alias", aliased("c", "best")), "model_version.name"),
        "c");
    mlflow_refuse("GET registered-models/get", named("a"), TRACKING_RESOURCE_DOES_NOT_EXIST, "a");
    mlflow_refuse("POST registered-models/rename", json_pack("{s:s, s:s}", "name", "c", "new_name", "b"),
                  TRACKING_RESOURCE_ALREADY_EXISTS, "b");
}
END_TEST

START_TEST(names_that_clients_cannot_make_paths_of_are_refused)
{
    static const char *const wrong[] = {"", " ", "a/b", "a:b", ".", ".."};
    char name[LIMIT_REGISTRY_NAME + 2] = {0};
    memset(name, 'n', sizeof name - 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mlflow_refuse("POST registered-models/create", named(wrong[i]), TRACKING_INVALID_PARAMETER_VALUE,
                      "name");
    }
    mlflow_refuse("POST registered-models/create", named(name), TRACKING_INVALID_PARAMETER_VALUE, "256");
    make("m");
    mlflow_refuse("POST registered-models/create", named("m"), TRACKING_RESOURCE_ALREADY_EXISTS,
                  "Registered Model (name=m) already exists.");
}
END_TEST

/* --- aliases and stages --- */

START_TEST(an_alias_is_of_one_version_and_goes_with_it)
{
    make("m");
    add("m");
    add("m");
    set_alias("m", "best", "1");
    set_alias("m", "best", "2");
    json_t *best = mlflow_ask("GET registered-models/alias", aliased("m", "best"));
    ck_assert_str_eq(mlflow_text(best, "model_version.version"), "2");
    ck_assert_str_eq(mlflow_text(best, "model_version.aliases.0"), "best");
    ck_assert_uint_eq(json_array_size(mlflow_at(version("m", "1"), "aliases")), 0);
    ck_assert_str_eq(mlflow_text(model("m"), "aliases.0.version"), "2");
    mlflow_ask("DELETE model-versions/delete", numbered("m", "2"));
    mlflow_refuse("GET registered-models/alias", aliased("m", "best"), TRACKING_INVALID_PARAMETER_VALUE,
                  "Registered model alias best not found.");
    json_t *newest = mlflow_ask("GET registered-models/alias", aliased("m", "Latest"));
    ck_assert_str_eq(mlflow_text(newest, "model_version.version"), "1");
}
END_TEST

START_TEST(an_alias_that_clients_take_for_a_version_is_refused)
{
    static const char *const wrong[] = {"", "a b", "latest", "LATEST", "v1", "V20"};
    make("m");
    add("m");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mlflow_refuse("POST registered-models/alias",
                      json_pack("{s:s, s:s, s:i}", "name", "m", "alias", wrong[i], "version", 1),
                      TRACKING_INVALID_PARAMETER_VALUE, "alias");
    }
    set_alias("m", "v", "1");
    set_alias("m", "v1a", "1");
}
END_TEST

START_TEST(a_stage_has_its_newest_version_and_others_go_to_the_archive_where_asked)
{
    make("m");
    add("m");
    add("m");
    static const char *const numbers[] = {"1", "2"};
    for (size_t i = 0; i < 2; i++) {
        mlflow_ask("POST model-versions/transition-stage",
                   json_pack("{s:s, s:s, s:s, s:b}", "name", "m", "version", numbers[i], "stage",
                             "production", "archive_existing_versions", 1));
    }
    ck_assert_str_eq(mlflow_text(version("m", "1"), "current_stage"), "Archived");
    json_t *latest = mlflow_ask("POST registered-models/get-latest-versions", named("m"));
    ck_assert_uint_eq(json_array_size(mlflow_at(latest, "model_versions")), 2);
    latest = mlflow_ask("POST registered-models/get-latest-versions",
                        json_pack("{s:s, s:[s]}", "name", "m", "stages", "PRODUCTION"));
    ck_assert_uint_eq(json_array_size(mlflow_at(latest, "model_versions")), 1);
    ck_assert_str_eq(mlflow_text(latest, "model_versions.0.version"), "2");
    mlflow_refuse("POST model-versions/transition-stage",
                  json_pack("{s:s, s:s, s:s}", "name", "m", "version", "1", "stage", "Best"),
                  TRACKING_INVALID_PARAMETER_VALUE, "None, Staging, Production, Archived");
    mlflow_refuse("POST model-versions/transition-stage",
                  json_pack("{s:s, s:s, s:s, s:b}", "name", "m", "version", "1", "stage", "None",
                            "archive_existing_versions", 1),
                  TRACKING_INVALID_PARAMETER_VALUE, "not an Active stage");
}
END_TEST

/* --- searching --- */

START_TEST(versions_are_found_by_name_number_run_and_tag_the_last_changed_first)
{
    make("a");
    make("b");
    mlflow_ask("POST model-versions/create",
               json_pack("{s:s, s:s, s:s, s:[{s:s, s:s}]}", "name", "a", "source", "s3://bucket/one",
                         "run_id", "abc", "tags", "key", "t", "value", "x"));
    add("a");
    mlflow.now_ms++;
    add("b");
    ck_assert_uint_eq(versions_found(""), 3);
    ck_assert_uint_eq(versions_found("name = 'a'"), 2);
    ck_assert_uint_eq(versions_found("name = 'a' AND version_number > 1"), 1);
    ck_assert_uint_eq(versions_found("run_id IN ('abc')"), 1);
    ck_assert_uint_eq(versions_found("tags.t = 'x' AND source_path LIKE '%/one'"), 1);
    json_t *all = mlflow_ask("GET model-versions/search", json_object());
    ck_assert_str_eq(mlflow_text(all, "model_versions.0.name"), "b");
    ck_assert_str_eq(mlflow_text(all, "model_versions.1.version"), "2");
    json_t *page = mlflow_ask("GET model-versions/search",
                              json_pack("{s:s, s:s}", "order_by", "version_number ASC", "max_results", "2"));
    ck_assert_str_eq(mlflow_text(page, "model_versions.0.name"), "a");
    json_t *rest = mlflow_ask("GET model-versions/search",
                              json_pack("{s:s, s:s, s:s}", "order_by", "version_number ASC", "max_results",
                                        "2", "page_token", mlflow_text(page, "next_page_token")));
    ck_assert_uint_eq(json_array_size(mlflow_at(rest, "model_versions")), 1);
    mlflow_refuse("GET model-versions/search", json_pack("{s:s}", "filter", "metrics.a > 1"),
                  TRACKING_INVALID_PARAMETER_VALUE, "versions of models have no metrics");
}
END_TEST

START_TEST(prompts_are_shown_only_to_who_asks_for_them)
{
    make("m");
    add("m");
    mlflow_ask("POST registered-models/create", json_pack("{s:s, s:[{s:s, s:s}]}", "name", "greeting", "tags",
                                                          "key", "mlflow.prompt.is_prompt", "value", "true"));
    mlflow_ask("POST model-versions/create",
               json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "name", "greeting", "source", "text", "tags", "key",
                         "mlflow.prompt.is_prompt", "value", "true"));
    ck_assert_uint_eq(models_found(""), 1);
    ck_assert_uint_eq(models_found("tags.`mlflow.prompt.is_prompt` = 'true'"), 1);
    ck_assert_uint_eq(models_found("tags.`mlflow.prompt.is_prompt` != 'true' AND name LIKE '%'"), 1);
    ck_assert_uint_eq(versions_found("name = 'greeting'"), 0);
    ck_assert_uint_eq(versions_found("tags.`mlflow.prompt.is_prompt` = 'true'"), 1);
}
END_TEST

/* --- what a version is made of --- */

START_TEST(a_version_of_a_logged_model_has_its_files_and_its_run)
{
    json_t *logged = mlflow_ask("POST logged-models", json_pack("{s:s, s:s, s:s}", "experiment_id", "0",
                                                                "name", "first", "source_run_id", "abc"));
    const char *id = mlflow_text(logged, "model.info.model_id");
    const char *uri = mlflow_text(logged, "model.info.artifact_uri");
    autofree char *source = xprintf("models:/%s", id);
    make("m");
    mlflow_ask("POST model-versions/create",
               json_pack("{s:s, s:s, s:s}", "name", "m", "source", source, "model_id", id));
    ck_assert_str_eq(mlflow_text(version("m", "1"), "run_id"), "abc");
    ck_assert_str_eq(mlflow_text(version("m", "1"), "source"), source);
    make("copy");
    mlflow_ask("POST model-versions/create", from("copy", "models:/m/latest"));
    ck_assert_str_eq(mlflow_text(version("copy", "1"), "source"), "models:/m/1");
    mlflow_ask("DELETE logged-models/{model_id}", json_pack("{s:s}", "model_id", id));
    mlflow_ask("DELETE model-versions/delete", numbered("m", "1"));
    json_t *place = mlflow_ask("GET model-versions/get-download-uri", numbered("copy", "1"));
    ck_assert_str_eq(mlflow_text(place, "artifact_uri"), uri);
    mlflow_refuse("POST model-versions/create", from("m", source), TRACKING_INVALID_PARAMETER_VALUE,
                  "model_id");
}
END_TEST

START_TEST(files_on_the_server_are_taken_only_from_the_run_that_has_them)
{
    static const char *const wrong[] = {
        "/etc",
        "/etc/a:b",
        "etc",
        "file:///etc",
        "FILE:/etc",
        "mlflow-artifacts:/0",
        "mlflow-artifacts:/0/other/artifacts/model",
        "MLFLOW-ARTIFACTS:/0",
        "http://host/api/2.0/mlflow-artifacts/artifacts/0",
        "runs:/other/model",
        "s3://bucket/../x",
        "",
    };
    const char *run = mlflow_run("0", "first");
    autofree char *artifacts = xprintf("mlflow-artifacts:/0/%s/artifacts", run);
    autofree char *beside = xprintf("%s-not", artifacts);
    autofree char *above = xprintf("%s/../../x", artifacts);
    autofree char *below = xprintf("%s/model", artifacts);
    make("m");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mlflow_refuse("POST model-versions/create",
                      json_pack("{s:s, s:s, s:s}", "name", "m", "source", wrong[i], "run_id", run),
                      TRACKING_INVALID_PARAMETER_VALUE, "Invalid model version source");
    }
    mlflow_refuse("POST model-versions/create",
                  json_pack("{s:s, s:s, s:s}", "name", "m", "source", beside, "run_id", run),
                  TRACKING_INVALID_PARAMETER_VALUE, "run_id");
    mlflow_refuse("POST model-versions/create",
                  json_pack("{s:s, s:s, s:s}", "name", "m", "source", above, "run_id", run),
                  TRACKING_INVALID_PARAMETER_VALUE, "..");
    mlflow_refuse("POST model-versions/create", from("m", below), TRACKING_INVALID_PARAMETER_VALUE, "run_id");
    json_t *made = mlflow_ask("POST model-versions/create",
                              json_pack("{s:s, s:s, s:s}", "name", "m", "source", below, "run_id", run));
    ck_assert_str_eq(mlflow_text(made, "model_version.version"), "1");
}
END_TEST

START_TEST(a_model_has_at_most_as_many_tags_as_can_be_shown)
{
    json_t *tags = json_array();
    for (int i = 0; i <= LIMIT_REGISTRY_TAGS; i++) {
        autofree char *key = xprintf("k%d", i);
        json_array_append_new(tags, json_pack("{s:s, s:s}", "key", key, "value", "v"));
    }
    mlflow_refuse("POST registered-models/create", json_pack("{s:s, s:O}", "name", "m", "tags", tags),
                  TRACKING_INVALID_PARAMETER_VALUE, "at most 100 tags");
    json_array_remove(tags, LIMIT_REGISTRY_TAGS);
    mlflow_ask("POST registered-models/create", json_pack("{s:s, s:o}", "name", "m", "tags", tags));
    mlflow_ask("POST registered-models/set-tag",
               json_pack("{s:s, s:s, s:s}", "name", "m", "key", "k7", "value", "w"));
    mlflow_refuse("POST registered-models/set-tag", json_pack("{s:s, s:s}", "name", "m", "key", "more"),
                  TRACKING_INVALID_PARAMETER_VALUE, "at most 100 tags");
}
END_TEST

/* --- databases from before there was a registry --- */

START_TEST(a_database_without_a_registry_gets_one_and_keeps_its_runs)
{
    const char *run = mlflow_run("0", "old");
    tracking_close(mlflow.tracking);
    mlflow.tracking = NULL;
    mlflow_meddle(
        "ALTER TABLE runs DROP COLUMN owner; ALTER TABLE runs DROP COLUMN project; "
        "ALTER TABLE models DROP COLUMN owner; ALTER TABLE models DROP COLUMN project; "
        "DROP TABLE removals; DROP INDEX models_source; DROP INDEX points_logged; ALTER TABLE points DROP "
        "COLUMN number; "
        "ALTER TABLE points DROP COLUMN run; DROP TABLE registered_models; DROP TABLE registered_model_tags; "
        "DROP TABLE registered_model_aliases; DROP TABLE model_versions; "
        "DROP TABLE model_version_tags; PRAGMA user_version = 2");
    mlflow_reopen();
    ck_assert_str_eq(mlflow_text(mlflow_get(run), "info.run_name"), "old");
    make("m");
    ck_assert_str_eq(add("m"), "1");
    mlflow_reopen();
    ck_assert_uint_eq(versions_found("name = 'm'"), 1);
}
END_TEST

Suite *mlflow_registry_suite(void)
{
    Suite *suite = suite_create("mlflow-registry");
    TCase *tests = tcase_create("registry");
    tcase_add_checked_fixture(tests, mlflow_setup, mlflow_teardown);
    tcase_add_test(tests, a_registered_model_keeps_its_description_tags_and_versions);
    tcase_add_test(tests, the_number_of_a_deleted_version_is_not_given_again);
    tcase_add_test(tests, a_deleted_model_leaves_nothing_to_one_of_its_name);
    tcase_add_test(tests, a_renamed_model_keeps_what_is_below_it);
    tcase_add_test(tests, names_that_clients_cannot_make_paths_of_are_refused);
    tcase_add_test(tests, an_alias_is_of_one_version_and_goes_with_it);
    tcase_add_test(tests, an_alias_that_clients_take_for_a_version_is_refused);
    tcase_add_test(tests, a_stage_has_its_newest_version_and_others_go_to_the_archive_where_asked);
    tcase_add_test(tests, versions_are_found_by_name_number_run_and_tag_the_last_changed_first);
    tcase_add_test(tests, prompts_are_shown_only_to_who_asks_for_them);
    tcase_add_test(tests, a_version_of_a_logged_model_has_its_files_and_its_run);
    tcase_add_test(tests, files_on_the_server_are_taken_only_from_the_run_that_has_them);
    tcase_add_test(tests, a_model_has_at_most_as_many_tags_as_can_be_shown);
    tcase_add_test(tests, a_database_without_a_registry_gets_one_and_keeps_its_runs);
    suite_add_tcase(suite, tests);
    return suite;
}
