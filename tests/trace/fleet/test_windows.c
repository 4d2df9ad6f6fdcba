/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that go away: they expire, or are in a maintenance window. Work is placed only where it ends before,
 * and what cannot stay is stopped in time, at no cost of a retry. */
#include <string.h>

#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "tests/trace/harness/cluster.h"
#include "tests/trace/suites.h"

#define MINUTE_MS 60000

/* Which of the nodes a and b has orders for the job: "a", "b", "ab" or "". */
static const char *nodes_of(struct cluster *c, const char *id)
{
    static const char *const answers[] = {"", "a", "b", "ab"};
    int which = 0;
    for (int i = 0; i < 2; i++) {
        struct node_orders *orders = core_orders(c->core, i == 0 ? "a" : "b");
        for (size_t j = 0; j < orders->count; j++) {
            which |= strcmp(orders->items[j].job_id, id) == 0 ? 1 << i : 0;
        }
        node_orders_destroy(orders);
    }
    return answers[which];
}

/* --- placing -------------------------------------------------------------------------------------------- */

START_TEST(a_job_goes_only_where_it_ends_before_the_node_leaves)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .expires_ms = HOUR_MS);
    node(c, "b", .gpus = 2);
    submit(c, "long", .time_limit_ms = HOUR_MS);
    ck_assert_str_eq(nodes_of(c, "long"), "b"); /* a is the tighter fit, but its grace would be cut */
    submit(c, "exact", .time_limit_ms = HOUR_MS - DEFAULT_GRACE_MS);
    ck_assert_str_eq(nodes_of(c, "exact"), "a");
}
END_TEST

START_TEST(a_job_that_is_too_long_waits_until_the_window_is_over)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    ck_assert_int_eq(window(c, "w", .nodes = "a", .from_ms = HOUR_MS, .until_ms = 2 * HOUR_MS), ERR_NONE);
    submit(c, "long", .time_limit_ms = 2 * HOUR_MS);
    expect_job(c, "long", JOB_QUEUED);
    submit(c, "short", .gpus = 1, .type = "A10", .time_limit_ms = 10 * MINUTE_MS);
    expect_job(c, "short",
               JOB_PLACED); /* the node is not kept for one that cannot have it before the window */
    running(c, "short", "a");
    exited(c, "short", "a", 0);
    advance_beating(c, HOUR_MS, "a");
    quiet(c);
    advance_beating(c, HOUR_MS, "a");
    expect(c, "[7200000] window w has ended\n"
              "[7200000] node a is back\n"
              "[7200000] job long QUEUED -> PLACED on a:0\n"
              "[7200000] attempt long/1 RESERVED -> STARTED\n");
    ck_assert_uint_eq(rows_window_count(c->rows), 0);
}
END_TEST

START_TEST(a_node_in_a_window_takes_no_work_however_short)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    window(c, "w", .from_ms = -1000, .until_ms = HOUR_MS);
    submit(c, "aaaa", .time_limit_ms = 1000);
    expect_job(c, "aaaa", JOB_QUEUED);
    ck_assert_int_eq(remove_window(c, "w"), ERR_NONE);
    expect_job(c, "aaaa", JOB_PLACED);
}
END_TEST

START_TEST(a_job_of_unknown_length_is_kept_off_nodes_that_leave_within_a_day)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b", .gpus = 4);
    window(c, "w", .nodes = "a", .from_ms = 23 * HOUR_MS, .until_ms = 24 * HOUR_MS);
    submit(c, "aaaa");
    ck_assert_str_eq(nodes_of(c, "aaaa"), "b");
    submit(c, "bbbb", .gpus = 4, .type = "A10");
    expect_job(c, "bbbb", JOB_QUEUED); /* b could hold it, when aaaa has ended */
    submit(c, "cccc", .local = "a");
    ck_assert_str_eq(nodes_of(c, "cccc"), "a"); /* no other node ever could */
}
END_TEST

START_TEST(a_job_of_unknown_length_may_go_where_the_window_is_more_than_a_day_off)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b", .gpus = 4);
    window(c, "w", .nodes = "a", .from_ms = 25 * HOUR_MS, .until_ms = 26 * HOUR_MS);
    submit(c, "aaaa");
    ck_assert_str_eq(nodes_of(c, "aaaa"), "a");
}
END_TEST

