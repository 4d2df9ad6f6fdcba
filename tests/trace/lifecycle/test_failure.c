/* SPDX-License-Identifier: Apache-2.0 */
/* What ends an attempt, whom it names, and whether there is another. */
#include <string.h>

#include "proto/limits.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

/* Nodes a and b, with a running gang of two ranks on each. */
static struct cluster *open_with_running_gang(int64_t retries)
{
    struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "gang", .gpus = 4, .retries = retries);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    running(c, "gang", "a");
    running(c, "gang", "b");
    expect_job(c, "gang", JOB_RUNNING);
    quiet(c);
    return c;
}

START_TEST(the_first_rank_that_failed_is_named)
{
    autocluster struct cluster *c = open_with_running_gang(0);
    failed(c, "gang", "b", 3, 3);
    failed(c, "gang", "a", 0, 9);
    expect(c, "[    0] attempt gang/1 STARTED -> STOPPING\n"
              "[    0] attempt gang/1 ends: rank 3 on node b exited with 3\n");
    expect_orders(c, "a", "stop gang/1 rank 0-1 of 4 on 0,1 node 0 of 2 RANK_FAILED grace 5000\n");
    stopped(c, "gang", "a");
    struct rank_exit exits[] = {{.rank = 2, .code = 143, .signal = 15, .by_us = true},
                                {.rank = 3, .code = 3}};
    struct report_message report = {.kind = REPORT_EXITED, .ranks = exits, .rank_count = 2, .flushed = true};
    cluster_report(c, "gang", "b", &report);
    expect_ended(c, "gang", JOB_FAILED, 3, "rank 3 on node b exited with 3");
    const struct job_life *life = rows_job(c->rows, "gang");
    ck_assert_int_eq(life->failed_rank, 3);
    ck_assert_str_eq(life->failed_node, "b");
    ck_assert_int_eq(life->cause, CAUSE_RANK_FAILED);
    expect_history(c, "gang", "submitted placed started running stopping failed");
}
END_TEST

START_TEST(the_failing_node_is_not_told_to_stop_again)
{
    autocluster struct cluster *c = open_with_running_gang(0);
    failed(c, "gang", "b", 2, 1);
    ck_assert_uint_eq(c->step.dirty_count, 1);
    ck_assert_str_eq(c->step.dirty_nodes[0], "a");
}
END_TEST

START_TEST(an_exit_with_a_failed_rank_counts_as_a_failure)
{
    autocluster struct cluster *c = open_with_running_gang(0);
    struct rank_exit exits[] = {{.rank = 2, .code = 5, .at_ms = 20}, {.rank = 3, .code = 4, .at_ms = 10}};
    struct report_message report = {.kind = REPORT_EXITED, .ranks = exits, .rank_count = 2, .flushed = true};
    cluster_report(c, "gang", "b", &report);
    expect(c, "[    0] member gang/1@b RUNNING -> EXITED\n"
              "[    0] attempt gang/1 STARTED -> STOPPING\n"
              "[    0] attempt gang/1 ends: rank 3 on node b exited with 4\n"
              "[    0] member gang/1@b EXITED -> FLUSHED\n");
    stopped(c, "gang", "a");
    expect_ended(c, "gang", JOB_FAILED, 5,
                 "rank 3 on node b exited with 4"); /* the worst code, the first rank */
}
END_TEST

START_TEST(a_rank_killed_by_a_signal_is_named_with_it)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    exited(c, "aaaa", "a", 137);
    expect_ended(c, "aaaa", JOB_FAILED, 137, "rank 0 on node a was killed by signal 9 (SIGKILL)");
    submit(c, "bbbb");
    exited(c, "bbbb", "a", 128 + 40);
    expect_ended(c, "bbbb", JOB_FAILED, 168, "rank 0 on node a was killed by signal 40 (no name)");
}
END_TEST

START_TEST(ranks_that_we_killed_do_not_set_the_exit_code)
{
    autocluster struct cluster *c = open_with_running_gang(0);
    failed(c, "gang", "a", 1, 2);
    stopped(c, "gang", "b"); /* 143, by us */
    struct rank_exit exits[] = {{.rank = 0, .code = 1}, {.rank = 1, .code = 2}};
    struct report_message report = {.kind = REPORT_EXITED, .ranks = exits, .rank_count = 2, .flushed = true};
    cluster_report(c, "gang", "a", &report);
    expect_ended(c, "gang", JOB_FAILED, 2, "rank 1 on node a exited with 2");
}
END_TEST

