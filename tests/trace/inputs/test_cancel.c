/* SPDX-License-Identifier: Apache-2.0 */
/* A cancel that was acknowledged means: no later start, and CANCELED at the end, in whatever state it came.
 */
#include "proto/limits.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

static struct cluster *open_with_gang(void)
{
    struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2, .retries = 3);
    quiet(c);
    return c;
}

static void expect_canceled(struct cluster *c, const char *reason)
{
    expect_ended(c, "gang", JOB_CANCELED, 130, reason);
    ck_assert_int_eq(rows_job(c->rows, "gang")->cause, CAUSE_CANCELED);
    ck_assert_uint_eq(core_live_jobs(c->core), 0);
    expect_orders(c, "a", "");
    expect_orders(c, "b", "");
}

START_TEST(a_queued_job_is_canceled_at_once)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "bbbb");
    submit(c, "cccc");
    quiet(c);
    cancel(c, "bbbb");
    expect(c, "[    0] job bbbb is to be canceled by alice\n"
              "[    0] job bbbb QUEUED -> CANCELED: canceled by alice\n"
              "[    0] job cccc waits: 1 wanted, 0 free\n");
    expect_ended(c, "bbbb", JOB_CANCELED, 130, "canceled by alice");
    ck_assert_int_eq(c->step.job.state, JOB_CANCELED);
    expect_history(c, "bbbb", "submitted cancel_asked canceled");
    ck_assert_int_eq(cancel(c, "bbbb"), ERR_NOT_FOUND);
    ck_assert_int_eq(cancel(c, "zzzz"), ERR_NOT_FOUND);
}
END_TEST

START_TEST(a_canceled_job_at_the_front_lets_the_others_go)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "aaaa");
    submit(c, "wide", .gpus = 2);
    submit(c, "bbbb");
    expect_job(c, "bbbb", JOB_QUEUED);
    cancel(c, "wide");
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(a_reserved_gang_is_stopped_before_it_starts)
{
    autocluster struct cluster *c = open_with_gang();
    cancel(c, "gang");
    expect(c, "[    0] job gang is to be canceled by alice\n"
              "[    0] attempt gang/1 RESERVED -> STOPPING\n"
              "[    0] attempt gang/1 ends: canceled by alice\n");
    expect_orders(c, "a", "stop gang/1 rank 0-0 of 2 on 0 node 0 of 2 CANCELED grace 30000\n");
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    expect_orders(c, "b", "stop gang/1 rank 1-1 of 2 on 0 node 1 of 2 CANCELED grace 30000\n");
    struct report_message none = {.kind = REPORT_EXITED, .flushed = true};
    cluster_report(c, "gang", "a", &none);
    cluster_report(c, "gang", "b", &none);
    expect_canceled(c, "canceled by alice");
    expect_history(c, "gang", "submitted placed cancel_asked stopping canceled");
}
END_TEST

START_TEST(a_half_prepared_gang_is_stopped_before_it_starts)
{
    autocluster struct cluster *c = open_with_gang();
    prepared(c, "gang", "a");
    cancel(c, "gang");
    prepared(c, "gang", "b");
    stopped(c, "gang", "a");
    stopped(c, "gang", "b");
    expect_canceled(c, "canceled by alice");
}
END_TEST

START_TEST(a_started_gang_is_stopped)
{
    autocluster struct cluster *c = open_with_gang();
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    cancel(c, "gang");
    running(c, "gang", "a"); /* it had the order already */
    stopped(c, "gang", "a");
    stopped(c, "gang", "b");
    expect_canceled(c, "canceled by alice");
}
END_TEST

START_TEST(a_running_gang_is_canceled_even_if_all_its_ranks_end_well)
{
    autocluster struct cluster *c = open_with_gang();
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    running(c, "gang", "a");
    running(c, "gang", "b");
    cancel(c, "gang");
    cancel(c, "gang");
    ck_assert(c->step.ok);
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_int_eq(c->step.job.state, JOB_RUNNING);
    exited(c, "gang", "a", 0);
    exited(c, "gang", "b", 0);
    expect_canceled(c, "canceled by alice");
}
END_TEST

