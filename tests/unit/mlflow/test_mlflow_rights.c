/* SPDX-License-Identifier: Apache-2.0 */
/* Who finds, sees and changes which experiments, runs and models. authorize.h says what people may; here ada
 * and bob are users of the project vision, and eve is of none. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

static const char *sender;

static bool is_member(void)
{
    return strcmp(sender, "eve") != 0;
}

static bool have(const struct tracking_rights *rights, enum tracking_right right, const char *owner,
                 const char *project)
{
    bool own = strcmp(owner, sender) == 0, all = strcmp(sender, "root") == 0;
    bool in_project = strcmp(project, "vision") == 0 && is_member();
    switch (right) {
    case TRACKING_FINDS:
        return own || *owner == '\0' || in_project;
    case TRACKING_SEES:
    case TRACKING_ADDS:
        return all || own || *owner == '\0' || in_project;
    case TRACKING_CHANGES:
        return all || own;
    case TRACKING_USES:
        return in_project || strcmp(project, "default") == 0;
    }
    return false;
}

static const struct tracking_rights rights = {.have = have};

static void act_as(const char *name)
{
    sender = name;
    mlflow.sender = name;
    mlflow.rights = &rights;
}

#define HIDDEN(call, body, text) mlflow_refuse(call, body, TRACKING_RESOURCE_DOES_NOT_EXIST, text)
#define DENIED(call, body, text) mlflow_refuse(call, body, TRACKING_PERMISSION_DENIED, text)

static const char *make(const char *name, const char *project)
{
    json_t *body = json_pack("{s:s}", "name", name);
    if (project != NULL) {
        json_object_set_new(body, "tags",
                            json_pack("[{s:s, s:s}]", "key", "gpuctl.project", "value", project));
    }
    return mlflow_text(mlflow_ask("POST experiments/create", body), "experiment_id");
}

static const char *find(const char *name)
{
    return mlflow_text(mlflow_ask("GET experiments/get-by-name", json_pack("{s:s}", "experiment_name", name)),
                       "experiment.experiment_id");
}

static size_t found(const char *call, json_t *body, const char *member)
{
    return json_array_size(json_object_get(mlflow_ask(call, body), member));
}

static size_t runs_in(const char *experiment)
{
    return found("POST runs/search", json_pack("{s:[s]}", "experiment_ids", experiment), "runs");
}

START_TEST(an_experiment_of_one_person_does_not_exist_for_another)
{
    act_as("ada");
    const char *hers = make("mnist", NULL);
    act_as("eve");
    HIDDEN("GET experiments/get", json_pack("{s:s}", "experiment_id", hers), "No Experiment");
    HIDDEN("GET experiments/get-by-name", json_pack("{s:s}", "experiment_name", "mnist"), "Could not find");
    HIDDEN("POST runs/create", json_pack("{s:s}", "experiment_id", hers), "No Experiment");
    HIDDEN("POST experiments/delete", json_pack("{s:s}", "experiment_id", hers), "No Experiment");
    ck_assert_uint_eq(found("POST experiments/search", json_object(), "experiments"), 1); /* Default */
    const char *own = make("mnist", NULL);
    ck_assert_str_ne(own, hers);
    ck_assert_str_eq(find("mnist"), own);
    act_as("ada");
    ck_assert_str_eq(find("mnist"), hers);
}
END_TEST