START_TEST(a_failed_job_is_tried_again_at_its_old_place)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .retries = 1);
    submit(c, "bbbb");
    submit(c, "wide");
    quiet(c);
    exited(c, "aaaa", "a", 1);
    expect(c, "[    0] member aaaa/1@a ORDERED -> RUNNING\n"
              "[    0] job aaaa PLACED -> RUNNING\n"
              "[    0] member aaaa/1@a RUNNING -> EXITED\n"
              "[    0] attempt aaaa/1 STARTED -> STOPPING\n"
              "[    0] attempt aaaa/1 ends: rank 0 on node a exited with 1\n"
              "[    0] member aaaa/1@a EXITED -> FLUSHED\n"
              "[    0] attempt aaaa/1 STOPPING -> ENDED\n"
              "[    0] job aaaa RUNNING -> QUEUED (RANK_FAILED)\n"
              "[    0] job aaaa QUEUED -> PLACED on a:0\n"
              "[    0] attempt aaaa/2 RESERVED -> STARTED\n");
    exited(c, "aaaa", "a", 1);
    expect_ended(c, "aaaa", JOB_FAILED, 1, "rank 0 on node a exited with 1");
    expect_history(c, "aaaa", "submitted placed started running requeued placed started running failed");
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->user_failures, 2);
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(a_gang_may_succeed_after_a_retry)
{
    autocluster struct cluster *c = open_with_running_gang(1);
    failed(c, "gang", "a", 0, 1);
    stopped(c, "gang", "b");
    exited(c, "gang", "a", 1);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    exited(c, "gang", "a", 0);
    exited(c, "gang", "b", 0);
    expect_ended(c, "gang", JOB_SUCCEEDED, 0, "");
    ck_assert_int_eq(rows_job(c->rows, "gang")->cause, CAUSE_NONE);
    ck_assert_int_eq(rows_job(c->rows, "gang")->failed_rank, -1);
}
END_TEST

START_TEST(a_lost_supervisor_costs_only_infra_retries)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .retries = 5, .infra_retries = 1);
    struct report_message lost = {.kind = REPORT_EXITED, .cause = CAUSE_SHIM_LOST, .flushed = true};
    cluster_report(c, "aaaa", "a", &lost);
    expect_job(c, "aaaa", JOB_PLACED);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 1);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->user_failures, 0);
    cluster_report(c, "aaaa", "a", &lost);
    expect_ended(c, "aaaa", JOB_FAILED, 125,
                 "the supervisor of the ranks was killed on node a, and no infrastructure retry is left");
}
END_TEST

START_TEST(an_exit_that_lacks_ranks_is_no_success)
{
    autocluster struct cluster *c = open_with_running_gang(0);
    struct rank_exit exits[] = {{.rank = 0}};
    struct report_message report = {.kind = REPORT_EXITED, .ranks = exits, .rank_count = 1, .flushed = true};
    cluster_report(c, "gang", "a", &report);
    stopped(c, "gang", "b");
    expect_job(c, "gang", JOB_PLACED);
    ck_assert_int_eq(rows_job(c->rows, "gang")->infra_failures, 1);
}
END_TEST

START_TEST(ranks_that_were_killed_by_us_without_an_order_are_no_success)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    stopped(c, "aaaa", "a");
    expect_job(c, "aaaa", JOB_PLACED);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 1);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->user_failures, 0);
}
END_TEST

START_TEST(a_node_that_declines_what_ran_has_nothing_left_of_it)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    declined(c, "aaaa", "a");
    expect_job(c, "aaaa", JOB_QUEUED);
    expect_orders(c, "a", "");
}
END_TEST

START_TEST(ranks_of_other_nodes_are_refused)
{
    autocluster struct cluster *c = open_with_running_gang(0);
    ck_assert_int_eq(failed(c, "gang", "a", 2, 1), ERR_FIELD);
    expect_field(c, "ranks");
    expect_job(c, "gang", JOB_RUNNING);
}
END_TEST

