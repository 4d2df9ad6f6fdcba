/* SPDX-License-Identifier: Apache-2.0 */
/* How nodes prepare environments for jobs before these hold GPUs. */
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

START_TEST(a_job_holds_no_gpu_until_its_node_is_ready)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    quiet(c);
    submit(c, "aaaa", .gpus = 2, .environment = "torch");
    expect(c, "[    0] job aaaa is submitted: 2 of any type\n"
              "[    0] node a prepares environment torch\n"
              "[    0] job aaaa waits: 2 wanted, 2 free, kept for earlier jobs\n"
              "[    0] job aaaa QUEUED -> STAGING\n");
    expect_orders(c, "a", "stage torch\n");
    submit(c, "bbbb", .gpus = 2);
    expect_job(c, "bbbb", JOB_PLACED);
    exited(c, "bbbb", "a", 0);
    quiet(c);
    staged(c, "torch", "a");
    expect(c, "[    0] node a is ready for torch\n"
              "[    0] job aaaa STAGING -> PLACED on a:0,1\n"
              "[    0] attempt aaaa/1 RESERVED -> STARTED\n");
    expect_orders(c, "a", "run aaaa/1 rank 0-1 of 2 on 0,1\n");
    expect_history(c, "aaaa", "submitted staging placed started");
}
END_TEST

START_TEST(a_node_that_is_ready_starts_the_next_job_at_once)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "aaaa", .environment = "torch");
    staged(c, "torch", "a");
    submit(c, "bbbb", .environment = "torch");
    expect_job(c, "bbbb", JOB_PLACED);
    expect_history(c, "bbbb", "submitted placed started");
    exited(c, "aaaa", "a", 0);
    exited(c, "bbbb", "a", 0);
    submit(c, "cccc", .environment = "torch");
    expect_job(c, "cccc", JOB_PLACED);
    submit(c, "dddd", .environment = "numpy");
    expect_job(c, "dddd", JOB_STAGING);
}
END_TEST

START_TEST(one_order_serves_all_jobs_with_the_same_need)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 4);
    submit(c, "aaaa", .environment = "torch");
    submit(c, "bbbb", .gpus = 2, .environment = "torch");
    expect_orders(c, "a", "stage torch\n");
    expect_job(c, "bbbb", JOB_STAGING);
    staged(c, "torch", "a");
    expect_job(c, "aaaa", JOB_PLACED);
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(all_nodes_of_a_gang_get_ready_before_it_is_placed)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "gang", .gpus = 4, .environment = "torch");
    expect_orders(c, "a", "stage torch\n");
    expect_orders(c, "b", "stage torch\n");
    staged(c, "torch", "b");
    expect_job(c, "gang", JOB_STAGING);
    expect_orders(c, "b", "");
    staged(c, "torch", "a");
    expect_job(c, "gang", JOB_PLACED);
}
END_TEST

/* P3: the node that was ready first took all of it. */
START_TEST(a_gang_that_spreads_waits_for_all_its_nodes_to_get_ready)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "wide", .gpus = 2, .spread = true, .environment = "torch");
    expect_orders(c, "a", "stage torch\n");
    expect_orders(c, "b", "stage torch\n");
    staged(c, "torch", "b");
    expect_job(c, "wide", JOB_STAGING);
    staged(c, "torch", "a");
    expect_job(c, "wide", JOB_PLACED);
    expect_orders(c, "a", "prepare wide/1 rank 0-0 of 2 on 0 node 0 of 2\n");
}
END_TEST

START_TEST(a_gang_that_spreads_has_more_nodes_get_ready_where_some_are)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "once", .environment = "torch");
    staged(c, "torch", "a");
    exited(c, "once", "a", 0);
    submit(c, "pack", .gpus = 2, .environment = "torch");
    expect_job(c, "pack", JOB_PLACED);
    exited(c, "pack", "a", 0);
    submit(c, "wide", .gpus = 2, .spread = true, .environment = "torch");
    expect_job(c, "wide", JOB_STAGING);
    expect_orders(c, "b", "stage torch\n");
    unstaged(c, "torch", "b", "no space left");
    expect_job(c, "wide", JOB_PLACED); /* on what there is */
    expect_orders(c, "a", "run wide/1 rank 0-1 of 2 on 0,1\n");
}
END_TEST

