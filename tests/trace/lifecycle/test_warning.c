/* SPDX-License-Identifier: Apache-2.0 */
/* The early signal: when ranks get it before their time limit, and what they get when they give way. */
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

#define USR1_A_MINUTE_BEFORE                                                                                 \
    {                                                                                                        \
        .signal = EARLY_USR1, .before_ms = 60000                                                             \
    }

/* One rank that runs since time 0. */
static struct cluster *open_with_running(int64_t time_limit_ms)
{
    struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "long", .time_limit_ms = time_limit_ms, .early = USR1_A_MINUTE_BEFORE, .retries = 3);
    running(c, "long", "a");
    quiet(c);
    return c;
}

START_TEST(ranks_are_warned_once_and_stopped_at_the_limit)
{
    autocluster struct cluster *c = open_with_running(100000);
    advance_beating(c, 39999, "a");
    expect(c, "");
    advance(c, 1);
    expect(c, "[40000] attempt long/1 is warned with USR1, 1 min before its time limit of 1 min 40 s\n");
    ck_assert_uint_eq(c->step.dirty_count, 1);
    expect_orders(c, "a", "run long/1 rank 0-0 of 1 on 0 USR1\n");
    expect_job(c, "long", JOB_RUNNING);
    advance_beating(c, 59999, "a");
    expect(c, "");
    advance(c, 1);
    expect(c, "[100000] attempt long/1 STARTED -> STOPPING\n"
              "[100000] attempt long/1 ends: ran longer than its time limit of 1 min 40 s\n");
    expect_orders(c, "a", "stop long/1 rank 0-0 of 1 on 0 TIME_LIMIT grace 30000\n");
    stopped(c, "long", "a");
    expect_history(c, "long", "submitted placed started running warned stopping timed_out");
}
END_TEST

START_TEST(a_job_that_ends_well_after_its_warning_has_succeeded)
{
    autocluster struct cluster *c = open_with_running(100000);
    advance_beating(c, 40000, "a");
    exited(c, "long", "a", 0);
    expect_ended(c, "long", JOB_SUCCEEDED, 0, "");
    expect_history(c, "long", "submitted placed started running warned succeeded");
}
END_TEST

START_TEST(without_a_limit_nobody_is_warned)
{
    autocluster struct cluster *c = open_with_running(0);
    advance_beating(c, 24 * 3600 * 1000, "a");
    expect(c, "");
    expect_orders(c, "a", "run long/1 rank 0-0 of 1 on 0\n");
}
END_TEST

START_TEST(nodes_of_a_gang_that_have_exited_are_not_warned)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2);
    node(c, "b", .gpus = 2);
    submit(c, "gang", .gpus = 4, .time_limit_ms = 100000, .early = USR1_A_MINUTE_BEFORE);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    running(c, "gang", "a");
    running(c, "gang", "b");
    exited(c, "gang", "a", 0);
    advance_beating(c, 39999, "a b");
    advance(c, 1);
    ck_assert_uint_eq(c->step.dirty_count, 1);
    ck_assert_str_eq(c->step.dirty_nodes[0], "b");
    expect_orders(c, "a", "");
    expect_orders(c, "b", "start gang/1 rank 2-3 of 4 on 0,1 node 1 of 2 master 10.0.0.1:20000 USR1\n");
}
END_TEST

START_TEST(a_restart_before_the_warning_begins_the_time_anew)
{
    autocluster struct cluster *c = open_with_running(100000);
    advance_beating(c, 30000, "a");
    cluster_restart(c);
    quiet(c);
    advance_beating(c, 39999, "a");
    expect(c, "");
    advance(c, 1);
    expect(c, "[70000] attempt long/1 is warned with USR1, 1 min before its time limit of 1 min 40 s\n");
}
END_TEST

START_TEST(a_restart_after_the_warning_gives_no_second_one_and_no_more_than_the_time_before_the_limit)
{
    autocluster struct cluster *c = open_with_running(100000);
    advance_beating(c, 50000, "a");
    cluster_restart(c);
    quiet(c);
    expect_orders(c, "a", "run long/1 rank 0-0 of 1 on 0 USR1\n");
    advance_beating(c, 59999, "a");
    expect(c, "");
    advance(c, 1);
    expect(c, "[110000] attempt long/1 STARTED -> STOPPING\n"
              "[110000] attempt long/1 ends: ran longer than its time limit of 1 min 40 s\n");
    stopped(c, "long", "a");
    expect_history(c, "long", "submitted placed started running warned stopping timed_out");
}
END_TEST