START_TEST(a_taken_port_is_an_infra_retry)
{
    autocluster struct cluster *c = open_with_running_gang(0);
    struct rank_exit exit = {.rank = 0, .code = 1};
    struct report_message report = {
        .kind = REPORT_FAILED, .cause = CAUSE_PORT_TAKEN, .ranks = &exit, .rank_count = 1};
    cluster_report(c, "gang", "a", &report);
    expect_orders(c, "b", "stop gang/1 rank 2-3 of 4 on 0,1 node 1 of 2 PORT_TAKEN grace 5000\n");
    exited(c, "gang", "a", 1);
    stopped(c, "gang", "b");
    expect_job(c, "gang", JOB_PLACED);
    ck_assert_int_eq(rows_job(c->rows, "gang")->infra_failures, 1);
}
END_TEST

START_TEST(memory_that_ran_out_is_named_and_is_the_users_fault)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    struct rank_exit exit = {.rank = 0, .code = 137, .signal = 9};
    struct report_message report = {.kind = REPORT_EXITED,
                                    .cause = CAUSE_OUT_OF_MEMORY,
                                    .ranks = &exit,
                                    .rank_count = 1,
                                    .flushed = true};
    cluster_report(c, "aaaa", "a", &report);
    expect_ended(c, "aaaa", JOB_FAILED, 137,
                 "rank 0 on node a was killed by signal 9 (SIGKILL), out of memory");
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->user_failures, 1);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->cause, CAUSE_OUT_OF_MEMORY);
}
END_TEST

START_TEST(a_command_that_cannot_be_executed_is_the_users_fault)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    struct report_message report = {
        .kind = REPORT_EXITED, .cause = CAUSE_EXEC_FAILED, .text = "trian.py: No such file", .flushed = true};
    cluster_report(c, "aaaa", "a", &report);
    expect_ended(c, "aaaa", JOB_FAILED, 127,
                 "the command could not be executed on node a: trian.py: No such file");
}
END_TEST

START_TEST(the_time_limit_counts_from_the_start_and_is_final)
{
    autocluster struct cluster *c = open_with_running_gang(3);
    submit(c, "time", .gpus = 4, .time_limit_ms = 10000, .retries = 3);
    advance_beating(c, 7000, "a b");
    exited(c, "gang", "a", 0);
    exited(c, "gang", "b", 0);
    advance_beating(c, 5000, "a b");
    prepared(c, "time", "a");
    prepared(c, "time", "b");
    running(c, "time", "a");
    running(c, "time", "b");
    advance_beating(c, 9999, "a b");
    expect_job(c, "time", JOB_RUNNING);
    quiet(c);
    advance(c, 1);
    expect(c, "[22000] attempt time/1 STARTED -> STOPPING\n"
              "[22000] attempt time/1 ends: ran longer than its time limit of 10 s\n");
    expect_orders(c, "a", "stop time/1 rank 0-1 of 4 on 0,1 node 0 of 2 TIME_LIMIT grace 30000\n");
    stopped(c, "time", "a");
    stopped(c, "time", "b");
    expect_ended(c, "time", JOB_TIMED_OUT, 124, "ran longer than its time limit of 10 s");
}
END_TEST

START_TEST(devices_are_free_only_when_the_logs_are_there)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    submit(c, "bbbb");
    quiet(c);
    struct rank_exit exit = {.rank = 0};
    struct report_message report = {.kind = REPORT_EXITED, .ranks = &exit, .rank_count = 1};
    struct report_message flushed = {.kind = REPORT_EXITED, .flushed = true};
    cluster_report(c, "aaaa", "a", &report);
    expect(c, "[    0] member aaaa/1@a ORDERED -> RUNNING\n"
              "[    0] job aaaa PLACED -> RUNNING\n"
              "[    0] member aaaa/1@a RUNNING -> EXITED\n"
              "[    0] attempt aaaa/1 STARTED -> FLUSHING\n");
    expect_orders(c, "a", "stop aaaa/1 rank 0-0 of 1 on 0 NONE grace 5000\n");
    ck_assert_uint_eq(c->step.dirty_count, 0);
    cluster_report(c, "aaaa", "a", &flushed);
    expect(c, "[    0] member aaaa/1@a EXITED -> FLUSHED\n"
              "[    0] attempt aaaa/1 FLUSHING -> ENDED\n"
              "[    0] job aaaa RUNNING -> SUCCEEDED\n"
              "[    0] job bbbb QUEUED -> PLACED on a:0\n"
              "[    0] attempt bbbb/1 RESERVED -> STARTED\n");
}
END_TEST