START_TEST(a_node_is_no_longer_kept_for_a_job_that_has_become_too_long_for_it)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .gpus = 2, .expires_ms = 2 * HOUR_MS);
    submit(c, "busy", .time_limit_ms = 100 * MINUTE_MS);
    running(c, "busy", "a");
    submit(c, "wide", .gpus = 2, .time_limit_ms = HOUR_MS);
    submit(c, "thin", .time_limit_ms = 10 * MINUTE_MS);
    expect_job(c, "thin", JOB_QUEUED); /* wide is first, and could still have both */
    advance_beating(c, HOUR_MS + MINUTE_MS, "a");
    expect_job(c, "thin", JOB_PLACED);
    expect_job(c, "wide", JOB_QUEUED);
}
END_TEST

START_TEST(a_gang_needs_all_of_its_nodes_to_stay)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    window(c, "w", .nodes = "b", .from_ms = HOUR_MS, .until_ms = 2 * HOUR_MS);
    submit(c, "gang", .gpus = 2, .time_limit_ms = 3 * HOUR_MS);
    expect_job(c, "gang", JOB_QUEUED);
    submit(c, "quick", .gpus = 2, .type = "A10", .time_limit_ms = MINUTE_MS);
    expect_job(c, "quick", JOB_PLACED);
}
END_TEST

/* --- stopping ------------------------------------------------------------------------------------------- */

START_TEST(what_runs_on_a_node_that_expires_is_stopped_a_grace_before_and_goes_on_elsewhere)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .expires_ms = HOUR_MS);
    submit(c, "aaaa", .infra_retries = -1);
    running(c, "aaaa", "a");
    advance_beating(c, HOUR_MS - DEFAULT_GRACE_MS - 1, "a");
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n");
    quiet(c);
    advance(c, 1);
    expect(c, "[3570000] attempt aaaa/1 STARTED -> STOPPING\n"
              "[3570000] attempt aaaa/1 ends: node a expires at 1970-01-01T01:16:40.000Z\n");
    expect_orders(c, "a", "stop aaaa/1 rank 0-0 of 1 on 0 PREEMPTED grace 30000\n");
    stopped(c, "aaaa", "a");
    expect_job(c, "aaaa", JOB_QUEUED); /* and not back on a, where it would have no time to end */
    ck_assert_int_eq(rows_job(c->rows, "aaaa")->infra_failures, 0);
    node(c, "b");
    expect_orders(c, "b", "run aaaa/2 rank 0-0 of 1 on 0\n");
    expect_history(c, "aaaa", "submitted placed started running stopping requeued placed started");
}
END_TEST

START_TEST(a_job_that_came_late_is_stopped_in_time_as_well)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .expires_ms = DEFAULT_GRACE_MS + 10000);
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    advance(c, 9999);
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n");
    advance(c, 1);
    expect_orders(c, "a", "stop aaaa/1 rank 0-0 of 1 on 0 PREEMPTED grace 30000\n");
}
END_TEST

START_TEST(a_node_that_has_expired_is_drained)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .expires_ms = HOUR_MS);
    advance_beating(c, HOUR_MS - 1, "a");
    quiet(c);
    advance(c, 1);
    expect(c, "[3600000] node a READY -> DRAINING\n"
              "[3600000] node a DRAINING -> DRAINED\n"
              "[3600000] node a goes away\n");
    ck_assert_str_eq(rows_node(c->rows, "a")->reason, "expired");
    ck_assert_int_eq(resume(c, "a"), ERR_CONFLICT);
    expect_field(c, "name");
    ck_assert_int_eq(expire(c, "a", 3 * HOUR_MS), ERR_NONE);
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_READY);
}
END_TEST

START_TEST(a_drain_by_a_person_outlasts_a_new_expiry)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .expires_ms = HOUR_MS);
    drain(c, "a");
    advance_beating(c, 2 * HOUR_MS, "a");
    ck_assert_str_eq(rows_node(c->rows, "a")->reason, "drained by root");
    expire(c, "a", 0);
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_DRAINED);
    resume(c, "a");
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_READY);
}
END_TEST

START_TEST(a_soft_window_lets_what_runs_end)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    window(c, "w", .from_ms = HOUR_MS, .until_ms = 2 * HOUR_MS);
    advance_beating(c, HOUR_MS + MINUTE_MS, "a");
    expect_orders(c, "a", "run aaaa/1 rank 0-0 of 1 on 0\n");
    submit(c, "bbbb");
    exited(c, "aaaa", "a", 0);
    expect_ended(c, "aaaa", JOB_SUCCEEDED, 0, "");
    expect_job(c, "bbbb", JOB_QUEUED);
    advance_beating(c, HOUR_MS, "a");
    expect_job(c, "bbbb", JOB_PLACED);
}
END_TEST

