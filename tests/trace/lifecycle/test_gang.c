/* SPDX-License-Identifier: Apache-2.0 */
/* How a gang starts: the two phases, what a node may report when, and what happens when one does not. */
#include <string.h>

#include "proto/limits.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

/* Nodes a and b, with a gang of one rank on each. */
static struct cluster *open_with_gang(void)
{
    struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2);
    quiet(c);
    return c;
}

START_TEST(a_gang_over_nodes_starts_when_all_are_prepared)
{
    autocluster struct cluster *c = open_with_gang();
    expect_orders(c, "b", "prepare gang/1 rank 1-1 of 2 on 0 node 1 of 2\n");
    prepared(c, "gang", "b");
    ck_assert(c->step.lazy);
    ck_assert_uint_eq(c->step.dirty_count, 0);
    prepared(c, "gang", "a");
    ck_assert(!c->step.lazy);
    ck_assert_uint_eq(c->step.dirty_count, 2);
    expect(c, "[    0] member gang/1@b ORDERED -> PREPARED\n"
              "[    0] attempt gang/1 RESERVED -> PREPARING\n"
              "[    0] member gang/1@a ORDERED -> PREPARED\n"
              "[    0] attempt gang/1 PREPARING -> PREPARED\n"
              "[    0] attempt gang/1 PREPARED -> STARTED\n");
    expect_orders(c, "a", "start gang/1 rank 0-0 of 2 on 0 node 0 of 2 master 10.0.0.1:20000\n");
    expect_orders(c, "b", "start gang/1 rank 1-1 of 2 on 0 node 1 of 2 master 10.0.0.1:20000\n");
    running(c, "gang", "a");
    ck_assert(c->step.lazy);
    expect_job(c, "gang", JOB_PLACED);
    running(c, "gang", "b");
    ck_assert(c->step.lazy);
    exited(c, "gang", "b", 0);
    expect_job(c, "gang", JOB_RUNNING);
    exited(c, "gang", "a", 0);
    expect_history(c, "gang", "submitted placed started running succeeded");
    ck_assert_uint_eq(rows_rank_count(c->rows, rows_attempt_id(c->rows, "gang")), 2);
}
END_TEST

/* After a restart the ports of all but the master's are not known any more. */
START_TEST(a_start_names_address_and_port_of_each_node)
{
    static const char *const expected[] = {"10.0.0.1:20000,10.0.0.1:20000", "10.0.0.1:0,10.0.0.1:0"};
    autocluster struct cluster *c = open_with_gang();
    struct node_orders *orders = core_orders(c->core, "b");
    ck_assert_ptr_null(orders->items[0].order.addresses);
    node_orders_destroy(orders);
    prepared(c, "gang", "b");
    prepared(c, "gang", "a");
    for (size_t i = 0; i < 2; i++) {
        orders = core_orders(c->core, "b");
        ck_assert_str_eq(orders->items[0].order.addresses, expected[i]);
        node_orders_destroy(orders);
        cluster_restart(c);
    }
}
END_TEST

START_TEST(ranks_that_ended_well_before_the_start_did_not_run)
{
    autocluster struct cluster *c = open_with_gang();
    exited(c, "gang", "a", 0);
    exited(c, "gang", "b", 0);
    expect_history(c, "gang", "submitted placed stopping requeued placed");
    advance(c, PREPARE_EXPIRY_MS); /* nobody is waited for in the first attempt */
    ck_assert_int_eq(rows_job(c->rows, "gang")->user_failures, 0);
}
END_TEST

START_TEST(order_versions_rise_with_every_change_and_only_then)
{
    autocluster struct cluster *c = open_with_gang();
    struct node_orders *before = core_orders(c->core, "a");
    prepared(c, "gang", "b");
    struct node_orders *same = core_orders(c->core, "a");
    ck_assert_uint_eq(same->version, before->version);
    prepared(c, "gang", "a");
    struct node_orders *after = core_orders(c->core, "a");
    ck_assert_uint_gt(after->version, before->version);
    ck_assert_uint_eq(after->items[0].version, after->version);
    ck_assert_uint_eq(after->version >> 32, c->incarnation);
    ck_assert_int_eq(after->items[0].spec_key, 1);
    ck_assert(after->items[0].order.gang);
    ck_assert_int_eq(after->items[0].order.lease_ms, 0); /* on_disconnect = keep */
    node_orders_destroy(before);
    node_orders_destroy(same);
    node_orders_destroy(after);
    ck_assert_ptr_null(core_orders(c->core, "nobody"));
}
END_TEST