START_TEST(logs_that_do_not_come_are_given_up)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    struct rank_exit exit = {.rank = 0};
    struct report_message report = {.kind = REPORT_EXITED, .ranks = &exit, .rank_count = 1};
    struct report_message late = {.kind = REPORT_EXITED, .flushed = true};
    cluster_report(c, "aaaa", "a", &report);
    advance_beating(c, FLUSH_EXPIRY_MS - 1, "a");
    expect_job(c, "aaaa", JOB_RUNNING);
    advance(c, 1);
    expect_ended(c, "aaaa", JOB_SUCCEEDED, 0, "");
    expect_history(c, "aaaa", "submitted placed started running logs_cut succeeded");
    expect_orders(c, "a", "");
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &late), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
}
END_TEST

START_TEST(the_causes_of_the_controller_are_not_a_nodes_to_give)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    struct report_message report = {.kind = REPORT_EXITED, .cause = CAUSE_CANCELED, .flushed = true};
    cluster_report(c, "aaaa", "a", &report);
    expect_job(c, "aaaa", JOB_PLACED);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 1);
}
END_TEST

/* A rank on a has failed; whether it is the user's fault depends on what becomes of b. */
static struct cluster *open_with_failed_rank(enum on_disconnect policy)
{
    struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2, .on_disconnect = policy, .lease_ms = 60000);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    running(c, "gang", "a");
    running(c, "gang", "b");
    advance_beating(c, 5000, "a b");
    advance_beating(c, 50000, "a");
    failed(c, "gang", "a", 0, 1);
    exited(c, "gang", "a", 1);
    quiet(c);
    return c;
}

static void expect_failures(struct cluster *c, int64_t user, int64_t infra)
{
    ck_assert_int_eq(rows_job(c->rows, "gang")->user_failures, user);
    ck_assert_int_eq(rows_job(c->rows, "gang")->infra_failures, infra);
}

START_TEST(a_node_that_was_silent_when_a_rank_failed_was_lost_first)
{
    autocluster struct cluster *c = open_with_failed_rank(ON_DISCONNECT_REQUEUE);
    advance_beating(c, 14000, "a");
    expect(c, "[68000] member gang/1@b RUNNING -> LOST\n"
              "[68000] member gang@b is lost: node b was silent for longer than the lease\n"
              "[68000] attempt gang/1 failed before that: node b was silent for longer than the lease\n"
              "[68000] attempt gang/1 STOPPING -> ENDED\n"
              "[68000] job gang RUNNING -> QUEUED (NODE_LOST)\n"
              "[68000] job gang waits: 2 wanted, 1 free\n");
    expect_failures(c, 0, 1);
    expect_history(c, "gang", "submitted placed started running stopping stopping requeued");
}
END_TEST

START_TEST(a_node_that_was_heard_after_a_rank_failed_is_not_why)
{
    autocluster struct cluster *c = open_with_failed_rank(ON_DISCONNECT_REQUEUE);
    advance(c, 1);
    heartbeat(c, "b");
    advance_beating(c, 63000, "a");
    expect_ended(c, "gang", JOB_FAILED, 1, "rank 0 on node a exited with 1");
}
END_TEST

START_TEST(a_node_whose_lease_had_ended_when_a_rank_failed_says_so)
{
    struct report_message report = {.kind = REPORT_EXITED, .cause = CAUSE_NODE_LOST, .flushed = true};
    autocluster struct cluster *c = open_with_failed_rank(ON_DISCONNECT_REQUEUE);
    heartbeat(c, "b");
    cluster_report(c, "gang", "b", &report);
    expect_failures(c, 0, 1);
    autocluster struct cluster *other = open_with_failed_rank(ON_DISCONNECT_FAIL);
    heartbeat(other, "b");
    cluster_report(other, "gang", "b", &report);
    expect_ended(other, "gang", JOB_FAILED, 125, "the lease of node b ended, and on_disconnect is fail");
}
END_TEST