START_TEST(a_hard_window_stops_what_runs_a_grace_before)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    node(c, "b");
    submit(c, "gang", .gpus = 2);
    prepared(c, "gang", "a");
    prepared(c, "gang", "b");
    running(c, "gang", "a");
    running(c, "gang", "b");
    window(c, "w", .pool = "default", .from_ms = HOUR_MS, .until_ms = 2 * HOUR_MS, .hard = true,
           .reason = "new fan");
    advance_beating(c, HOUR_MS - DEFAULT_GRACE_MS, "a b");
    expect_orders(c, "a", "stop gang/1 rank 0-0 of 2 on 0 node 0 of 2 PREEMPTED grace 30000\n");
    ck_assert_str_eq(rows_attempt(c->rows, rows_attempt_id(c->rows, "gang"))->cause_text,
                     "node a has maintenance from 1970-01-01T01:16:40.000Z: new fan");
    stopped(c, "gang", "a");
    stopped(c, "gang", "b");
    expect_job(c, "gang", JOB_QUEUED);
    advance_beating(c, HOUR_MS + DEFAULT_GRACE_MS, "a b");
    expect_job(c, "gang", JOB_PLACED);
}
END_TEST

START_TEST(a_hard_window_that_has_begun_stops_at_once)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    window(c, "w", .from_ms = -1000, .until_ms = HOUR_MS, .hard = true);
    advance(c, 0);
    expect_orders(c, "a", "stop aaaa/1 rank 0-0 of 1 on 0 PREEMPTED grace 30000\n");
}
END_TEST

START_TEST(a_time_limit_that_is_reached_at_the_same_moment_counts_as_such)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .expires_ms = HOUR_MS);
    submit(c, "aaaa", .time_limit_ms = HOUR_MS - DEFAULT_GRACE_MS);
    running(c, "aaaa", "a");
    advance_beating(c, HOUR_MS - DEFAULT_GRACE_MS, "a");
    expect_orders(c, "a", "stop aaaa/1 rank 0-0 of 1 on 0 TIME_LIMIT grace 30000\n");
}
END_TEST

START_TEST(a_removed_window_stops_nothing)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa");
    running(c, "aaaa", "a");
    window(c, "w", .from_ms = HOUR_MS, .until_ms = 2 * HOUR_MS, .hard = true);
    remove_window(c, "w");
    advance_beating(c, 2 * HOUR_MS, "a");
    expect_job(c, "aaaa", JOB_RUNNING);
    ck_assert_uint_eq(rows_window_count(c->rows), 0);
    ck_assert_int_eq(remove_window(c, "w"), ERR_NOT_FOUND);
    expect_field(c, "id");
}
END_TEST

START_TEST(windows_may_overlap)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    window(c, "v", .from_ms = MINUTE_MS, .until_ms = HOUR_MS);
    window(c, "w", .from_ms = 30 * MINUTE_MS, .until_ms = 2 * HOUR_MS);
    advance_beating(c, HOUR_MS + MINUTE_MS, "a");
    submit(c, "aaaa", .time_limit_ms = MINUTE_MS);
    expect_job(c, "aaaa", JOB_QUEUED);
    quiet(c);
    advance_beating(c, 59 * MINUTE_MS, "a");
    expect(c, "[7200000] window w has ended\n"
              "[7200000] node a is back\n"
              "[7200000] job aaaa QUEUED -> PLACED on a:0\n"
              "[7200000] attempt aaaa/1 RESERVED -> STARTED\n");
}
END_TEST

START_TEST(a_node_that_comes_later_is_in_the_window_of_its_pool)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .pool = "mine");
    window(c, "w", .pool = "mine", .from_ms = -1, .until_ms = HOUR_MS);
    node(c, "b", .pool = "mine");
    submit(c, "aaaa", .time_limit_ms = 1000);
    expect_job(c, "aaaa", JOB_QUEUED);
    node(c, "c", .pool = "other");
    expect_orders(c, "c", "run aaaa/1 rank 0-0 of 1 on 0\n");
}
END_TEST

/* --- what is refused ------------------------------------------------------------------------------------ */