START_TEST(nodes_that_are_ready_in_another_pool_do_not_count)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    autocluster struct cluster *c = cluster_open();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        node(c, names[i], .type = "H100");
    }
    node(c, "z", .type = "A10", .gpus = 2);
    submit(c, "aaaa", .type = "A10", .environment = "torch");
    staged(c, "torch", "z");
    expect_job(c, "aaaa", JOB_PLACED);
    submit(c, "bbbb", .type = "H100", .environment = "torch");
    expect_job(c, "bbbb", JOB_STAGING);
    expect_orders(c, "a", "stage torch\n");
    staged(c, "torch", "a");
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(nodes_get_ready_while_the_job_waits_for_their_gpus)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "busy");
    submit(c, "aaaa", .environment = "torch");
    expect_job(c, "aaaa", JOB_STAGING);
    staged(c, "torch", "a");
    expect_job(c, "aaaa", JOB_QUEUED);
    expect_history(c, "aaaa", "submitted staging staged");
    exited(c, "busy", "a", 0);
    expect_job(c, "aaaa", JOB_PLACED);
}
END_TEST

START_TEST(a_job_whose_nodes_are_ready_keeps_them_from_later_jobs)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "busy");
    submit(c, "wide", .gpus = 2, .environment = "torch");
    submit(c, "fill");
    expect_job(c, "fill", JOB_PLACED); /* wide only gets ready */
    exited(c, "fill", "a", 0);
    staged(c, "torch", "a");
    submit(c, "late");
    expect_job(c, "late", JOB_QUEUED);
    exited(c, "busy", "a", 0);
    expect_job(c, "wide", JOB_PLACED);
    expect_job(c, "late", JOB_QUEUED);
}
END_TEST

START_TEST(another_node_that_becomes_free_gets_ready_for_a_job_that_waits)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .environment = "torch");
    staged(c, "torch", "a");
    submit(c, "bbbb", .environment = "torch");
    expect_job(c, "bbbb", JOB_QUEUED);
    node(c, "b");
    expect_orders(c, "b", "stage torch\n");
    expect_job(c, "bbbb", JOB_QUEUED);
    staged(c, "torch", "b");
    expect_job(c, "bbbb", JOB_PLACED);
    expect_orders(c, "b", "run bbbb/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(a_free_node_stages_for_as_many_jobs_as_it_could_hold)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    node(c, "a");
    node(c, "b", .gpus = 2);
    submit(c, "busy");
    submit(c, "full", .gpus = 2);
    submit(c, "aaaa", .environment = "torch");
    submit(c, "bbbb", .environment = "numpy");
    submit(c, "cccc", .environment = "scipy");
    expect_orders(c, "a", "stage torch\nstage numpy\nstage scipy\nrun busy/1 rank 0-0 of 1 on 0\n");
    staged(c, "torch", "a");
    staged(c, "numpy", "a");
    staged(c, "scipy", "a");
    exited(c, "full", "b", 0);
    expect_orders(c, "b", "stage torch\nstage numpy\n");
    staged(c, "torch", "b");
    expect_job(c, "aaaa", JOB_PLACED);
    expect_job(c, "cccc", JOB_QUEUED);
    staged(c, "numpy", "b");
    expect_job(c, "bbbb", JOB_PLACED);
    expect_orders(c, "b", "run aaaa/1 rank 0-0 of 1 on 0\nrun bbbb/1 rank 0-0 of 1 on 1\n");
    exited(c, "busy", "a", 0);
    expect_job(c, "cccc", JOB_PLACED);
}
END_TEST

