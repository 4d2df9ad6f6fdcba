/* SPDX-License-Identifier: Apache-2.0 */
/* Holds: a job that is kept back takes part in nothing, and keeps its place. */
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

START_TEST(a_held_job_lets_others_go_and_keeps_its_place)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "bbbb");
    submit(c, "cccc");
    submit(c, "dddd");
    quiet(c);
    ck_assert_int_eq(hold(c, "bbbb"), ERR_NONE);
    ck_assert_int_eq(c->step.job.state, JOB_HELD);
    exited(c, "aaaa", "a", 0);
    expect_job(c, "cccc", JOB_PLACED);
    ck_assert_int_eq(release(c, "bbbb"), ERR_NONE);
    exited(c, "cccc", "a", 0);
    expect_job(c, "bbbb", JOB_PLACED);
    expect_job(c, "dddd", JOB_QUEUED);
    expect_history(c, "bbbb", "submitted held released placed started");
}
END_TEST

START_TEST(a_job_may_be_held_from_its_submission)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .hold = true);
    expect(c, "[    0] node a registers 1 devices in pool default\n"
              "[    0] node a LOST -> READY\n"
              "[    0] job aaaa is submitted: 1 of any type\n"
              "[    0] job aaaa is HELD\n");
    cluster_restart(c);
    expect_job(c, "aaaa", JOB_HELD);
    release(c, "aaaa");
    expect_job(c, "aaaa", JOB_PLACED);
    expect_history(c, "aaaa", "submitted held released placed started");
}
END_TEST

START_TEST(asking_again_changes_nothing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .hold = true);
    ck_assert_int_eq(hold(c, "aaaa"), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_int_eq(c->step.job.state, JOB_HELD);
    release(c, "aaaa");
    ck_assert_int_eq(release(c, "aaaa"), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_int_eq(release(c, "zzzz"), ERR_NOT_FOUND);
    ck_assert_int_eq(hold(c, "zzzz"), ERR_NOT_FOUND);
}
END_TEST

START_TEST(a_job_that_has_gpus_is_not_held)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    ck_assert_int_eq(hold(c, "aaaa"), ERR_CONFLICT);
    ck_assert_str_eq(c->step.err.text,
                     "job aaaa has GPUs already, it is PLACED: only a waiting job can be held");
    running(c, "aaaa", "a");
    ck_assert_int_eq(hold(c, "aaaa"), ERR_CONFLICT);
}
END_TEST

START_TEST(a_released_job_waits_for_what_it_follows)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "next", .after = "aaaa:afterok");
    hold(c, "next");
    release(c, "next");
    expect_job(c, "next", JOB_BLOCKED);
    hold(c, "next");
    cluster_restart(c);
    exited(c, "aaaa", "a", 0);
    expect_job(c, "next", JOB_HELD);
    release(c, "next");
    expect_job(c, "next", JOB_PLACED);
    expect_history(c, "next", "submitted blocked held released held released placed started");
}
END_TEST

START_TEST(a_held_job_ends_when_what_it_follows_does_not_succeed)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "next", .after = "aaaa:afterok", .hold = true);
    exited(c, "aaaa", "a", 1);
    expect_job(c, "next", JOB_CANCELED);
}
END_TEST

START_TEST(a_held_job_keeps_its_followers_blocked)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .hold = true);
    submit(c, "next", .after = "aaaa:after");
    expect_job(c, "next", JOB_BLOCKED);
    cancel(c, "aaaa");
    expect_ended(c, "aaaa", JOB_CANCELED, 130, "canceled by alice");
    expect_job(c, "next", JOB_PLACED);
}
END_TEST

START_TEST(a_job_in_staging_is_held)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .environment = "env");
    expect_job(c, "aaaa", JOB_STAGING);
    hold(c, "aaaa");
    expect_job(c, "aaaa", JOB_HELD);
    staged(c, "env", "a");
    expect_job(c, "aaaa", JOB_HELD);
    release(c, "aaaa");
    expect_job(c, "aaaa", JOB_PLACED);
}
END_TEST

Suite *hold_suite(void)
{
    Suite *suite = suite_create("hold");
    TCase *tests = tcase_create("hold");
    tcase_add_test(tests, a_held_job_lets_others_go_and_keeps_its_place);
    tcase_add_test(tests, a_job_may_be_held_from_its_submission);
    tcase_add_test(tests, asking_again_changes_nothing);
    tcase_add_test(tests, a_job_that_has_gpus_is_not_held);
    tcase_add_test(tests, a_released_job_waits_for_what_it_follows);
    tcase_add_test(tests, a_held_job_ends_when_what_it_follows_does_not_succeed);
    tcase_add_test(tests, a_held_job_keeps_its_followers_blocked);
    tcase_add_test(tests, a_job_in_staging_is_held);
    suite_add_tcase(suite, tests);
    return suite;
}