START_TEST(people_of_a_project_share_its_experiments_and_change_what_is_theirs)
{
    act_as("ada");
    const char *experiment = make("mnist", "vision");
    const char *hers = mlflow_run(experiment, "first");
    act_as("bob");
    ck_assert_str_eq(find("mnist"), experiment);
    mlflow_refuse("POST experiments/create",
                  json_pack("{s:s, s:[{s:s, s:s}]}", "name", "mnist", "tags", "key", "gpuctl.project",
                            "value", "vision"),
                  TRACKING_RESOURCE_ALREADY_EXISTS, "already exists");
    const char *his = mlflow_run(experiment, "second");
    ck_assert_uint_eq(runs_in(experiment), 2);
    mlflow_log(his, "loss", 1, 1, 1);
    ck_assert_str_eq(mlflow_text(mlflow_get(hers), "info.run_name"), "first");
    DENIED("POST runs/set-tag", json_pack("{s:s, s:s, s:s}", "run_id", hers, "key", "k", "value", "v"),
           "you may read it");
    DENIED("POST runs/delete", json_pack("{s:s}", "run_id", hers), "belongs to ada, in project vision");
    DENIED("POST experiments/delete", json_pack("{s:s}", "experiment_id", experiment), "not change");
    act_as("eve");
    HIDDEN("GET runs/get", json_pack("{s:s}", "run_id", his), "not found");
    ck_assert_uint_eq(runs_in(experiment), 0);
}
END_TEST

START_TEST(in_what_is_everybodys_each_sees_runs_of_its_own)
{
    act_as("ada");
    const char *hers = mlflow_run("0", "a");
    act_as("eve");
    const char *own = mlflow_run("0", "e");
    ck_assert_uint_eq(runs_in("0"), 1);
    HIDDEN("GET runs/get", json_pack("{s:s}", "run_id", hers), "not found");
    HIDDEN("GET metrics/get-history", json_pack("{s:s, s:s}", "run_id", hers, "metric_key", "loss"),
           "not found");
    HIDDEN("POST runs/log-metric",
           json_pack("{s:s, s:s, s:f, s:i}", "run_id", hers, "key", "loss", "value", 0.0, "timestamp", 1),
           "not found");
    DENIED("POST experiments/update", json_pack("{s:s, s:s}", "experiment_id", "0", "new_name", "mine"),
           "belongs to all");
    act_as("root");
    ck_assert_uint_eq(runs_in("0"), 2);
    mlflow_ask("POST runs/delete", json_pack("{s:s}", "run_id", own));
}
END_TEST

START_TEST(an_operators_word_does_not_lead_to_what_is_others)
{
    act_as("ada");
    const char *hers = make("mnist", NULL);
    act_as("root");
    HIDDEN("GET experiments/get-by-name", json_pack("{s:s}", "experiment_name", "mnist"), "Could not find");
    mlflow_ask("GET experiments/get", json_pack("{s:s}", "experiment_id", hers));
    ck_assert_str_ne(make("mnist", NULL), hers);
}
END_TEST

START_TEST(setting_the_tag_of_the_project_moves_an_experiment)
{
    act_as("ada");
    const char *experiment = make("mnist", NULL);
    const char *run = mlflow_run(experiment, "r");
    DENIED(
        "POST experiments/set-experiment-tag",
        json_pack("{s:s, s:s, s:s}", "experiment_id", experiment, "key", "gpuctl.project", "value", "speech"),
        "no project 'speech' that you may use");
    act_as("bob");
    HIDDEN("GET runs/get", json_pack("{s:s}", "run_id", run), "not found");
    act_as("ada");
    mlflow_ask("POST experiments/set-experiment-tag",
               json_pack("{s:s, s:s, s:s}", "experiment_id", experiment, "key", "gpuctl.project", "value",
                         "vision"));
    act_as("bob");
    mlflow_get(run);
    act_as("ada");
    mlflow_ask("POST experiments/delete-experiment-tag",
               json_pack("{s:s, s:s}", "experiment_id", experiment, "key", "gpuctl.project"));
    act_as("bob");
    HIDDEN("GET runs/get", json_pack("{s:s}", "run_id", run), "not found");
}
END_TEST

START_TEST(what_is_not_there_has_no_project)
{
    act_as("eve");
    HIDDEN("POST experiments/set-experiment-tag",
           json_pack("{s:s, s:s, s:s}", "experiment_id", "77", "key", "gpuctl.project", "value", "default"),
           "No Experiment");
    HIDDEN("POST experiments/update", json_pack("{s:s, s:s}", "experiment_id", "77", "new_name", "a"),
           "No Experiment");
    HIDDEN("POST registered-models/set-tag",
           json_pack("{s:s, s:s, s:s}", "name", "none", "key", "gpuctl.project", "value", "default"),
           "not found");
}
END_TEST

