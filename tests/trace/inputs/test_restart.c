/* SPDX-License-Identifier: Apache-2.0 */
/* A controller that is started from the rows of the one before decides as that would have. */
#include "proto/limits.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

/* Restarts and expects equal orders with larger versions. */
static void restart(struct cluster *c)
{
    autotext struct text before = {0};
    autotext struct text after = {0};
    cluster_orders_text(c, &before);
    struct node_orders *old = core_orders(c->core, "a");
    cluster_restart(c);
    struct node_orders *new = core_orders(c->core, "a");
    cluster_orders_text(c, &after);
    ck_assert_str_eq(after.bytes, before.bytes);
    ck_assert_uint_gt(new->version, old->version);
    for (size_t i = 0; i < new->count; i++) {
        ck_assert_uint_gt(new->items[i].version, old->items[i].version);
    }
    node_orders_destroy(old);
    node_orders_destroy(new);
}

START_TEST(a_gang_lives_through_a_restart_at_every_stage)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "gang", .gpus = 4, .type = "a10", .retries = 1);
    restart(c);
    submit(c, "wait", .gpus = 3);
    restart(c);
    prepared(c, "gang", "a");
    restart(c);
    prepared(c, "gang", "b");
    restart(c);
    expect_orders(c, "b", "start gang/1 rank 2-3 of 4 on 0,1 node 1 of 2 master 10.0.0.1:20000\n");
    running(c, "gang", "a");
    restart(c);
    running(c, "gang", "b");
    restart(c);
    expect_job(c, "gang", JOB_RUNNING);
    failed(c, "gang", "b", 3, 7);
    restart(c);
    stopped(c, "gang", "a");
    restart(c);
    exited(c, "gang", "b", 7);
    expect_history(c, "gang", "submitted placed started running stopping requeued placed");
    restart(c);
    expect_job(c, "wait", JOB_QUEUED);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    exited(c, "gang", "a", 1);
    restart(c);
    stopped(c, "gang", "b");
    expect_ended(c, "gang", JOB_FAILED, 1, "rank 0 on node a exited with 1");
    ck_assert_str_eq(rows_job(c->rows, "gang")->failed_node, "a");
    restart(c);
    expect_job(c, "wait", JOB_PLACED);
}
END_TEST

START_TEST(waiting_jobs_keep_their_order)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    submit(c, "aaaa", .retries = 1);
    submit(c, "wide", .gpus = 2);
    submit(c, "bbbb");
    submit(c, "cccc", .type = "A10");
    restart(c);
    expect_job(c, "bbbb", JOB_QUEUED);
    exited(c, "aaaa", "a", 1); /* it is requeued before all others */
    restart(c);
    exited(c, "aaaa", "a", 0);
    expect_job(c, "wide", JOB_PLACED);
    exited(c, "wide", "a", 0);
    expect_job(c, "bbbb", JOB_PLACED);
    expect_job(c, "cccc", JOB_PLACED);
}
END_TEST

START_TEST(an_acknowledged_cancel_outlives_the_controller)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .retries = 3);
    failed(c, "aaaa", "a", 0, 1);
    cancel(c, "aaaa");
    restart(c);
    exited(c, "aaaa", "a", 1);
    expect_ended(c, "aaaa", JOB_CANCELED, 130, "canceled");
}
END_TEST

START_TEST(a_repeated_exit_of_a_requeued_job_is_still_known)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .retries = 1);
    uint64_t attempt_id = rows_attempt_id(c->rows, "aaaa");
    drain(c, "a");
    exited(c, "aaaa", "a", 1);
    expect_job(c, "aaaa", JOB_QUEUED);
    restart(c);
    struct report_message again = {.kind = REPORT_EXITED, .attempt_id = attempt_id, .flushed = true};
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &again), ERR_NONE);
    resume(c, "a");
    ck_assert_int_eq(cluster_report(c, "aaaa", "a", &again), ERR_FENCED);
}
END_TEST

