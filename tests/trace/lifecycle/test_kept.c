/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts that are kept after a rank failed: what nodes are told, what ends that, and what follows. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/spec/tasks.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

#define MINUTE_MS 60000

/* Nodes a and b, with a running gang of two ranks on each, which is kept for a minute. */
static struct cluster *open_with_gang(const struct job_ask *ask)
{
    struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    cluster_submit(c, ask);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    running(c, "gang", "a");
    running(c, "gang", "b");
    quiet(c);
    return c;
}
#define gang(...)                                                                                            \
    open_with_gang(&(struct job_ask){.id = "gang", .gpus = 4, .keep_ms = MINUTE_MS, __VA_ARGS__})

/* The same, whose rank 3 on node b has failed at time 0. */
static struct cluster *open_with_kept(const struct job_ask *ask)
{
    struct cluster *c = open_with_gang(ask);
    failed(c, "gang", "b", 3, 3);
    quiet(c);
    return c;
}
#define kept(...)                                                                                            \
    open_with_kept(&(struct job_ask){.id = "gang", .gpus = 4, .keep_ms = MINUTE_MS, __VA_ARGS__})

/* Both nodes report the exits of their ranks, once they have been told to stop. */
static void end_gang(struct cluster *c)
{
    struct rank_exit exits[] = {{.rank = 2, .code = 143, .signal = 15, .by_us = true},
                                {.rank = 3, .code = 3}};
    struct report_message report = {.kind = REPORT_EXITED, .ranks = exits, .rank_count = 2, .flushed = true};
    cluster_report(c, "gang", "b", &report);
    stopped(c, "gang", "a");
}

#define FAILURE "rank 3 on node b exited with 3"

START_TEST(a_failed_gang_is_kept_and_its_other_ranks_are_ended)
{
    autocluster struct cluster *c = gang(.retries = 0);
    failed(c, "gang", "b", 3, 3);
    expect(c, "[    0] attempt gang/1 STARTED -> KEPT\n"
              "[    0] attempt gang/1 is kept: " FAILURE "\n");
    ck_assert_uint_eq(c->step.dirty_count, 1);
    ck_assert_str_eq(c->step.dirty_nodes[0], "a");
    expect_orders(c, "a", "start gang/1 rank 0-1 of 4 on 0,1 node 0 of 2 master 10.0.0.1:20000 kept\n");
    expect_orders(c, "b", "start gang/1 rank 2-3 of 4 on 0,1 node 1 of 2 master 10.0.0.1:20000 kept\n");
    failed(c, "gang", "a", 0, 9);
    expect(c, "");
    expect_job(c, "gang", JOB_RUNNING);
    const struct job_life *life = rows_job(c->rows, "gang");
    ck_assert_int_eq(life->kept_until_ms, c->wall_ms + c->now_ms + MINUTE_MS);
    ck_assert_int_eq(strncmp(life->reason, FAILURE "; kept until ", strlen(FAILURE "; kept until ")), 0);
    expect_history(c, "gang", "submitted placed started running kept");
}
END_TEST

START_TEST(the_look_ends_with_its_time_and_the_failure_stays)
{
    autocluster struct cluster *c = kept(.retries = 0);
    advance_beating(c, MINUTE_MS - 1, "a b");
    expect(c, "");
    advance(c, 1);
    expect(c, "[60000] attempt gang/1 KEPT -> STOPPING\n"
              "[60000] attempt gang/1 ends: its time to be looked at is over\n");
    expect_orders(c, "a", "stop gang/1 rank 0-1 of 4 on 0,1 node 0 of 2 RANK_FAILED grace 5000\n");
    expect_orders(c, "b", "stop gang/1 rank 2-3 of 4 on 0,1 node 1 of 2 RANK_FAILED grace 5000\n");
    end_gang(c);
    expect_ended(c, "gang", JOB_FAILED, 3, FAILURE);
    const struct job_life *life = rows_job(c->rows, "gang");
    ck_assert_int_eq(life->kept_until_ms, 0);
    ck_assert_int_eq(life->failed_rank, 3);
    ck_assert_str_eq(life->failed_node, "b");
    expect_history(c, "gang", "submitted placed started running kept stopping failed");
}
END_TEST

START_TEST(a_release_ends_the_look_and_a_retry_follows)
{
    autocluster struct cluster *c = kept(.retries = 1);
    ck_assert_int_eq(release(c, "gang"), ERR_NONE);
    expect(c, "[    0] attempt gang/1 KEPT -> STOPPING\n"
              "[    0] attempt gang/1 ends: released by root\n");
    ck_assert_int_eq(release(c, "gang"), ERR_NONE);
    expect(c, "");
    end_gang(c);
    expect_job(c, "gang", JOB_PLACED);
    expect_history(c, "gang", "submitted placed started running kept stopping requeued placed");
}
END_TEST