START_TEST(node_rank_0_must_bring_address_and_port)
{
    autocluster struct cluster *c = open_with_gang();
    struct report_message bare = {.kind = REPORT_PREPARED};
    ck_assert_int_eq(cluster_report(c, "gang", "a", &bare), ERR_FIELD);
    expect_field(c, "master_port");
    ck_assert_int_eq(cluster_report(c, "gang", "b", &bare), ERR_NONE);
}
END_TEST

START_TEST(nobody_may_run_before_the_start_is_committed)
{
    autocluster struct cluster *c = open_with_gang();
    prepared(c, "gang", "a");
    ck_assert_int_eq(running(c, "gang", "a"), ERR_FENCED);
    expect_job(c, "gang", JOB_PLACED);
}
END_TEST

START_TEST(repeated_reports_change_nothing)
{
    autocluster struct cluster *c = open_with_gang();
    prepared(c, "gang", "a");
    ck_assert_int_eq(prepared(c, "gang", "a"), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    prepared(c, "gang", "b");
    running(c, "gang", "a");
    ck_assert_int_eq(running(c, "gang", "a"), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_int_eq(prepared(c, "gang", "a"), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    exited(c, "gang", "a", 0);
    struct report_message again = {.kind = REPORT_EXITED, .flushed = true};
    ck_assert_int_eq(cluster_report(c, "gang", "a", &again), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_int_eq(running(c, "gang", "a"), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
}
END_TEST

START_TEST(an_exit_may_be_repeated_after_the_end_of_the_job)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "aaaa");
    uint64_t attempt_id = rows_attempt_id(c->rows, "aaaa");
    exited(c, "aaaa", "a", 0);
    expect_job(c, "aaaa", JOB_SUCCEEDED);
    struct report_message again = {.kind = REPORT_EXITED, .attempt_id = attempt_id, .flushed = true};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &again), ERR_NONE);
    ck_assert_uint_eq(c->step.change_count, 0);
    ck_assert_int_eq(cluster_report(c, "aaaa", "b", &again), ERR_FENCED);
}
END_TEST

START_TEST(reports_of_an_older_attempt_are_fenced)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .retries = 1);
    uint64_t attempt_id = rows_attempt_id(c->rows, "aaaa");
    exited(c, "aaaa", "a", 1);
    expect_orders(c, "a", "run aaaa/2 rank 0-0 of 1 on 0\n");
    struct report_message late = {.kind = REPORT_EXITED, .attempt_id = attempt_id, .flushed = true};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &late), ERR_FENCED);
    expect_field(c, "epoch");
    struct report_message unknown = {.kind = REPORT_RUNNING, .attempt_id = attempt_id + 100};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &unknown), ERR_FENCED);
    struct report_message other_boot = {.kind = REPORT_RUNNING, .boot_id = "boot-0"};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &other_boot), ERR_NOT_FOUND);
    ck_assert_int_eq(running(c, "aaaa", "z"), ERR_NOT_FOUND);
    ck_assert_int_eq(running(c, "aaaa", "a"), ERR_NONE);
}
END_TEST

START_TEST(attempt_ids_rise_over_jobs_attempts_and_restarts)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "aaaa", .retries = 2);
    submit(c, "bbbb");
    ck_assert_uint_eq(rows_attempt_id(c->rows, "aaaa"), 1ULL << 32 | 1);
    ck_assert_uint_eq(rows_attempt_id(c->rows, "bbbb"), 1ULL << 32 | 2);
    exited(c, "aaaa", "a", 1);
    ck_assert_uint_eq(rows_attempt_id(c->rows, "aaaa"), 1ULL << 32 | 3);
    cluster_restart(c);
    exited(c, "aaaa", "a", 1);
    ck_assert_uint_eq(rows_attempt_id(c->rows, "aaaa"), 2ULL << 32 | 1);
}
END_TEST

START_TEST(a_member_that_exits_early_passes_through_running)
{
    autocluster struct cluster *c = open_with_gang();
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    quiet(c);
    exited(c, "gang", "a", 0);
    expect(c, "[    0] member gang/1@a PREPARED -> RUNNING\n"
              "[    0] member gang/1@a RUNNING -> EXITED\n"
              "[    0] member gang/1@a EXITED -> FLUSHED\n");
    expect_orders(c, "a", "");
    expect_orders(c, "b", "start gang/1 rank 1-1 of 2 on 0 node 1 of 2 master 10.0.0.1:20000\n");
    running(c, "gang", "b");
    expect_job(c, "gang", JOB_RUNNING);
    exited(c, "gang", "b", 0);
    expect_job(c, "gang", JOB_SUCCEEDED);
}
END_TEST