START_TEST(the_next_attempt_is_warned_anew)
{
    autocluster struct cluster *c = open_with_running(100000);
    advance_beating(c, 50000, "a");
    exited(c, "long", "a", 1);
    running(c, "long", "a");
    expect_orders(c, "a", "run long/2 rank 0-0 of 1 on 0\n");
    quiet(c);
    advance_beating(c, 40000, "a");
    expect(c, "[90000] attempt long/2 is warned with USR1, 1 min before its time limit of 1 min 40 s\n");
}
END_TEST

/* What a controller that was restarted tells of an attempt that was to give way. */
START_TEST(ranks_that_give_way_hear_their_signal_first_and_have_their_whole_grace)
{
    autocluster struct cluster *c = open_with_running(0);
    cancel(c, "long");
    expect_orders(c, "a", "stop long/1 rank 0-0 of 1 on 0 CANCELED grace 30000\n");
    struct attempt_row *row = (struct attempt_row *)(uintptr_t)rows_attempt(c->rows, UINT64_C(1) << 32 | 1);
    row->cause = CAUSE_PREEMPTED;
    cluster_restart(c);
    expect_orders(c, "a", "stop long/1 rank 0-0 of 1 on 0 USR1 PREEMPTED grace 30000\n");
}
END_TEST

START_TEST(the_last_acknowledged_checkpoint_of_any_node_is_kept)
{
    autocluster struct cluster *c = open_with_running(0);
    const struct rank_exit exit = {.rank = 0};
    const struct report_message report = {.kind = REPORT_EXITED,
                                          .ranks = (struct rank_exit *)(uintptr_t)&exit,
                                          .rank_count = 1,
                                          .checkpoint_ms = 1700000000000,
                                          .flushed = true};
    cluster_report(c, "long", "a", &report);
    ck_assert_int_eq(rows_attempt(c->rows, UINT64_C(1) << 32 | 1)->checkpoint_ms, 1700000000000);
}
END_TEST

START_TEST(a_limit_that_becomes_shorter_than_the_signals_time_warns_at_once)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .time_limit_ms = 3600000, .early = {.signal = EARLY_USR1, .before_ms = 600000});
    running(c, "aaaa", "a");
    change_limit(c, "aaaa", 300000);
    advance_beating(c, 1000, "a");
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0 USR1\n");
}
END_TEST

START_TEST(an_expiry_before_a_hard_window_is_what_stops_a_job)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    window(c, "w", .nodes = "a", .from_ms = 3 * 3600000, .until_ms = 4 * 3600000, .hard = true);
    expire(c, "a", 2 * 3600000);
    advance_beating(c, 2 * 3600000 - 31000, "a");
    expect_job(c, "aaaa", JOB_RUNNING);
    quiet(c);
    advance_beating(c, 5000, "a");
    expect_orders(c, "a", "stop aaaa/1 rank 0-0 of 1 on 0 PREEMPTED grace 30000\n");
    ck_assert_ptr_null(strstr(c->trace.bytes, "window"));
    stopped(c, "aaaa", "a");
    advance_beating(c, 60000, "a");
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_DRAINED);
    node(c, "a", .expires_ms = 2 * 3600000 + 1000); /* its agent says otherwise, but that is over as well */
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_DRAINED);
    node(c, "a", .expires_ms = 9 * 3600000);
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_READY);
}
END_TEST

Suite *warning_suite(void)
{
    Suite *suite = suite_create("warning");
    TCase *tests = tcase_create("warning");
    tcase_add_test(tests, ranks_are_warned_once_and_stopped_at_the_limit);
    tcase_add_test(tests, a_job_that_ends_well_after_its_warning_has_succeeded);
    tcase_add_test(tests, without_a_limit_nobody_is_warned);
    tcase_add_test(tests, nodes_of_a_gang_that_have_exited_are_not_warned);
    tcase_add_test(tests, a_restart_before_the_warning_begins_the_time_anew);
    tcase_add_test(
        tests, a_restart_after_the_warning_gives_no_second_one_and_no_more_than_the_time_before_the_limit);
    tcase_add_test(tests, the_next_attempt_is_warned_anew);
    tcase_add_test(tests, ranks_that_give_way_hear_their_signal_first_and_have_their_whole_grace);
    tcase_add_test(tests, the_last_acknowledged_checkpoint_of_any_node_is_kept);
    tcase_add_test(tests, a_limit_that_becomes_shorter_than_the_signals_time_warns_at_once);
    tcase_add_test(tests, an_expiry_before_a_hard_window_is_what_stops_a_job);
    suite_add_tcase(suite, tests);
    return suite;
}