START_TEST(a_release_of_an_array_ends_the_looks_of_its_tasks)
{
    autocluster struct cluster *c = cluster_open();
    char tasks[4][ID_LENGTH + 1];
    node(c, "a", .gpus = 4);
    submit(c, "many", .tasks = 2, .keep_ms = MINUTE_MS);
    submit(c, "more", .tasks = 2, .keep_ms = MINUTE_MS);
    for (int i = 0; i < 4; i++) {
        task_id(i < 2 ? "many" : "more", i % 2, tasks[i]);
        running(c, tasks[i], "a");
    }
    failed(c, tasks[0], "a", 0, 3);
    failed(c, tasks[2], "a", 0, 3);
    quiet(c);
    ck_assert_int_eq(release(c, "many"), ERR_NONE);
    autofree char *ends = xprintf("[    0] attempt %s/1 KEPT -> STOPPING\n"
                                  "[    0] attempt %s/1 ends: released by root\n",
                                  tasks[0], tasks[0]);
    expect(c, ends);
    exited(c, tasks[0], "a", 3);
    expect_ended(c, tasks[0], JOB_FAILED, 3, "rank 0 on node a exited with 3");
    expect_job(c, tasks[1], JOB_RUNNING);
}
END_TEST

START_TEST(a_cancel_ends_the_look_without_a_retry_and_the_failure_stays)
{
    autocluster struct cluster *c = kept(.retries = 3);
    ck_assert_int_eq(cancel(c, "gang"), ERR_NONE);
    expect(c, "[    0] job gang is to be canceled by alice\n"
              "[    0] attempt gang/1 KEPT -> STOPPING\n"
              "[    0] attempt gang/1 ends: canceled by alice\n");
    cluster_restart(c);
    end_gang(c);
    expect_ended(c, "gang", JOB_FAILED, 3, FAILURE);
    ck_assert_int_eq(rows_job(c->rows, "gang")->cause, CAUSE_RANK_FAILED);
}
END_TEST

START_TEST(a_job_that_is_canceled_before_a_rank_failed_is_canceled)
{
    autocluster struct cluster *c = gang(.retries = 0);
    cancel(c, "gang");
    failed(c, "gang", "b", 3, 3);
    expect_orders(c, "b", "stop gang/1 rank 2-3 of 4 on 0,1 node 1 of 2 CANCELED grace 30000\n");
    end_gang(c);
    expect_ended(c, "gang", JOB_CANCELED, 130, "canceled by alice");
}
END_TEST

START_TEST(a_job_that_gives_way_ends_its_look_and_is_no_preempted_one)
{
    autocluster struct cluster *c = kept(.retries = 0);
    ck_assert_int_eq(preempt(c, "gang"), ERR_NONE);
    expect(c, "[    0] attempt gang/1 KEPT -> STOPPING\n"
              "[    0] attempt gang/1 ends: preempted by alice\n");
    end_gang(c);
    expect_ended(c, "gang", JOB_FAILED, 3, FAILURE);
}
END_TEST

START_TEST(the_time_limit_ends_the_look_too)
{
    autocluster struct cluster *c =
        gang(.time_limit_ms = 20000, .early = {.signal = EARLY_USR1, .before_ms = 15000});
    advance(c, 2000);
    failed(c, "gang", "b", 3, 3);
    ck_assert_int_eq(rows_job(c->rows, "gang")->kept_until_ms, c->wall_ms + 20000);
    quiet(c);
    advance(c, 17999);
    expect(c, "[15000] node a is silent\n[15000] node b is silent\n");
    advance(c, 1);
    expect(c, "[20000] attempt gang/1 KEPT -> STOPPING\n"
              "[20000] attempt gang/1 ends: its time to be looked at is over\n");
}
END_TEST

/* So long after the gang was started its look ends. */
static void expect_end_ms(const struct cluster *c, int64_t end_ms)
{
    ck_assert_int_eq(rows_job(c->rows, "gang")->kept_until_ms, c->wall_ms + end_ms);
}

