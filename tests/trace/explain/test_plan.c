/* SPDX-License-Identifier: Apache-2.0 */
/* What would become of a job that is not submitted yet, and who would have to go for one that waits. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/harness/explain_rig.h"
#include "tests/trace/suites.h"

/* --- plans ---------------------------------------------------------------------------------------------- */

START_TEST(a_plan_that_fits_starts_now)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    quiet(c);
    ck_assert_int_eq(plan(c, .gpus = 2), ERR_NONE);
    autojson json_t *answer = answer_of(c);
    ck_assert(json_is_true(json_object_get(answer, "admitted")));
    ck_assert(json_is_null(json_object_get(answer, "reason")));
    ck_assert_int_eq(seconds_until(c, answer, "at"), 0);
    ck_assert_str_eq(text_at(answer, "start", "confidence"), "high");
    ck_assert_uint_eq(core_live_jobs(c->core), 0);
    ck_assert_ptr_null(c->trace.bytes != NULL && c->trace.length > 0 ? c->trace.bytes : NULL);
}
END_TEST

START_TEST(a_plan_that_would_wait_says_for_what)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "runs", .time_limit_ms = MINUTE_MS);
    plan(c, .gpus = 2);
    autojson json_t *answer = answer_of(c);
    expect_reason_in(answer, "NODES_BUSY",
                     "waits for 2 GPUs: 1 is free, 1 more when job runs ends, which is "
                     "expected to end in 1 min");
    expect_change_in(answer, "gpus", "with 1 GPU instead of 2 it would start now");
}
END_TEST

START_TEST(a_plan_that_would_be_refused_says_so_and_what_would_not)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    plan(c, .gpus = 4);
    autojson json_t *answer = answer_of(c);
    ck_assert(json_is_false(json_object_get(answer, "admitted")));
    ck_assert_str_eq(text_at(answer, "refusal", "field"), "gpus");
    ck_assert_str_eq(text_at(answer, "refusal", "detail"),
                     "the job needs 4 GPUs, and the most it can get is 2 of type A10 in pool default");
    ck_assert(json_is_null(json_object_get(answer, "start")));
    expect_change_in(answer, "gpus", "with 2 GPUs instead of 4 it would start now");
}
END_TEST

START_TEST(a_plan_with_a_need_waits_for_nodes_to_get_ready)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    plan(c, .environment = "k1");
    autojson json_t *answer = answer_of(c);
    expect_reason_in(
        answer, "STAGING",
        "no node has its environment ready; nodes prepare it when the job comes to the head of the queue");
    expect_orders(c, "a", "");
}
END_TEST

/* --- rehearsals and preemption -------------------------------------------------------------------------- */

START_TEST(a_rehearsal_names_who_would_go_and_what_they_lose)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "much", .gpus = 2);
    running(c, "much", "a");
    advance_beating(c, MINUTE_MS, "a b");
    submit(c, "less", .gpus = 2);
    running(c, "less", "b");
    advance_beating(c, MINUTE_MS, "a b");
    submit(c, "wait", .gpus = 2, .priority = 1);
    ck_assert_int_eq(cluster_ask(c, ASK_REHEARSE, "wait"), ERR_NONE);
    autojson json_t *answer = answer_of(c);
    const json_t *victims = json_object_get(answer, "victims");
    ck_assert_uint_eq(json_array_size(victims), 1);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(victims, 0), "id")), "less");
    ck_assert_int_eq((int64_t)json_number_value(json_object_get(answer, "loss_gpu_s")), 120);
    ck_assert(json_is_true(json_object_get(answer, "possible")));
    ck_assert(json_is_false(json_object_get(answer, "automatic")));
    ck_assert_int_eq(seconds_until(c, answer, "latest_at"), DEFAULT_GRACE_MS / 1000);
    expect_job(c, "less", JOB_RUNNING);
}
END_TEST

START_TEST(nobody_goes_for_a_job_whose_turn_is_later)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a");
    submit(c, "runs", .priority = 1);
    submit(c, "wait");
    cluster_ask(c, ASK_REHEARSE, "wait");
    autojson json_t *answer = answer_of(c);
    ck_assert(json_is_false(json_object_get(answer, "possible")));
    ck_assert(json_is_null(json_object_get(answer, "start")));
}
END_TEST

START_TEST(a_preempted_job_waits_again_at_its_old_place)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "runs");
    running(c, "runs", "a");
    submit(c, "wait");
    ck_assert_int_eq(preempt(c, "wait"), ERR_CONFLICT);
    ck_assert_int_eq(preempt(c, "runs"), ERR_NONE);
    ck_assert_int_eq(preempt(c, "runs"), ERR_CONFLICT);
    ck_assert_int_eq(preempt(c, "none"), ERR_NOT_FOUND);
    quiet(c);
    stopped(c, "runs", "a");
    expect(c, "[    0] member runs/1@a RUNNING -> EXITED\n"
              "[    0] member runs/1@a EXITED -> FLUSHED\n"
              "[    0] attempt runs/1 STOPPING -> ENDED\n"
              "[    0] job runs RUNNING -> QUEUED (PREEMPTED)\n"
              "[    0] job runs QUEUED -> PLACED on a:0\n"
              "[    0] attempt runs/2 RESERVED -> STARTED\n");
    expect_job(c, "wait", JOB_QUEUED);
}
END_TEST

Suite *plan_suite(void)
{
    Suite *suite = suite_create("plan");
    TCase *tests = tcase_create("plan");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_plan_that_fits_starts_now);
    tcase_add_test(tests, a_plan_that_would_wait_says_for_what);
    tcase_add_test(tests, a_plan_that_would_be_refused_says_so_and_what_would_not);
    tcase_add_test(tests, a_plan_with_a_need_waits_for_nodes_to_get_ready);
    tcase_add_test(tests, a_rehearsal_names_who_would_go_and_what_they_lose);
    tcase_add_test(tests, nobody_goes_for_a_job_whose_turn_is_later);
    tcase_add_test(tests, a_preempted_job_waits_again_at_its_old_place);
    suite_add_tcase(suite, tests);
    return suite;
}