START_TEST(windows_that_make_no_sense_are_refused)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    advance(c, HOUR_MS);
    ck_assert_int_eq(window(c, "w", .nodes = "a", .from_ms = 2 * HOUR_MS, .until_ms = 2 * HOUR_MS),
                     ERR_FIELD);
    expect_field(c, "until");
    ck_assert_int_eq(window(c, "w", .nodes = "a", .from_ms = 0, .until_ms = HOUR_MS), ERR_FIELD);
    expect_field(c, "until");
    ck_assert_int_eq(window(c, "w", .nodes = "a,z", .from_ms = 0, .until_ms = 2 * HOUR_MS), ERR_FIELD);
    expect_field(c, "nodes");
    ck_assert_str_eq(c->step.err.text, "no node is named z");
    ck_assert_int_eq(window(c, "w", .pool = "mine", .from_ms = 0, .until_ms = 2 * HOUR_MS), ERR_FIELD);
    expect_field(c, "pool");
    ck_assert_int_eq(expire(c, "a", HOUR_MS), ERR_FIELD);
    expect_field(c, "at");
    ck_assert_int_eq(expire(c, "z", 2 * HOUR_MS), ERR_NOT_FOUND);
    ck_assert_uint_eq(rows_window_count(c->rows), 0);
}
END_TEST

START_TEST(there_are_no_more_windows_than_the_limit)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    char id[ID_LENGTH + 1];
    for (int i = 0; i < LIMIT_WINDOWS; i++) {
        snprintf(id, sizeof id, "w%d", i);
        ck_assert_int_eq(window(c, id, .from_ms = HOUR_MS, .until_ms = 2 * HOUR_MS), ERR_NONE);
    }
    ck_assert_int_eq(window(c, "more", .from_ms = HOUR_MS, .until_ms = 2 * HOUR_MS), ERR_CONFLICT);
    expect_field(c, "nodes");
}
END_TEST

/* --- who says when it expires --------------------------------------------------------------------------- */

START_TEST(a_persons_word_stands_until_the_agent_says_something_else)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .expires_ms = HOUR_MS);
    expire(c, "a", 5 * HOUR_MS);
    node(c, "a", .expires_ms = HOUR_MS); /* the agent comes back and repeats itself */
    ck_assert_int_eq(rows_node(c->rows, "a")->expires_at_ms, c->wall_ms + 5 * HOUR_MS);
    cluster_restart(c);
    node(c, "a", .expires_ms = HOUR_MS);
    ck_assert_int_eq(rows_node(c->rows, "a")->expires_at_ms, c->wall_ms + 5 * HOUR_MS);
    node(c, "a", .expires_ms = 2 * HOUR_MS);
    ck_assert_int_eq(rows_node(c->rows, "a")->expires_at_ms, c->wall_ms + 2 * HOUR_MS);
}
END_TEST

START_TEST(an_expired_node_whose_agent_names_a_new_time_works_again)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .expires_ms = HOUR_MS);
    advance_beating(c, HOUR_MS, "a");
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_DRAINED);
    node(c, "a", .expires_ms = 9 * HOUR_MS, .boot = "boot-2");
    ck_assert_int_eq(rows_node(c->rows, "a")->state, NODE_READY);
}
END_TEST

START_TEST(a_node_that_comes_after_its_time_gets_no_work)
{
    autocluster struct cluster *c = cluster_open();
    advance(c, HOUR_MS);
    node(c, "b");
    submit(c, "aaaa");
    submit(c, "bbbb", .time_limit_ms = 1000);
    node(c, "a", .expires_ms = 1000);
    expect_job(c, "bbbb", JOB_QUEUED);
    advance(c, 0);
    ck_assert_str_eq(rows_node(c->rows, "a")->reason, "expired");
}
END_TEST

/* --- clocks and restarts -------------------------------------------------------------------------------- */

START_TEST(a_restart_knows_windows_and_expiries)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a", .expires_ms = 3 * HOUR_MS);
    node(c, "b");
    submit(c, "aaaa", .time_limit_ms = 2 * HOUR_MS, .local = "a");
    running(c, "aaaa", "a");
    window(c, "w", .nodes = "a", .from_ms = HOUR_MS, .until_ms = 2 * HOUR_MS, .hard = true);
    drain(c, "b");
    cluster_restart(c);
    submit(c, "bbbb", .time_limit_ms = 2 * HOUR_MS);
    expect_job(c, "bbbb", JOB_QUEUED);
    advance_beating(c, HOUR_MS - DEFAULT_GRACE_MS, "a b");
    expect_orders(c, "a", "stop aaaa/1 rank 0-0 of 1 on 0 PREEMPTED grace 30000\n");
}
END_TEST

START_TEST(a_window_that_ended_while_the_controller_was_away_is_over)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    window(c, "w", .from_ms = MINUTE_MS, .until_ms = HOUR_MS, .hard = true);
    submit(c, "aaaa", .time_limit_ms = HOUR_MS);
    c->now_ms += 2 * HOUR_MS;
    cluster_restart(c);
    expect_job(c, "aaaa", JOB_PLACED);
    advance(c, 1);
    ck_assert_uint_eq(rows_window_count(c->rows), 0);
}
END_TEST