START_TEST(the_look_moves_with_the_time_limit_but_never_beyond_its_own_time)
{
    autocluster struct cluster *c = gang(.retries = 0);
    advance_beating(c, 2000, "a b");
    failed(c, "gang", "b", 3, 3);
    expect_end_ms(c, 62000);
    change_limit(c, "gang", 20000);
    expect_end_ms(c, 20000);
    change_limit(c, "gang", 40000);
    expect_end_ms(c, 40000);
    advance_beating(c, 30000, "a b");
    change_limit(c, "gang", 90000);
    expect_end_ms(c, 62000);
    change_limit(c, "gang", 50000);
    change_limit(c, "gang", 0);
    expect_end_ms(c, 62000);
    quiet(c);
    advance_beating(c, 29999, "a b");
    expect(c, "");
    advance(c, 1);
    expect(c, "[62000] attempt gang/1 KEPT -> STOPPING\n"
              "[62000] attempt gang/1 ends: its time to be looked at is over\n");
}
END_TEST

START_TEST(a_time_limit_that_is_over_already_ends_the_look)
{
    autocluster struct cluster *c = kept(.retries = 0);
    advance_beating(c, 10000, "a b");
    change_limit(c, "gang", 5000);
    quiet(c);
    advance(c, 0);
    expect(c, "[10000] attempt gang/1 KEPT -> STOPPING\n"
              "[10000] attempt gang/1 ends: its time to be looked at is over\n");
    end_gang(c);
    expect_ended(c, "gang", JOB_FAILED, 3, FAILURE);
}
END_TEST

START_TEST(after_a_restart_a_longer_limit_counts_the_look_from_the_failure_too)
{
    autocluster struct cluster *c = gang(.retries = 0, .time_limit_ms = 20000);
    advance_beating(c, 2000, "a b");
    failed(c, "gang", "b", 3, 3);
    expect_end_ms(c, 20000);
    advance_beating(c, 10000, "a b");
    cluster_restart(c);
    change_limit(c, "gang", 40000);
    expect_end_ms(c, 40000);
    cluster_restart(c);
    change_limit(c, "gang", 90000);
    expect_end_ms(c, 2000 + MINUTE_MS);
}
END_TEST

START_TEST(maintenance_of_a_node_ends_the_look)
{
    autocluster struct cluster *c = kept(.retries = 0);
    window(c, "w", .nodes = "a", .from_ms = 40000, .until_ms = 90000, .hard = true);
    quiet(c);
    advance_beating(c, 10000, "a b");
    expect(c, "[10000] attempt gang/1 KEPT -> STOPPING\n"
              "[10000] attempt gang/1 ends: node a has maintenance from 1970-01-01T00:17:20.000Z\n");
}
END_TEST

START_TEST(a_restart_keeps_the_moment)
{
    autocluster struct cluster *c = kept(.retries = 0);
    int64_t until_ms = rows_job(c->rows, "gang")->kept_until_ms;
    advance_beating(c, 40000, "a b");
    cluster_restart(c);
    quiet(c);
    ck_assert_int_eq(rows_job(c->rows, "gang")->kept_until_ms, until_ms);
    expect_orders(c, "a", "start gang/1 rank 0-1 of 4 on 0,1 node 0 of 2 master 10.0.0.1:20000 kept\n");
    failed(c, "gang", "b", 3, 3); /* its agent repeats what was not answered */
    advance_beating(c, 19999, "a b");
    expect(c, "");
    advance(c, 1);
    expect(c, "[60000] attempt gang/1 KEPT -> STOPPING\n"
              "[60000] attempt gang/1 ends: its time to be looked at is over\n");
    end_gang(c);
    expect_ended(c, "gang", JOB_FAILED, 3, FAILURE);
}
END_TEST

START_TEST(a_node_that_is_lost_ends_the_look_and_is_to_blame_only_if_it_went_first)
{
    autocluster struct cluster *late = kept(.retries = 0);
    advance_beating(late, 30000, "a b");
    fence(late, "a");
    end_gang(late);
    expect_ended(late, "gang", JOB_FAILED, 3, FAILURE);

    autocluster struct cluster *soon = kept(.retries = 0);
    fence(soon, "a");
    end_gang(soon);
    ck_assert_int_eq(rows_job(soon->rows, "gang")->infra_failures, 1);
    expect_job(soon, "gang", JOB_QUEUED);
}
END_TEST

START_TEST(a_node_that_is_lost_after_the_look_is_not_to_blame_for_what_failed_before_it)
{
    autocluster struct cluster *c = kept(.retries = 0);
    advance_beating(c, 30000, "a b");
    release(c, "gang");
    fence(c, "a");
    end_gang(c);
    expect_ended(c, "gang", JOB_FAILED, 3, FAILURE);
}
END_TEST