START_TEST(a_node_that_is_not_prepared_in_time_costs_an_infra_retry_and_gets_a_hold)
{
    autocluster struct cluster *c = open_with_gang();
    node(c, "d");
    prepared(c, "gang", "a");
    quiet(c);
    advance_beating(c, PREPARE_EXPIRY_MS, "a b d");
    expect(c, "[60000] node b gets no work for 2000 ms\n"
              "[60000] attempt gang/1 PREPARING -> STOPPING\n"
              "[60000] attempt gang/1 ends: node b did not get prepared within 60 s\n");
    expect_orders(c, "a", "stop gang/1 rank 0-0 of 2 on 0 node 0 of 2 PREPARE_EXPIRED grace 5000\n");
    expect_orders(c, "b", "stop gang/1 rank 1-1 of 2 on 0 node 1 of 2 PREPARE_EXPIRED grace 5000\n");
    struct report_message nothing = {.kind = REPORT_EXITED, .flushed = true};
    cluster_report(c, "gang", "b", &nothing);
    cluster_report(c, "gang", "a", &nothing);
    expect(c, "[60000] member gang/1@b ORDERED -> EXITED\n"
              "[60000] member gang/1@b EXITED -> FLUSHED\n"
              "[60000] member gang/1@a PREPARED -> EXITED\n"
              "[60000] member gang/1@a EXITED -> FLUSHED\n"
              "[60000] attempt gang/1 STOPPING -> ENDED\n"
              "[60000] job gang PLACED -> QUEUED (PREPARE_EXPIRED)\n"
              "[60000] job gang QUEUED -> PLACED on a:0 d:0\n");
    ck_assert_int_eq(rows_job(c->rows, "gang")->infra_failures, 1);
    ck_assert_int_eq(rows_job(c->rows, "gang")->user_failures, 0);
}
END_TEST

/* Its nodes lay the checkpoint out first, as those of a second attempt do. */
START_TEST(a_gang_that_goes_on_from_another_job_has_time_for_its_checkpoint)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2, .goes_on = "aaaaaaaaaaaaaaaa");
    prepared(c, "gang", "a");
    advance_beating(c, PREPARE_EXPIRY_MS, "a b");
    expect_history(c, "gang", "submitted placed");
    cluster_restart(c);
    advance_beating(c, PREPARE_EXPIRY_MS, "a b");
    prepared(c, "gang", "b");
    running(c, "gang", "a");
    running(c, "gang", "b");
    expect_history(c, "gang", "submitted placed started running");
}
END_TEST

START_TEST(a_gang_that_never_started_does_not_wait_for_a_silent_node)
{
    autocluster struct cluster *c = open_with_gang();
    prepared(c, "gang", "a");
    quiet(c);
    advance_beating(c, PREPARE_EXPIRY_MS, "a");
    expect(c, "[15000] node b is silent\n"
              "[60000] node b gets no work for 2000 ms\n"
              "[60000] attempt gang/1 PREPARING -> STOPPING\n"
              "[60000] attempt gang/1 ends: node b did not get prepared within 60 s\n"
              "[60000] member gang/1@b ORDERED -> LOST\n"
              "[60000] member gang@b is lost: node b is silent\n");
    stopped(c, "gang", "a");
    expect_job(c, "gang", JOB_QUEUED);
    ck_assert_int_eq(prepared(c, "gang", "b"), ERR_FENCED);
}
END_TEST

