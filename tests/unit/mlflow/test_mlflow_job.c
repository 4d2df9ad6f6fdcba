/* SPDX-License-Identifier: Apache-2.0 */
/* The run of a job: its begin, its end, and a job that is tried again. */
#include <string.h>

#include "tests/unit/mlflow/mlflow_rig.h"
#include "tests/unit/mlflow/mlflow_suites.h"

static char id[TRACKING_RUN_ID_BYTES];

static void setup(void)
{
    mlflow_setup();
    tracking_draw_run_id(id);
}

static struct tracking_job job(int64_t attempt)
{
    return (struct tracking_job){.run_id = id,
                                 .experiment = "night",
                                 .run_name = "sweep",
                                 .owner = "grace",
                                 .project = "vision",
                                 .job_id = "abcdefgh",
                                 .attempt = attempt,
                                 .nodes = 2,
                                 .gpus = 8,
                                 .start_ms = 1700000000000 + attempt};
}

static void begin(int64_t attempt)
{
    const struct tracking_job begun = job(attempt);
    ck_assert_msg(tracking_job_begin(mlflow.tracking, &begun, &mlflow.error), "%s", mlflow.error.message);
}

static void end(enum tracking_status status, int64_t end_ms)
{
    ck_assert_msg(tracking_job_end(mlflow.tracking, id, status, end_ms, &mlflow.error), "%s",
                  mlflow.error.message);
}

static const char *tag(const char *name)
{
    return json_string_value(mlflow_value(mlflow_at(mlflow_get(id), "data.tags"), name));
}

static json_t *experiment(void)
{
    return mlflow_at(
        mlflow_ask("GET experiments/get-by-name", json_pack("{s:s}", "experiment_name", "night")),
        "experiment");
}

START_TEST(a_job_makes_its_run_and_its_experiment)
{
    begin(1);
    json_t *run = mlflow_get(id);
    ck_assert_str_eq(mlflow_text(run, "info.status"), "RUNNING");
    ck_assert_str_eq(mlflow_text(run, "info.run_name"), "sweep");
    ck_assert_str_eq(mlflow_text(run, "info.user_id"), "grace");
    ck_assert_str_eq(mlflow_text(run, "info.start_time"), "1700000000001");
    ck_assert_str_eq(mlflow_text(run, "info.experiment_id"), mlflow_text(experiment(), "experiment_id"));
    ck_assert_str_eq(tag("gpuctl.job_id"), "abcdefgh");
    ck_assert_str_eq(tag("gpuctl.attempt"), "1");
    ck_assert_str_eq(tag("gpuctl.nodes"), "2");
    ck_assert_str_eq(tag("gpuctl.gpus"), "8");
    ck_assert_str_eq(tag("gpuctl.project"), "vision");
    ck_assert_str_eq(tag("mlflow.user"), "grace");
    ck_assert_str_eq(tag("mlflow.source.name"), "sweep");
    ck_assert_str_eq(tag("mlflow.source.type"), "JOB");
}
END_TEST

START_TEST(without_names_a_run_of_the_experiment_default_gets_one)
{
    struct tracking_job nameless = job(1);
    nameless.experiment = NULL;
    nameless.run_name = NULL;
    ck_assert(tracking_job_begin(mlflow.tracking, &nameless, &mlflow.error));
    ck_assert_str_eq(mlflow_text(mlflow_get(id), "info.experiment_id"), "0");
    ck_assert_ptr_nonnull(strchr(mlflow_text(mlflow_get(id), "info.run_name"), '-'));
}
END_TEST

START_TEST(the_end_of_the_job_counts_whatever_clients_have_said)
{
    begin(1);
    mlflow_ask("POST runs/update",
               json_pack("{s:s, s:s, s:I}", "run_id", id, "status", "FINISHED", "end_time", (json_int_t)5));
    end(TRACKING_RUN_FAILED, 1700000000500);
    ck_assert_str_eq(mlflow_text(mlflow_get(id), "info.status"), "FAILED");
    ck_assert_str_eq(mlflow_text(mlflow_get(id), "info.end_time"), "1700000000500");
    mlflow_ask("POST runs/delete", json_pack("{s:s}", "run_id", id));
    end(TRACKING_RUN_KILLED, 1700000000600);
    ck_assert_str_eq(mlflow_text(mlflow_get(id), "info.status"), "KILLED");
}
END_TEST

