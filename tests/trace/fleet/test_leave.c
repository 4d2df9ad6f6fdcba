/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes whose agents are about to end: they go when they have no work, and their work goes elsewhere. */
#include "proto/limits.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

START_TEST(an_idle_node_is_lost_in_the_step_that_lets_it_go_and_comes_back_when_it_registers)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    quiet(c);
    ck_assert_int_eq(leave_node(c, "a", false, false), ERR_NONE);
    expect(c, "[    0] node a READY -> LOST\n");
    ck_assert_str_eq(rows_node(c->rows, "a")->reason, "left: idle");
    ck_assert_int_eq(submit(c, "aaaa"), ERR_CAPACITY);
    ck_assert_int_eq(leave_node(c, "a", false, false), ERR_NOT_FOUND);
    node(c, "a");
    submit(c, "aaaa");
    expect_job(c, "aaaa", JOB_PLACED);
}
END_TEST

START_TEST(an_ephemeral_node_leaves_no_row)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    ck_assert_int_eq(leave_node(c, "a", false, true), ERR_NONE);
    ck_assert_ptr_null(rows_node(c->rows, "a"));
    ck_assert_int_eq(leave_node(c, "a", false, true), ERR_NOT_FOUND);
}
END_TEST

START_TEST(an_idle_node_that_has_just_got_an_order_stays)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    quiet(c);
    ck_assert_int_eq(leave_node(c, "a", false, true), ERR_NONE);
    expect(c, "");
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n");
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_READY);
}
END_TEST

START_TEST(what_runs_on_a_node_that_is_told_to_end_is_stopped_and_goes_on_elsewhere)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .infra_retries = -1);
    running(c, "aaaa", "a");
    quiet(c);
    ck_assert_int_eq(leave_node(c, "a", true, true), ERR_NONE);
    advance(c, 0);
    expect(c, "[    0] node a leaves\n"
              "[    0] node a goes away\n"
              "[    0] attempt aaaa/1 STARTED -> STOPPING\n"
              "[    0] attempt aaaa/1 ends: node a expires at 1970-01-01T00:16:40.000Z\n"
              "[    0] node a READY -> DRAINING\n");
    expect_orders(c, "a", "stop aaaa/1 rank 0-0 of 1 on 0 PREEMPTED grace 30000\n");
    node(c, "b");
    stopped(c, "aaaa", "a");
    expect_orders(c, "b", "run aaaa/2 rank 0-0 of 1 on 0\n");
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 0);
    ck_assert_int_eq(leave_node(c, "a", true, true), ERR_NONE);
    ck_assert_ptr_null(rows_node(c->rows, "a"));
}
END_TEST

START_TEST(a_node_stays_while_the_gang_that_it_was_part_of_is_being_stopped)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    leave_node(c, "a", true, true);
    advance(c, 0);
    stopped(c, "gang", "a");
    ck_assert_int_eq(leave_node(c, "a", true, true), ERR_NONE);
    ck_assert_ptr_nonnull(rows_node(c->rows, "a"));
    stopped(c, "gang", "b");
    ck_assert_int_eq(leave_node(c, "a", true, true), ERR_NONE);
    ck_assert_ptr_null(rows_node(c->rows, "a"));
    expect_job(c, "gang", JOB_QUEUED);
}
END_TEST

START_TEST(another_agent_cannot_let_a_node_go)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .boot = "boot-2");
    ck_assert_int_eq(leave_as(c, "a", "boot-1"), ERR_NOT_FOUND);
    expect_field(c, "node");
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_READY);
    ck_assert_int_eq(leave_as(c, "nobody", "boot-1"), ERR_NOT_FOUND);
}
END_TEST

Suite *leave_suite(void)
{
    Suite *suite = suite_create("leave");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, an_idle_node_is_lost_in_the_step_that_lets_it_go_and_comes_back_when_it_registers);
    tcase_add_test(tests, an_ephemeral_node_leaves_no_row);
    tcase_add_test(tests, an_idle_node_that_has_just_got_an_order_stays);
    tcase_add_test(tests, what_runs_on_a_node_that_is_told_to_end_is_stopped_and_goes_on_elsewhere);
    tcase_add_test(tests, a_node_stays_while_the_gang_that_it_was_part_of_is_being_stopped);
    tcase_add_test(tests, another_agent_cannot_let_a_node_go);
    suite_add_tcase(suite, tests);
    return suite;
}