START_TEST(nodes_keep_their_standing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b");
    node(c, "d", .pool = "spot", .type = "H100");
    submit(c, "aaaa", .pool = "default");
    drain(c, "b");
    fence(c, "d");
    restart(c);
    ck_assert_int_eq(submit(c, "hhhh", .type = "H100"), ERR_GPU_TYPE);
    ck_assert_int_eq(heartbeat(c, "d"), ERR_NOT_FOUND);
    quiet(c);
    exited(c, "aaaa", "b", 0);
    expect(c, "[    0] member aaaa/1@b ORDERED -> RUNNING\n"
              "[    0] job aaaa PLACED -> RUNNING\n"
              "[    0] member aaaa/1@b RUNNING -> EXITED\n"
              "[    0] member aaaa/1@b EXITED -> FLUSHED\n"
              "[    0] attempt aaaa/1 STARTED -> ENDED\n"
              "[    0] node b DRAINING -> DRAINED\n"
              "[    0] job aaaa RUNNING -> SUCCEEDED\n");
}
END_TEST

START_TEST(deadlines_begin_anew)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2);
    prepared(c, "gang", "a");
    advance_beating(c, PREPARE_EXPIRY_MS - 1, "a b");
    restart(c);
    advance_beating(c, PREPARE_EXPIRY_MS - 1, "a b");
    expect_orders(c, "b", "prepare gang/1 rank 1-1 of 2 on 0 node 1 of 2\n");
    advance(c, 1);
    expect_orders(c, "b", "stop gang/1 rank 1-1 of 2 on 0 node 1 of 2 PREPARE_EXPIRED grace 5000\n");
}
END_TEST

START_TEST(what_fits_is_placed_at_boot)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    declined(c, "aaaa", "a");
    expect_job(c, "aaaa", JOB_QUEUED); /* a is on hold, which nobody remembers */
    cluster_restart(c);
    expect_job(c, "aaaa", JOB_PLACED);
}
END_TEST

START_TEST(a_wall_clock_that_went_back_takes_back_no_history)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    advance(c, 60000);
    running(c, "aaaa", "a");
    hold(c, "aaaa"); /* refused: it runs */
    c->wall_ms -= 3600000;
    cluster_restart(c);
    exited(c, "aaaa", "a", 0); /* rows are never earlier than those before, or this aborts */
    expect_job(c, "aaaa", JOB_SUCCEEDED);
}
END_TEST

START_TEST(how_long_a_job_ran_is_not_told_by_the_wall_clock)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    advance(c, 60000);
    c->wall_ms += 10LL * 365 * 24 * 3600 * 1000;
    exited(c, "aaaa", "a", 0);
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->ran_ms, 60000);
}
END_TEST

/* The first is expected to run for an hour; when it outruns that, the gap before the wide one grows. */
START_TEST(a_refusal_changes_nothing_even_when_time_alone_lets_a_job_go)
{
    autocluster struct cluster *c = cluster_open_with(POLICY_EASY);
    node(c, "a", .gpus = 2);
    submit(c, "aaaa");
    submit(c, "wide", .gpus = 2);
    advance_beating(c, 3500000, "a");
    submit(c, "gap", .time_limit_ms = 700000);
    advance_beating(c, 99000, "a");
    expect_job(c, "gap", JOB_QUEUED);
    c->now_ms += 2000; /* and no TICK in between */
    ck_assert_int_eq(cancel(c, "nobody"), ERR_NOT_FOUND);
    expect_job(c, "gap", JOB_QUEUED);
    heartbeat(c, "a");
    expect_job(c, "gap", JOB_PLACED);
}
END_TEST

Suite *restart_suite(void)
{
    Suite *suite = suite_create("restart");
    TCase *tests = tcase_create("restart");
    tcase_add_test(tests, a_gang_lives_through_a_restart_at_every_stage);
    tcase_add_test(tests, waiting_jobs_keep_their_order);
    tcase_add_test(tests, an_acknowledged_cancel_outlives_the_controller);
    tcase_add_test(tests, a_repeated_exit_of_a_requeued_job_is_still_known);
    tcase_add_test(tests, nodes_keep_their_standing);
    tcase_add_test(tests, deadlines_begin_anew);
    tcase_add_test(tests, what_fits_is_placed_at_boot);
    tcase_add_test(tests, a_wall_clock_that_went_back_takes_back_no_history);
    tcase_add_test(tests, how_long_a_job_ran_is_not_told_by_the_wall_clock);
    tcase_add_test(tests, a_refusal_changes_nothing_even_when_time_alone_lets_a_job_go);
    suite_add_tcase(suite, tests);
    return suite;
}