START_TEST(a_job_deep_in_the_queue_starts_where_it_is_ready)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_DEFAULT);
    char id[] = "0000", environment[] = "folder00";
    node(c, "a", .gpus = 8);
    node(c, "b", .gpus = 8);
    submit(c, "full", .gpus = 8);
    submit(c, "more", .gpus = 8);
    for (int i = 0; i < 40; i++) {
        id[2] = environment[6] = (char)('0' + i / 10);
        id[3] = environment[7] = (char)('0' + i % 10);
        submit(c, id, .gpus = 8, .environment = environment);
        if (i == 39) {
            unstaged(c, environment, "a", "no space left");
        }
        staged(c, environment, i == 39 ? "b" : "a");
    }
    exited(c, "more", "b", 0);
    expect_job(c, "0039", JOB_PLACED);
    expect_orders(c, "b", "stage folder00\nrun 0039/1 rank 0-7 of 8 on 0,1,2,3,4,5,6,7\n");
    exited(c, "full", "a", 0);
    expect_job(c, "0000", JOB_PLACED);
}
END_TEST

START_TEST(what_pip_refuses_ends_all_jobs_that_wait_for_it)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "aaaa", .environment = "torch");
    submit(c, "bbbb", .gpus = 2, .environment = "torch");
    submit(c, "more", .environment = "torch");
    submit(c, "keen", .environment = "torch", .retries = 1);
    quiet(c);
    refused(c, "torch", "a", "ERROR: no matching distribution");
    expect_ended(c, "aaaa", JOB_FAILED, 125, "node a: ERROR: no matching distribution");
    expect_ended(c, "bbbb", JOB_FAILED, 125, "node a: ERROR: no matching distribution");
    expect_ended(c, "more", JOB_FAILED, 125, "node a: ERROR: no matching distribution");
    expect_job(c, "keen", JOB_STAGING);
    expect_orders(c, "a", "stage torch\n");
    refused(c, "torch", "a", "ERROR: no matching distribution");
    expect_job(c, "keen", JOB_STAGING); /* it stood behind the others, and only now was tried for */
    refused(c, "torch", "a", "ERROR: still not");
    expect_ended(c, "keen", JOB_FAILED, 125, "node a: ERROR: still not");
    expect_orders(c, "a", "");
}
END_TEST

START_TEST(what_one_node_refuses_and_another_has_is_the_nodes_own_fault)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .environment = "torch");
    staged(c, "torch", "a");
    node(c, "b");
    submit(c, "bbbb", .environment = "torch");
    expect_orders(c, "b", "stage torch\n");
    refused(c, "torch", "b", "ERROR: no matching distribution");
    expect_job(c, "bbbb", JOB_QUEUED);
    exited(c, "aaaa", "a", 0);
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(a_node_that_fails_is_left_alone_for_a_while_and_others_are_tried)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa", .environment = "torch");
    expect_orders(c, "a", "stage torch\n");
    unstaged(c, "torch", "a", "no space left");
    expect_orders(c, "a", "");
    expect_orders(c, "b", "stage torch\n");
    expect_history(c, "aaaa", "submitted staging requeued staging");
    unstaged(c, "torch", "b", "no space left");
    expect_job(c, "aaaa", JOB_QUEUED);
    ck_assert_str_eq(rows_job(c->rows, "aaaa")->reason, "node b: no space left");
    advance_beating(c, STAGING_HOLD_MS, "a b");
    expect_job(c, "aaaa", JOB_STAGING);
    expect_orders(c, "a", "stage torch\n");
    unstaged(c, "torch", "a", "no space left");
    expect_job(c, "aaaa", JOB_STAGING); /* b may be tried, too */
    unstaged(c, "torch", "b", "no space left");
    expect_ended(c, "aaaa", JOB_FAILED, 125, "node b: no space left");
}
END_TEST

START_TEST(the_second_hold_of_a_node_is_longer)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .environment = "torch");
    unstaged(c, "torch", "a", "no space left");
    advance_beating(c, STAGING_HOLD_MS, "a");
    expect_orders(c, "a", "stage torch\n");
    unstaged(c, "torch", "a", "no space left");
    advance_beating(c, STAGING_HOLD_MS, "a");
    expect_orders(c, "a", "");
    advance_beating(c, STAGING_HOLD_MS, "a");
    expect_orders(c, "a", "stage torch\n");
}
END_TEST