START_TEST(a_node_that_declines_gets_no_work_for_a_while_and_nobody_pays)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .infra_retries = -1);
    quiet(c);
    declined(c, "aaaa", "a");
    expect(c, "[    0] member aaaa/1@a ORDERED -> FLUSHED\n"
              "[    0] attempt aaaa/1 STARTED -> STOPPING\n"
              "[    0] attempt aaaa/1 ends: a node declined on node a: GPU 0 is in use\n"
              "[    0] node a gets no work for 2000 ms\n"
              "[    0] attempt aaaa/1 STOPPING -> ENDED\n"
              "[    0] job aaaa PLACED -> QUEUED (DECLINED)\n"
              "[    0] job aaaa waits: 1 wanted, 0 free\n");
    advance(c, 2000);
    declined(c, "aaaa", "a");
    expect(c, "[ 2000] job aaaa QUEUED -> PLACED on a:0\n"
              "[ 2000] attempt aaaa/2 RESERVED -> STARTED\n"
              "[ 2000] member aaaa/2@a ORDERED -> FLUSHED\n"
              "[ 2000] attempt aaaa/2 STARTED -> STOPPING\n"
              "[ 2000] attempt aaaa/2 ends: a node declined on node a: GPU 0 is in use\n"
              "[ 2000] node a gets no work for 4000 ms\n"
              "[ 2000] attempt aaaa/2 STOPPING -> ENDED\n"
              "[ 2000] job aaaa PLACED -> QUEUED (DECLINED)\n");
    advance(c, 4000);
    expect_job(c, "aaaa", JOB_PLACED);
    running(c, "aaaa", "a");
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 0);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->user_failures, 0);
    exited(c, "aaaa", "a", 0);
    submit(c, "bbbb");
    quiet(c);
    declined(c, "bbbb", "a");
    ck_assert_ptr_nonnull(strstr(c->trace.bytes, "node a gets no work for 2000 ms"));
}
END_TEST

START_TEST(holds_grow_no_longer_than_their_limit)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(declined(c, "aaaa", "a"), ERR_NONE);
        quiet(c);
        advance_beating(c, DECLINE_HOLD_MAX_MS, "a");
        expect_job(c, "aaaa", JOB_PLACED);
    }
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->attempt, 11);
}
END_TEST

START_TEST(one_member_that_declines_stops_the_gang)
{
    autocluster struct cluster *c = open_with_gang();
    prepared(c, "gang", "a");
    quiet(c);
    declined(c, "gang", "b");
    expect_orders(c, "a", "stop gang/1 rank 0-0 of 2 on 0 node 0 of 2 DECLINED grace 5000\n");
    expect_orders(c, "b", "");
    expect_job(c, "gang", JOB_PLACED);
    stopped(c, "gang", "a");
    expect_job(c, "gang", JOB_QUEUED);
    expect_history(c, "gang", "submitted placed stopping requeued");
}
END_TEST

START_TEST(the_port_of_a_gang_on_one_node_comes_with_running)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "gang", .gpus = 2);
    struct report_message report = {.kind = REPORT_RUNNING, .address = "127.0.0.1", .master_port = 20001};
    cluster_report(c, "gang", "a", &report);
    ck_assert_int_eq(rows_attempt(c->rows, rows_attempt_id(c->rows, "gang"))->master_port, 20001);
}
END_TEST

Suite *gang_suite(void)
{
    Suite *suite = suite_create("gang");
    TCase *tests = tcase_create("gang");
    tcase_add_test(tests, a_gang_over_nodes_starts_when_all_are_prepared);
    tcase_add_test(tests, a_start_names_address_and_port_of_each_node);
    tcase_add_test(tests, ranks_that_ended_well_before_the_start_did_not_run);
    tcase_add_test(tests, order_versions_rise_with_every_change_and_only_then);
    tcase_add_test(tests, node_rank_0_must_bring_address_and_port);
    tcase_add_test(tests, nobody_may_run_before_the_start_is_committed);
    tcase_add_test(tests, repeated_reports_change_nothing);
    tcase_add_test(tests, an_exit_may_be_repeated_after_the_end_of_the_job);
    tcase_add_test(tests, reports_of_an_older_attempt_are_fenced);
    tcase_add_test(tests, attempt_ids_rise_over_jobs_attempts_and_restarts);
    tcase_add_test(tests, a_member_that_exits_early_passes_through_running);
    tcase_add_test(tests, a_node_that_is_not_prepared_in_time_costs_an_infra_retry_and_gets_a_hold);
    tcase_add_test(tests, a_gang_that_goes_on_from_another_job_has_time_for_its_checkpoint);
    tcase_add_test(tests, a_gang_that_never_started_does_not_wait_for_a_silent_node);
    tcase_add_test(tests, a_node_that_declines_gets_no_work_for_a_while_and_nobody_pays);
    tcase_add_test(tests, holds_grow_no_longer_than_their_limit);
    tcase_add_test(tests, one_member_that_declines_stops_the_gang);
    tcase_add_test(tests, the_port_of_a_gang_on_one_node_comes_with_running);
    suite_add_tcase(suite, tests);
    return suite;
}