START_TEST(a_rank_meets_by_name_what_is_in_its_project_or_its_owners)
{
    act_as("ada");
    const char *elsewhere = make("mnist", "vision");
    const char *own = make("cifar", NULL);
    ck_assert_str_eq(find("mnist"), elsewhere);
    mlflow.own_run = "00000000000000000000000000000001";
    ck_assert_str_eq(find("cifar"), own);
    ck_assert_str_eq(find("mnist"), elsewhere); /* she made it */
    act_as("bob");
    HIDDEN("GET experiments/get-by-name", json_pack("{s:s}", "experiment_name", "mnist"), "Could not find");
    mlflow.project = "vision";
    ck_assert_str_eq(find("mnist"), elsewhere);
}
END_TEST

START_TEST(a_job_makes_its_experiment_for_its_owner_and_its_project)
{
    char id[TRACKING_RUN_ID_BYTES];
    act_as("ada");
    const char *hers = make("mnist", NULL);
    act_as("eve");
    tracking_draw_run_id(id);
    struct tracking_job job = {.run_id = id,
                               .experiment = "mnist",
                               .owner = "eve",
                               .rights = &rights,
                               .experiment_id = hers,
                               .job_id = "abcdefgh"};
    ck_assert(tracking_job_begin(mlflow.tracking, &job, &mlflow.error));
    ck_assert_str_ne(mlflow_text(mlflow_get(id), "info.experiment_id"), hers);
    act_as("bob");
    tracking_draw_run_id(id);
    job.owner = "bob";
    job.project = "vision";
    ck_assert(tracking_job_begin(mlflow.tracking, &job, &mlflow.error));
    const char *shared = mlflow_text(mlflow_get(id), "info.experiment_id");
    act_as("ada");
    ck_assert_str_eq(mlflow_text(mlflow_get(id), "info.experiment_id"), shared);
    DENIED("POST runs/delete", json_pack("{s:s}", "run_id", id), "belongs to bob, in project vision");
}
END_TEST

START_TEST(a_run_of_a_job_from_before_there_were_owners_is_its_owners_and_another_is_seen_by_all)
{
    const char *plain = mlflow_run("0", "plain");
    char id[TRACKING_RUN_ID_BYTES];
    tracking_draw_run_id(id);
    const struct tracking_job job = {
        .run_id = id, .owner = "grace", .project = "vision", .job_id = "abcdefgh"};
    ck_assert(tracking_job_begin(mlflow.tracking, &job, &mlflow.error));
    tracking_close(mlflow.tracking);
    mlflow.tracking = NULL;
    mlflow_meddle("ALTER TABLE runs DROP COLUMN owner; ALTER TABLE runs DROP COLUMN project; "
                  "ALTER TABLE models DROP COLUMN owner; ALTER TABLE models DROP COLUMN project; "
                  "PRAGMA user_version = 5");
    mlflow_reopen();
    act_as("grace");
    mlflow_tag(id, "k", "v");
    act_as("bob");
    mlflow_get(id);
    DENIED("POST runs/delete", json_pack("{s:s}", "run_id", id), "belongs to grace, in project vision");
    act_as("eve");
    HIDDEN("GET runs/get", json_pack("{s:s}", "run_id", id), "not found");
    mlflow_get(plain);
    DENIED("POST runs/delete", json_pack("{s:s}", "run_id", plain), "belongs to all");
}
END_TEST

static void make_registered(const char *name, const char *project)
{
    mlflow_ask("POST registered-models/create", json_pack("{s:s, s:[{s:s, s:s}]}", "name", name, "tags",
                                                          "key", "gpuctl.project", "value", project));
}

static json_t *version_of(const char *run, const char *name)
{
    autofree char *source = xprintf("%s/model", mlflow_text(mlflow_get(run), "info.artifact_uri"));
    return json_pack("{s:s, s:s, s:s}", "name", name, "source", source, "run_id", run);
}