START_TEST(a_need_that_no_node_can_ever_meet_ends_the_job)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa", .environment = "py39");
    unable(c, "py39", "a", "it has Python 3.12");
    expect_orders(c, "b", "stage py39\n");
    expect_job(c, "aaaa", JOB_STAGING);
    unable(c, "py39", "b", "it has Python 3.11");
    expect_ended(c, "aaaa", JOB_FAILED, 125, "node b: it has Python 3.11");
    submit(c, "bbbb", .environment = "py39");
    expect_job(c, "bbbb", JOB_STAGING); /* nobody remembers failures for which no job waits */
}
END_TEST

START_TEST(an_agent_that_starts_anew_is_asked_again)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .environment = "torch");
    node(c, "a");
    expect_orders(c, "a", "stage torch\n");
    staged(c, "torch", "a");
    exited(c, "aaaa", "a", 0);
    node(c, "a");
    submit(c, "bbbb", .environment = "torch");
    expect_job(c, "bbbb", JOB_STAGING);
}
END_TEST

START_TEST(a_node_that_is_lost_or_silent_while_it_gets_ready_is_replaced)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa", .environment = "torch");
    fence(c, "a");
    expect_orders(c, "b", "stage torch\n");
    node(c, "c");
    advance_beating(c, HEARTBEATS_MISSED * HEARTBEAT_MS, "c");
    expect_orders(c, "c", "stage torch\n");
    staged(c, "torch", "c");
    expect_job(c, "aaaa", JOB_PLACED);
}
END_TEST

START_TEST(a_cancel_stops_what_no_other_job_waits_for)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "aaaa", .environment = "torch");
    submit(c, "bbbb", .gpus = 2, .environment = "torch");
    cancel(c, "aaaa");
    expect_ended(c, "aaaa", JOB_CANCELED, 130, "canceled by alice");
    expect_orders(c, "a", "stage torch\n");
    cancel(c, "bbbb");
    expect_orders(c, "a", "");
    staged(c, "torch", "a"); /* too late: it counts for nothing */
    submit(c, "cccc", .environment = "torch");
    expect_job(c, "cccc", JOB_STAGING);
}
END_TEST

START_TEST(a_node_that_declines_is_asked_again)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .environment = "torch");
    staged(c, "torch", "a");
    declined(c, "aaaa", "a");
    expect_job(c, "aaaa", JOB_STAGING);
    expect_orders(c, "a", "stage torch\n");
    staged(c, "torch", "a");
    advance_beating(c, DECLINE_HOLD_MS, "a");
    expect_job(c, "aaaa", JOB_PLACED);
}
END_TEST

START_TEST(a_restart_of_the_controller_asks_again)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "busy");
    submit(c, "aaaa", .environment = "torch");
    submit(c, "bbbb", .environment = "numpy");
    staged(c, "torch", "a");
    expect_job(c, "aaaa", JOB_QUEUED);
    cluster_restart(c);
    expect_job(c, "aaaa", JOB_STAGING);
    expect_job(c, "bbbb", JOB_STAGING);
    expect_orders(c, "a", "stage torch\nstage numpy\nrun busy/1 rank 0-0 of 1 on 0\n");
    staged(c, "torch", "a");
    exited(c, "busy", "a", 0);
    expect_job(c, "aaaa", JOB_PLACED);
}
END_TEST

START_TEST(jobs_of_one_class_that_were_first_wait_again_when_all_is_ready)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .environment = "torch");
    staged(c, "torch", "a");
    submit(c, "bbbb", .environment = "torch");
    expect_job(c, "bbbb", JOB_QUEUED);
    node(c, "a"); /* what ran goes on, what was ready counts no more */
    expect_job(c, "bbbb", JOB_STAGING);
    declined(c, "aaaa", "a"); /* goes before bbbb */
    expect_job(c, "aaaa", JOB_STAGING);
    staged(c, "torch", "a");
    expect_job(c, "aaaa", JOB_QUEUED);
    expect_job(c, "bbbb", JOB_QUEUED);
}
END_TEST