START_TEST(a_reboot_is_why_a_rank_elsewhere_failed)
{
    autocluster struct cluster *c = open_with_failed_rank(ON_DISCONNECT_KEEP);
    node(c, "b", .boot = "boot-2");
    expect_failures(c, 0, 1);
    expect_job(c, "gang", JOB_PLACED);
    ck_assert_int_eq(rows_job(c->rows, "gang")->attempt, 2);
}
END_TEST

START_TEST(a_reboot_after_a_rank_failed_is_not_why)
{
    autocluster struct cluster *c = open_with_failed_rank(ON_DISCONNECT_KEEP);
    advance(c, 1);
    heartbeat(c, "b");
    node(c, "b", .boot = "boot-2");
    expect_ended(c, "gang", JOB_FAILED, 1, "rank 0 on node a exited with 1");
}
END_TEST

START_TEST(a_killed_supervisor_is_why_a_rank_elsewhere_failed)
{
    struct report_message report = {.kind = REPORT_EXITED, .cause = CAUSE_SHIM_LOST, .flushed = true};
    autocluster struct cluster *c = open_with_failed_rank(ON_DISCONNECT_KEEP);
    cluster_report(c, "gang", "b", &report);
    expect_failures(c, 0, 1);
}
END_TEST

START_TEST(a_cancel_is_not_changed_by_a_node_that_is_lost)
{
    autocluster struct cluster *c = open_with_running_gang(0);
    cancel(c, "gang");
    fence(c, "b");
    stopped(c, "gang", "a");
    expect_ended(c, "gang", JOB_CANCELED, 130, "canceled by alice");
}
END_TEST

Suite *failure_suite(void)
{
    Suite *suite = suite_create("failure");
    TCase *tests = tcase_create("failure");
    tcase_add_test(tests, the_first_rank_that_failed_is_named);
    tcase_add_test(tests, the_failing_node_is_not_told_to_stop_again);
    tcase_add_test(tests, an_exit_with_a_failed_rank_counts_as_a_failure);
    tcase_add_test(tests, a_rank_killed_by_a_signal_is_named_with_it);
    tcase_add_test(tests, ranks_that_we_killed_do_not_set_the_exit_code);
    tcase_add_test(tests, a_failed_job_is_tried_again_at_its_old_place);
    tcase_add_test(tests, a_gang_may_succeed_after_a_retry);
    tcase_add_test(tests, a_lost_supervisor_costs_only_infra_retries);
    tcase_add_test(tests, an_exit_that_lacks_ranks_is_no_success);
    tcase_add_test(tests, ranks_that_were_killed_by_us_without_an_order_are_no_success);
    tcase_add_test(tests, a_node_that_declines_what_ran_has_nothing_left_of_it);
    tcase_add_test(tests, ranks_of_other_nodes_are_refused);
    tcase_add_test(tests, a_taken_port_is_an_infra_retry);
    tcase_add_test(tests, memory_that_ran_out_is_named_and_is_the_users_fault);
    tcase_add_test(tests, a_command_that_cannot_be_executed_is_the_users_fault);
    tcase_add_test(tests, the_time_limit_counts_from_the_start_and_is_final);
    tcase_add_test(tests, devices_are_free_only_when_the_logs_are_there);
    tcase_add_test(tests, logs_that_do_not_come_are_given_up);
    tcase_add_test(tests, the_causes_of_the_controller_are_not_a_nodes_to_give);
    tcase_add_test(tests, a_node_that_was_silent_when_a_rank_failed_was_lost_first);
    tcase_add_test(tests, a_node_that_was_heard_after_a_rank_failed_is_not_why);
    tcase_add_test(tests, a_node_whose_lease_had_ended_when_a_rank_failed_says_so);
    tcase_add_test(tests, a_reboot_is_why_a_rank_elsewhere_failed);
    tcase_add_test(tests, a_reboot_after_a_rank_failed_is_not_why);
    tcase_add_test(tests, a_killed_supervisor_is_why_a_rank_elsewhere_failed);
    tcase_add_test(tests, a_cancel_is_not_changed_by_a_node_that_is_lost);
    suite_add_tcase(suite, tests);
    return suite;
}