START_TEST(registered_models_have_owners_and_projects_too)
{
    act_as("ada");
    make_registered("net", "vision");
    make_registered("secret", "default");
    const char *run = mlflow_run("0", "r");
    mlflow_ask("POST model-versions/create", version_of(run, "net"));
    act_as("bob");
    mlflow_ask("GET registered-models/get", json_pack("{s:s}", "name", "net"));
    const char *his = mlflow_run("0", "r");
    mlflow_ask("POST model-versions/create", version_of(his, "net"));
    mlflow_ask("DELETE model-versions/delete", json_pack("{s:s, s:s}", "name", "net", "version", "2"));
    DENIED("DELETE model-versions/delete", json_pack("{s:s, s:s}", "name", "net", "version", "1"),
           "not change");
    DENIED("POST registered-models/alias",
           json_pack("{s:s, s:s, s:s}", "name", "net", "alias", "best", "version", "1"), "not change");
    HIDDEN("GET registered-models/get", json_pack("{s:s}", "name", "secret"), "not found");
    ck_assert_uint_eq(found("GET model-versions/search", json_object(), "model_versions"), 1);
    act_as("eve");
    ck_assert_uint_eq(found("GET registered-models/search", json_object(), "registered_models"), 0);
    HIDDEN("GET model-versions/get", json_pack("{s:s, s:s}", "name", "net", "version", "1"), "not found");
    make_registered("net", "default");
    HIDDEN("POST model-versions/create",
           json_pack("{s:s, s:s, s:s}", "name", "net", "source", "s3://bucket/net", "run_id", run),
           "not found");
    mlflow_refuse("POST model-versions/create",
                  json_pack("{s:s, s:s}", "name", "net", "source", "models:/secret/1"),
                  TRACKING_RESOURCE_DOES_NOT_EXIST, "name=secret not found");
}
END_TEST

START_TEST(logged_models_belong_to_who_made_them)
{
    act_as("ada");
    const char *hers = mlflow_text(
        mlflow_ask("POST logged-models", json_pack("{s:s, s:s}", "name", "net", "experiment_id", "0")),
        "model.info.model_id");
    autofree char *get = xprintf("GET logged-models/%s", hers);
    act_as("eve");
    HIDDEN(get, json_pack("{s:s}", "model_id", hers), "not found");
    ck_assert_uint_eq(
        found("POST logged-models/search", json_pack("{s:[s]}", "experiment_ids", "0"), "models"), 0);
    act_as("ada");
    ck_assert_uint_eq(
        found("POST logged-models/search", json_pack("{s:[s]}", "experiment_ids", "0"), "models"), 1);
}
END_TEST

static struct tracking_place place;

static bool allowed(enum tracking_right right, const char *path)
{
    return tracking_artifact_allowed(mlflow.tracking, &rights, right, path, &place, &mlflow.error);
}

START_TEST(artifacts_belong_to_the_run_on_whose_folder_they_are)
{
    act_as("ada");
    const char *shared = make("mnist", "vision");
    const char *run = mlflow_run(shared, "r"), *secret = mlflow_run("0", "s");
    autofree char *file = xprintf("%s/%s/artifacts/model/net.pkl", shared, run);
    autofree char *folder = xprintf("%s/%s/artifacts", shared, run);
    autofree char *hidden = xprintf("0/%s/artifacts/x", secret);
    autofree char *moved = xprintf("1000/%s/artifacts/x", secret);
    autofree char *inside = xprintf("0/%s/artifacts/a/%s/artifacts/x", secret, run);
    ck_assert(allowed(TRACKING_CHANGES, file) && allowed(TRACKING_SEES, folder));
    act_as("bob");
    ck_assert(allowed(TRACKING_SEES, file) && !allowed(TRACKING_CHANGES, file));
    ck_assert_int_eq(mlflow.error.code, TRACKING_PERMISSION_DENIED);
    ck_assert(!allowed(TRACKING_SEES, hidden) && !allowed(TRACKING_SEES, inside));
    ck_assert_int_eq(mlflow.error.code, TRACKING_RESOURCE_DOES_NOT_EXIST);
    act_as("ada");
    ck_assert(allowed(TRACKING_CHANGES, hidden) && !allowed(TRACKING_SEES, moved));
    make_registered("net", "vision");
    mlflow_ask("POST model-versions/create",
               json_pack("{s:s, s:s, s:s}", "name", "net", "source",
                         mlflow_text(mlflow_get(secret), "info.artifact_uri"), "run_id", secret));
    act_as("bob");
    ck_assert(allowed(TRACKING_SEES, hidden) && !allowed(TRACKING_CHANGES, hidden));
    act_as("eve");
    static const char *const nobodys[] = {"", "0", "artifacts", "artifacts/x", "other/file", "0/artifacts"};
    for (size_t i = 0; i < sizeof nobodys / sizeof nobodys[0]; i++) {
        ck_assert_msg(!allowed(TRACKING_SEES, nobodys[i]), "%s", nobodys[i]);
    }
    ck_assert(!allowed(TRACKING_SEES, file) && !allowed(TRACKING_CHANGES, hidden));
    act_as("root");
    ck_assert(allowed(TRACKING_CHANGES, file) && allowed(TRACKING_CHANGES, "other/file"));
}
END_TEST