START_TEST(data_that_may_have_changed_is_looked_at_for_each_job_that_comes)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "busy");
    submit(c, "aaaa", .environment = "code data?");
    staged(c, "code data?", "a");
    expect_job(c, "aaaa", JOB_QUEUED);
    submit(c, "bbbb", .environment = "code data?", .hold = true);
    expect_job(c, "aaaa", JOB_STAGING); /* what bbbb will have counts for all that wait */
    expect_orders(c, "a", "stage code data?\nrun busy/1 rank 0-0 of 1 on 0\n");
    staged(c, "code data?", "a");
    expect_job(c, "aaaa", JOB_QUEUED);
    exited(c, "busy", "a", 0);
    expect_job(c, "aaaa", JOB_PLACED);
}
END_TEST

START_TEST(of_nodes_that_had_what_may_have_changed_some_are_told_again)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "b");
    submit(c, "aaaa", .environment = "code data?");
    staged(c, "code data?", "b");
    exited(c, "aaaa", "b", 0);
    node(c, "a");
    submit(c, "bbbb", .environment = "code data?");
    expect_orders(c, "b", "stage code data?\n");
    submit(c, "cccc", .gpus = 2, .environment = "code data?");
    expect_orders(c, "a", "stage code data?\n");
}
END_TEST

Suite *staging_suite(void)
{
    Suite *suite = suite_create("staging");
    TCase *tests = tcase_create("staging");
    tcase_add_test(tests, a_job_holds_no_gpu_until_its_node_is_ready);
    tcase_add_test(tests, a_node_that_is_ready_starts_the_next_job_at_once);
    tcase_add_test(tests, one_order_serves_all_jobs_with_the_same_need);
    tcase_add_test(tests, all_nodes_of_a_gang_get_ready_before_it_is_placed);
    tcase_add_test(tests, a_gang_that_spreads_waits_for_all_its_nodes_to_get_ready);
    tcase_add_test(tests, a_gang_that_spreads_has_more_nodes_get_ready_where_some_are);
    tcase_add_test(tests, nodes_that_are_ready_in_another_pool_do_not_count);
    tcase_add_test(tests, nodes_get_ready_while_the_job_waits_for_their_gpus);
    tcase_add_test(tests, a_job_whose_nodes_are_ready_keeps_them_from_later_jobs);
    tcase_add_test(tests, another_node_that_becomes_free_gets_ready_for_a_job_that_waits);
    tcase_add_test(tests, a_free_node_stages_for_as_many_jobs_as_it_could_hold);
    tcase_add_test(tests, a_job_deep_in_the_queue_starts_where_it_is_ready);
    tcase_add_test(tests, what_pip_refuses_ends_all_jobs_that_wait_for_it);
    tcase_add_test(tests, what_one_node_refuses_and_another_has_is_the_nodes_own_fault);
    tcase_add_test(tests, a_node_that_fails_is_left_alone_for_a_while_and_others_are_tried);
    tcase_add_test(tests, the_second_hold_of_a_node_is_longer);
    tcase_add_test(tests, a_need_that_no_node_can_ever_meet_ends_the_job);
    tcase_add_test(tests, an_agent_that_starts_anew_is_asked_again);
    tcase_add_test(tests, a_node_that_is_lost_or_silent_while_it_gets_ready_is_replaced);
    tcase_add_test(tests, a_cancel_stops_what_no_other_job_waits_for);
    tcase_add_test(tests, a_node_that_declines_is_asked_again);
    tcase_add_test(tests, a_restart_of_the_controller_asks_again);
    tcase_add_test(tests, jobs_of_one_class_that_were_first_wait_again_when_all_is_ready);
    tcase_add_test(tests, data_that_may_have_changed_is_looked_at_for_each_job_that_comes);
    tcase_add_test(tests, of_nodes_that_had_what_may_have_changed_some_are_told_again);
    suite_add_tcase(suite, tests);
    return suite;
}