START_TEST(another_attempt_goes_on_with_the_run)
{
    begin(1);
    mlflow_param(id, "rate", "0.1");
    end(TRACKING_RUN_FAILED, 1700000000500);
    begin(2);
    json_t *run = mlflow_get(id);
    ck_assert_str_eq(mlflow_text(run, "info.status"), "RUNNING");
    ck_assert_ptr_null(json_object_get(mlflow_at(run, "info"), "end_time"));
    ck_assert_str_eq(mlflow_text(run, "info.start_time"), "1700000000001");
    ck_assert_str_eq(mlflow_text(run, "data.params.0.value"), "0.1");
    ck_assert_str_eq(tag("gpuctl.attempt"), "2");
}
END_TEST

START_TEST(metrics_that_come_after_the_end_leave_a_run_that_has_ended_as_it_is)
{
    begin(1);
    end(TRACKING_RUN_FAILED, 1700000000500);
    struct tracking_job late = job(1);
    late.late = true;
    ck_assert(tracking_job_begin(mlflow.tracking, &late, &mlflow.error));
    ck_assert_str_eq(mlflow_text(mlflow_get(id), "info.status"), "FAILED");
    tracking_draw_run_id(id);
    ck_assert(tracking_job_begin(mlflow.tracking, &late, &mlflow.error));
    ck_assert_str_eq(mlflow_text(mlflow_get(id), "info.status"), "RUNNING");
}
END_TEST

START_TEST(a_deleted_experiment_comes_back_for_a_job)
{
    begin(1);
    const char *number = mlflow_text(experiment(), "experiment_id");
    mlflow_ask("POST experiments/delete", json_pack("{s:s}", "experiment_id", number));
    tracking_draw_run_id(id);
    begin(1);
    ck_assert_str_eq(mlflow_text(experiment(), "lifecycle_stage"), "active");
    ck_assert_str_eq(mlflow_text(mlflow_get(id), "info.experiment_id"), number);
}
END_TEST

START_TEST(the_end_of_a_run_that_is_not_there_is_an_error)
{
    ck_assert(!tracking_job_end(mlflow.tracking, id, TRACKING_RUN_FINISHED, 1, &mlflow.error));
    ck_assert_int_eq(mlflow.error.code, TRACKING_RESOURCE_DOES_NOT_EXIST);
    struct tracking_job wrong = job(1);
    wrong.run_id = "../x";
    ck_assert(!tracking_job_begin(mlflow.tracking, &wrong, &mlflow.error));
    ck_assert_int_eq(mlflow.error.code, TRACKING_INVALID_PARAMETER_VALUE);
}
END_TEST

START_TEST(an_error_is_shown_as_clients_read_it)
{
    static const struct tracking_error error = {TRACKING_RESOURCE_DOES_NOT_EXIST, "no \"run\""};
    struct text out = {0};
    tracking_error_render(&error, &out);
    ck_assert_str_eq(out.bytes,
                     "{\"error_code\": \"RESOURCE_DOES_NOT_EXIST\", \"message\": \"no \\\"run\\\"\"}");
    text_finish(&out);
    ck_assert_int_eq(tracking_code_http(error.code), 404);
}
END_TEST

Suite *mlflow_job_suite(void)
{
    Suite *suite = suite_create("mlflow-job");
    TCase *tests = tcase_create("job");
    tcase_add_checked_fixture(tests, setup, mlflow_teardown);
    tcase_add_test(tests, a_job_makes_its_run_and_its_experiment);
    tcase_add_test(tests, without_names_a_run_of_the_experiment_default_gets_one);
    tcase_add_test(tests, the_end_of_the_job_counts_whatever_clients_have_said);
    tcase_add_test(tests, another_attempt_goes_on_with_the_run);
    tcase_add_test(tests, metrics_that_come_after_the_end_leave_a_run_that_has_ended_as_it_is);
    tcase_add_test(tests, a_deleted_experiment_comes_back_for_a_job);
    tcase_add_test(tests, the_end_of_a_run_that_is_not_there_is_an_error);
    tcase_add_test(tests, an_error_is_shown_as_clients_read_it);
    suite_add_tcase(suite, tests);
    return suite;
}