START_TEST(nodes_that_end_without_a_reason_end_the_look_and_the_job_has_failed)
{
    autocluster struct cluster *c = kept(.retries = 0);
    exited(c, "gang", "a", 0);
    exited(c, "gang", "b", 0);
    expect_ended(c, "gang", JOB_FAILED, 3, FAILURE);
}
END_TEST

START_TEST(a_supervisor_that_dies_during_the_look_ends_it_and_costs_no_other_attempt)
{
    struct report_message lost = {
        .kind = REPORT_EXITED, .cause = CAUSE_SHIM_LOST, .text = "gpushim was killed", .flushed = true};
    autocluster struct cluster *c = kept(.retries = 0);
    advance_beating(c, 30000, "a b");
    cluster_report(c, "gang", "a", &lost);
    expect_orders(c, "b", "stop gang/1 rank 2-3 of 4 on 0,1 node 1 of 2 RANK_FAILED grace 5000\n");
    end_gang(c);
    expect_ended(c, "gang", JOB_FAILED, 3, FAILURE);
}
END_TEST

START_TEST(only_failures_of_ranks_are_kept)
{
    autocluster struct cluster *c = gang(.retries = 0);
    struct report_message report = {.kind = REPORT_FAILED, .cause = CAUSE_EXEC_FAILED, .text = "no such"};
    cluster_report(c, "gang", "b", &report);
    ck_assert_uint_eq(c->step.dirty_count, 2); /* the shim of b waits for the stop, too */
    expect_orders(c, "b", "stop gang/1 rank 2-3 of 4 on 0,1 node 1 of 2 EXEC_FAILED grace 5000\n");
    ck_assert_int_eq(rows_job(c->rows, "gang")->kept_until_ms, 0);
}
END_TEST

START_TEST(a_job_runs_in_its_look_when_the_last_node_has_started_its_ranks)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "gang", .gpus = 4, .keep_ms = MINUTE_MS);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    running(c, "gang", "b");
    failed(c, "gang", "b", 3, 3);
    expect_job(c, "gang", JOB_PLACED);
    running(c, "gang", "a");
    expect_job(c, "gang", JOB_RUNNING);
}
END_TEST

START_TEST(the_explanation_says_why_the_job_has_its_gpus)
{
    autocluster struct cluster *c = kept(.retries = 0);
    ck_assert_int_eq(cluster_ask(c, ASK_EXPLAIN, "gang"), ERR_NONE);
    ck_assert_ptr_nonnull(strstr(c->step.answer, "\"kept\":\"" FAILURE "; kept until "));
}
END_TEST

Suite *kept_suite(void)
{
    Suite *suite = suite_create("kept");
    TCase *tests = tcase_create("kept");
    tcase_add_test(tests, a_failed_gang_is_kept_and_its_other_ranks_are_ended);
    tcase_add_test(tests, the_look_ends_with_its_time_and_the_failure_stays);
    tcase_add_test(tests, a_release_ends_the_look_and_a_retry_follows);
    tcase_add_test(tests, a_release_of_an_array_ends_the_looks_of_its_tasks);
    tcase_add_test(tests, a_cancel_ends_the_look_without_a_retry_and_the_failure_stays);
    tcase_add_test(tests, a_job_that_is_canceled_before_a_rank_failed_is_canceled);
    tcase_add_test(tests, a_job_that_gives_way_ends_its_look_and_is_no_preempted_one);
    tcase_add_test(tests, the_time_limit_ends_the_look_too);
    tcase_add_test(tests, the_look_moves_with_the_time_limit_but_never_beyond_its_own_time);
    tcase_add_test(tests, a_time_limit_that_is_over_already_ends_the_look);
    tcase_add_test(tests, after_a_restart_a_longer_limit_counts_the_look_from_the_failure_too);
    tcase_add_test(tests, maintenance_of_a_node_ends_the_look);
    tcase_add_test(tests, a_restart_keeps_the_moment);
    tcase_add_test(tests, a_node_that_is_lost_ends_the_look_and_is_to_blame_only_if_it_went_first);
    tcase_add_test(tests, a_node_that_is_lost_after_the_look_is_not_to_blame_for_what_failed_before_it);
    tcase_add_test(tests, nodes_that_end_without_a_reason_end_the_look_and_the_job_has_failed);
    tcase_add_test(tests, a_supervisor_that_dies_during_the_look_ends_it_and_costs_no_other_attempt);
    tcase_add_test(tests, only_failures_of_ranks_are_kept);
    tcase_add_test(tests, a_job_runs_in_its_look_when_the_last_node_has_started_its_ranks);
    tcase_add_test(tests, the_explanation_says_why_the_job_has_its_gpus);
    suite_add_tcase(suite, tests);
    return suite;
}