START_TEST(a_wall_clock_that_is_set_moves_windows)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "a");
    submit(c, "aaaa", .time_limit_ms = HOUR_MS);
    running(c, "aaaa", "a");
    window(c, "w", .from_ms = 12 * HOUR_MS, .until_ms = 24 * HOUR_MS, .hard = true);
    c->wall_ms += 12 * HOUR_MS - 5 * MINUTE_MS; /* somebody sets it */
    advance_beating(c, MINUTE_MS, "a");
    expect_job(c, "aaaa", JOB_RUNNING);
    submit(c, "bbbb", .time_limit_ms = HOUR_MS);
    advance_beating(c, 4 * MINUTE_MS, "a");
    expect_orders(c, "a", "stop aaaa/1 rank 0-0 of 1 on 0 PREEMPTED grace 30000\n");
}
END_TEST

START_TEST(a_wall_clock_that_is_set_back_moves_windows_and_names_are_whole)
{
    autocluster struct cluster *c = cluster_open();
    node(c, "ab");
    node(c, "a");
    node(c, "abc");
    window(c, "w", .nodes = "a,ab", .from_ms = HOUR_MS, .until_ms = 2 * HOUR_MS);
    submit(c, "long", .time_limit_ms = 2 * HOUR_MS);
    expect_orders(c, "abc", "run long/1 rank 0-0 of 1 on 0\n");
    c->wall_ms -= 12 * HOUR_MS; /* the window is later than it was */
    advance_beating(c, MINUTE_MS, "a ab abc");
    submit(c, "next", .time_limit_ms = 2 * HOUR_MS);
    expect_job(c, "next", JOB_PLACED);
}
END_TEST

Suite *window_suite(void)
{
    Suite *suite = suite_create("windows");
    TCase *tests = tcase_create("windows");
    tcase_add_test(tests, a_job_goes_only_where_it_ends_before_the_node_leaves);
    tcase_add_test(tests, a_job_that_is_too_long_waits_until_the_window_is_over);
    tcase_add_test(tests, a_node_in_a_window_takes_no_work_however_short);
    tcase_add_test(tests, a_job_of_unknown_length_is_kept_off_nodes_that_leave_within_a_day);
    tcase_add_test(tests, a_job_of_unknown_length_may_go_where_the_window_is_more_than_a_day_off);
    tcase_add_test(tests, a_node_is_no_longer_kept_for_a_job_that_has_become_too_long_for_it);
    tcase_add_test(tests, a_gang_needs_all_of_its_nodes_to_stay);
    tcase_add_test(tests, what_runs_on_a_node_that_expires_is_stopped_a_grace_before_and_goes_on_elsewhere);
    tcase_add_test(tests, a_job_that_came_late_is_stopped_in_time_as_well);
    tcase_add_test(tests, a_node_that_has_expired_is_drained);
    tcase_add_test(tests, a_drain_by_a_person_outlasts_a_new_expiry);
    tcase_add_test(tests, a_soft_window_lets_what_runs_end);
    tcase_add_test(tests, a_hard_window_stops_what_runs_a_grace_before);
    tcase_add_test(tests, a_hard_window_that_has_begun_stops_at_once);
    tcase_add_test(tests, a_time_limit_that_is_reached_at_the_same_moment_counts_as_such);
    tcase_add_test(tests, a_removed_window_stops_nothing);
    tcase_add_test(tests, windows_may_overlap);
    tcase_add_test(tests, a_node_that_comes_later_is_in_the_window_of_its_pool);
    tcase_add_test(tests, windows_that_make_no_sense_are_refused);
    tcase_add_test(tests, there_are_no_more_windows_than_the_limit);
    tcase_add_test(tests, a_persons_word_stands_until_the_agent_says_something_else);
    tcase_add_test(tests, an_expired_node_whose_agent_names_a_new_time_works_again);
    tcase_add_test(tests, a_node_that_comes_after_its_time_gets_no_work);
    tcase_add_test(tests, a_restart_knows_windows_and_expiries);
    tcase_add_test(tests, a_window_that_ended_while_the_controller_was_away_is_over);
    tcase_add_test(tests, a_wall_clock_that_is_set_moves_windows);
    tcase_add_test(tests, a_wall_clock_that_is_set_back_moves_windows_and_names_are_whole);
    suite_add_tcase(suite, tests);
    return suite;
}