START_TEST(an_artifact_says_which_attempt_its_run_is_of)
{
    act_as("ada");
    const char *run = mlflow_run("0", "r");
    autofree char *file = xprintf("0/%s/artifacts/model", run);
    ck_assert(allowed(TRACKING_SEES, file));
    ck_assert_str_eq(place.run_id, "");
    mlflow_tag(run, "gpuctl.job_id", "aaaaaaaaaaaaaaaa");
    ck_assert(allowed(TRACKING_SEES, file) && place.run_id[0] == '\0');
    static const char *const wrong[] = {"0", "-1", "x", "99999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mlflow_tag(run, "gpuctl.attempt", wrong[i]);
        ck_assert(allowed(TRACKING_SEES, file) && place.run_id[0] == '\0');
    }
    mlflow_tag(run, "gpuctl.attempt", "3");
    ck_assert(allowed(TRACKING_SEES, file));
    ck_assert_str_eq(place.run_id, run);
    ck_assert_str_eq(place.job_id, "aaaaaaaaaaaaaaaa");
    ck_assert_int_eq(place.attempt, 3);
    ck_assert_str_eq(file + place.folder, "/model");
    mlflow_tag(run, "gpuctl.job_id", "../aaaaaaaaaaaaa");
    ck_assert(allowed(TRACKING_SEES, file) && place.run_id[0] == '\0');
}
END_TEST

Suite *mlflow_rights_suite(void)
{
    Suite *suite = suite_create("mlflow-rights");
    TCase *tests = tcase_create("rights");
    tcase_add_checked_fixture(tests, mlflow_setup, mlflow_teardown);
    tcase_add_test(tests, an_experiment_of_one_person_does_not_exist_for_another);
    tcase_add_test(tests, people_of_a_project_share_its_experiments_and_change_what_is_theirs);
    tcase_add_test(tests, in_what_is_everybodys_each_sees_runs_of_its_own);
    tcase_add_test(tests, an_operators_word_does_not_lead_to_what_is_others);
    tcase_add_test(tests, setting_the_tag_of_the_project_moves_an_experiment);
    tcase_add_test(tests, what_is_not_there_has_no_project);
    tcase_add_test(tests, a_rank_meets_by_name_what_is_in_its_project_or_its_owners);
    tcase_add_test(tests, a_job_makes_its_experiment_for_its_owner_and_its_project);
    tcase_add_test(tests,
                   a_run_of_a_job_from_before_there_were_owners_is_its_owners_and_another_is_seen_by_all);
    tcase_add_test(tests, registered_models_have_owners_and_projects_too);
    tcase_add_test(tests, logged_models_belong_to_who_made_them);
    tcase_add_test(tests, artifacts_belong_to_the_run_on_whose_folder_they_are);
    tcase_add_test(tests, an_artifact_says_which_attempt_its_run_is_of);
    suite_add_tcase(suite, tests);
    return suite;
}