START_TEST(a_cancel_wins_over_the_retry_of_a_gang_that_is_stopping)
{
    autocluster struct cluster *c = open_with_gang();
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    failed(c, "gang", "a", 0, 1);
    cancel(c, "gang");
    expect_orders(c, "b", "stop gang/1 rank 1-1 of 2 on 0 node 1 of 2 RANK_FAILED grace 5000\n");
    exited(c, "gang", "a", 1);
    stopped(c, "gang", "b");
    expect_canceled(c, "canceled");
}
END_TEST

START_TEST(a_cancel_of_a_job_whose_logs_are_on_the_way_counts)
{
    autocluster struct cluster *c = open_with_gang();
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    exited(c, "gang", "a", 0);
    struct rank_exit exit = {.rank = 1};
    struct report_message report = {.kind = REPORT_EXITED, .ranks = &exit, .rank_count = 1};
    cluster_report(c, "gang", "b", &report);
    cancel(c, "gang");
    expect_job(c, "gang", JOB_RUNNING);
    advance_beating(c, FLUSH_EXPIRY_MS, "a b");
    expect_canceled(c, "canceled");
}
END_TEST

START_TEST(a_cancel_that_a_node_crosses_with_a_decline_is_final)
{
    autocluster struct cluster *c = open_with_gang();
    cancel(c, "gang");
    declined(c, "gang", "a");
    declined(c, "gang", "b");
    expect_canceled(c, "canceled by alice");
}
END_TEST

START_TEST(a_canceled_gang_that_never_started_does_not_wait_for_a_dead_node)
{
    autocluster struct cluster *c = open_with_gang();
    cancel(c, "gang");
    stopped(c, "gang", "a");
    expect_job(c, "gang", JOB_PLACED);
    advance_beating(c, HEARTBEATS_MISSED * HEARTBEAT_MS, "a");
    expect_canceled(c, "canceled by alice");
}
END_TEST

START_TEST(a_canceled_gang_that_started_waits_for_word_from_a_silent_node)
{
    autocluster struct cluster *c = open_with_gang();
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    cancel(c, "gang");
    stopped(c, "gang", "a");
    advance_beating(c, 24 * 3600 * 1000LL, "a");
    expect_job(c, "gang", JOB_PLACED); /* its rank may still run, and its GPU is not free */
    fence(c, "b");
    expect_canceled(c, "canceled by alice");
}
END_TEST

Suite *cancel_suite(void)
{
    Suite *suite = suite_create("cancel");
    TCase *tests = tcase_create("cancel");
    tcase_add_test(tests, a_queued_job_is_canceled_at_once);
    tcase_add_test(tests, a_canceled_job_at_the_front_lets_the_others_go);
    tcase_add_test(tests, a_reserved_gang_is_stopped_before_it_starts);
    tcase_add_test(tests, a_half_prepared_gang_is_stopped_before_it_starts);
    tcase_add_test(tests, a_started_gang_is_stopped);
    tcase_add_test(tests, a_running_gang_is_canceled_even_if_all_its_ranks_end_well);
    tcase_add_test(tests, a_cancel_wins_over_the_retry_of_a_gang_that_is_stopping);
    tcase_add_test(tests, a_cancel_of_a_job_whose_logs_are_on_the_way_counts);
    tcase_add_test(tests, a_cancel_that_a_node_crosses_with_a_decline_is_final);
    tcase_add_test(tests, a_canceled_gang_that_never_started_does_not_wait_for_a_dead_node);
    tcase_add_test(tests, a_canceled_gang_that_started_waits_for_word_from_a_silent_node);
    suite_add_tcase(suite, tests);
    return suite;
}
