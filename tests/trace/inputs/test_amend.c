/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of live jobs: priority and time limit. */
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

START_TEST(a_waiting_job_is_changed_and_the_history_tells_how)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "bbbb", .time_limit_ms = 1500);
    quiet(c);
    const struct input both = {.kind = INPUT_CHANGE,
                               .change = {.id = "bbbb",
                                          .by = "root",
                                          .if_seq = 1,
                                          .sets_priority = true,
                                          .priority = 5,
                                          .sets_time_limit = true}};
    ck_assert_int_eq(cluster_step(c, &both), ERR_NONE);
    expect(c, "[    0] job bbbb is changed: {\"by\":\"root\",\"priority\":{\"from\":0,\"to\":5},"
              "\"time_limit_s\":{\"from\":1.5,\"to\":null}}\n");
    expect_history(c, "bbbb", "submitted changed");
    const struct job_life *life = rows_job(c->rows, "bbbb");
    ck_assert_int_eq(life->priority, 5);
    ck_assert_int_eq(life->time_limit_ms, 0);
    cluster_restart(c);
    change_priority(c, "bbbb", 6);
    ck_assert_int_eq(rows_job(c->rows, "bbbb")->priority, 6);
}
END_TEST

START_TEST(a_change_to_what_is_so_already_is_none)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .time_limit_ms = 1000);
    ck_assert_int_eq(change_limit(c, "aaaa", 1000), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_str_eq(c->step.job.id, "aaaa");
}
END_TEST

START_TEST(a_change_that_rests_on_an_older_look_is_refused)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    int64_t seq = rows_job(c->rows, "aaaa")->seq;
    ck_assert_int_eq(change_if(c, "aaaa", seq, 1), ERR_NONE);
    ck_assert_int_eq(change_if(c, "aaaa", seq, 2), ERR_PRECONDITION);
    expect_field(c, "If-Match");
    ck_assert_str_eq(c->step.err.text, "job aaaa has changed: its seq is 4, not 3");
    ck_assert_int_eq(change_if(c, "aaaa", seq + 1, 2), ERR_NONE);
    ck_assert_int_eq(change_priority(c, "zzzz", 1), ERR_NOT_FOUND);
}
END_TEST

START_TEST(a_longer_limit_counts_from_the_start)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    advance_beating(c, 7000, "a");
    submit(c, "aaaa", .time_limit_ms = 20000);
    running(c, "aaaa", "a");
    advance_beating(c, 10000, "a");
    change_limit(c, "aaaa", 30000);
    advance_beating(c, 15000, "a");
    expect_job(c, "aaaa", JOB_RUNNING);
    expect_history(c, "aaaa", "submitted placed started running changed");
    advance_beating(c, 5000, "a");
    expect_history(c, "aaaa", "submitted placed started running changed stopping");
    stopped(c, "aaaa", "a");
    expect_ended(c, "aaaa", JOB_TIMED_OUT, 124, "ran longer than its time limit of 30 s");
}
END_TEST

START_TEST(a_limit_that_is_over_already_ends_the_job)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    advance_beating(c, 7000, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    advance_beating(c, 10000, "a");
    change_limit(c, "aaaa", 5000);
    advance(c, 0);
    stopped(c, "aaaa", "a");
    expect_ended(c, "aaaa", JOB_TIMED_OUT, 124, "ran longer than its time limit of 5.0 s");
}
END_TEST

START_TEST(a_limit_that_is_taken_away_ends_nothing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .time_limit_ms = 10000);
    running(c, "aaaa", "a");
    change_limit(c, "aaaa", 0);
    advance_beating(c, 20000, "a");
    expect_history(c, "aaaa", "submitted placed started running changed");
}
END_TEST

START_TEST(a_limit_does_not_shorten_other_deadlines)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2);
    change_limit(c, "gang", 1000); /* it is being prepared, which has a time of its own */
    advance_beating(c, 30000, "a b");
    expect_job(c, "gang", JOB_PLACED);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    advance(c, 1000);
    expect_history(c, "gang", "submitted placed changed started stopping");
}
END_TEST

START_TEST(jobs_that_are_kept_back_are_changed_too)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .hold = true);
    submit(c, "next", .after = "aaaa:afterok");
    ck_assert_int_eq(change_priority(c, "aaaa", 3), ERR_NONE);
    ck_assert_int_eq(change_limit(c, "next", 3000), ERR_NONE);
    expect_job(c, "aaaa", JOB_HELD);
    expect_job(c, "next", JOB_BLOCKED);
}
END_TEST

START_TEST(a_limit_of_a_job_that_waits_for_its_next_attempt_counts_from_that)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .time_limit_ms = 60000, .retries = 1);
    drain(c, "a");
    exited(c, "aaaa", "a", 1);
    expect_job(c, "aaaa", JOB_QUEUED);
    ck_assert_int_eq(change_limit(c, "aaaa", 120000), ERR_NONE);
    resume(c, "a");
    running(c, "aaaa", "a");
    advance_beating(c, 110000, "a");
    expect_job(c, "aaaa", JOB_RUNNING);
    expect_orders(c, "a", "run aaaa/2 rank 0-0 of 1 on 0\n");
    change_limit(c, "aaaa", 0); /* what it teaches is of another kind now */
    advance_beating(c, 60000, "a");
    exited(c, "aaaa", "a", 0);
    expect_job(c, "aaaa", JOB_SUCCEEDED);
}
END_TEST

Suite *amend_suite(void)
{
    Suite *suite = suite_create("amend");
    TCase *tests = tcase_create("amend");
    tcase_add_test(tests, a_waiting_job_is_changed_and_the_history_tells_how);
    tcase_add_test(tests, a_change_to_what_is_so_already_is_none);
    tcase_add_test(tests, a_change_that_rests_on_an_older_look_is_refused);
    tcase_add_test(tests, a_longer_limit_counts_from_the_start);
    tcase_add_test(tests, a_limit_that_is_over_already_ends_the_job);
    tcase_add_test(tests, a_limit_that_is_taken_away_ends_nothing);
    tcase_add_test(tests, a_limit_does_not_shorten_other_deadlines);
    tcase_add_test(tests, jobs_that_are_kept_back_are_changed_too);
    tcase_add_test(tests, a_limit_of_a_job_that_waits_for_its_next_attempt_counts_from_that);
    suite_add_tcase(suite, tests);
    return suite;
}
