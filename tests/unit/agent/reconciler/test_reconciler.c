/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/reconciler: each is a story in inputs, and the actions that it must cause, in order.
 * Heartbeats and leases are in test_reconciler_lease.c. */
#include "proto/base/cleanup.h"
#include "tests/unit/agent/agent_suites.h"
#include "tests/unit/agent/reconciler/reconciler_rig.h"

/* --- life of an attempt --------------------------------------------------------------------------------- */

START_TEST(a_node_registers_then_polls)
{
    reconciler_start(reconciler);
    expect("register");
    registered(1000);
    expect("poll");
    ck_assert_uint_eq(reconciler_version(reconciler), 0);
    poll_with(LIVE(), NULL, 0);
    expect("poll");
    ck_assert_uint_eq(reconciler_version(reconciler), 7);
}
END_TEST

START_TEST(a_run_order_is_claimed_reported_and_forgotten)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    expect("claim 5, poll");
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    expect("report 5 running");
    reconciler_heard(reconciler, 5, NEWS_EXITED);
    expect("clear 5");
    reconciler_heard(reconciler, 5, NEWS_CLEARED);
    expect("");
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    expect("report 5 exited");
    reconciler_answered(reconciler, 5, ANSWER_FLUSHED);
    expect("");
    poll_with(LIVE(), NULL, 0);
    expect("poll, forget 5");
}
END_TEST

START_TEST(a_gang_over_nodes_waits_for_its_start)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_PREPARE});
    expect("claim 5, poll");
    reconciler_heard(reconciler, 5, NEWS_PREPARED);
    expect("report 5 prepared");
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    order((struct order){.attempt_id = 5, .phase = ORDER_START});
    expect("start 5, poll");
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    expect("report 5 running");
}
END_TEST

START_TEST(a_start_is_not_given_twice)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_PREPARE});
    reconciler_heard(reconciler, 5, NEWS_PREPARED);
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    order((struct order){.attempt_id = 5, .phase = ORDER_START});
    order((struct order){.attempt_id = 5, .phase = ORDER_START});
    expect("claim 5, poll, report 5 prepared, start 5, poll, poll");
}
END_TEST

START_TEST(a_repeated_order_is_not_claimed_again)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    expect("claim 5, poll, poll");
}
END_TEST

START_TEST(a_controller_that_forgot_hears_again_what_is)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_PREPARE});
    reconciler_heard(reconciler, 5, NEWS_PREPARED);
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    expect("claim 5, poll, report 5 prepared");
    order((struct order){.attempt_id = 5, .phase = ORDER_PREPARE});
    expect("report 5 prepared, poll");
}
END_TEST

START_TEST(a_late_prepare_does_not_take_back_a_start)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_PREPARE});
    order((struct order){.attempt_id = 5, .phase = ORDER_START});
    order((struct order){.attempt_id = 5, .phase = ORDER_PREPARE});
    expect("claim 5, poll, poll, poll");
    reconciler_heard(reconciler, 5, NEWS_PREPARED);
    expect("start 5");
}
END_TEST

START_TEST(a_decline_is_reported_and_ends_it)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    reconciler_heard(reconciler, 5, NEWS_DECLINED);
    expect("claim 5, poll, report 5 declined");
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    poll_with(LIVE(), NULL, 0);
    expect("poll, forget 5");
}
END_TEST

START_TEST(reports_of_one_attempt_id_leave_one_at_a_time)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    reconciler_heard(reconciler, 5, NEWS_FAILED);
    expect("claim 5, poll, report 5 running");
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    expect("report 5 failed");
    reconciler_heard(reconciler, 5, NEWS_EXITED);
    reconciler_heard(reconciler, 5, NEWS_CLEARED);
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    expect("clear 5, report 5 exited");
}
END_TEST

START_TEST(an_exit_is_reported_again_when_its_logs_have_followed)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    reconciler_heard(reconciler, 5, NEWS_EXITED);
    reconciler_heard(reconciler, 5, NEWS_CLEARED);
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    expect("claim 5, poll, clear 5, report 5 exited");
    reconciler_heard(reconciler, 5, NEWS_DRAINED);
    expect("report 5 exited");
    reconciler_answered(reconciler, 5, ANSWER_FLUSHED);
    size_t count;
    autofree struct node_attempt *list = reconciler_list(reconciler, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(list[0].state, MEMBER_FLUSHED);
}
END_TEST

/* --- stopping ------------------------------------------------------------------------------------------- */

START_TEST(a_stop_reaches_the_shim_each_time)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    order((struct order){.attempt_id = 5, .phase = ORDER_STOP, .grace_ms = 30000, .cause = CAUSE_CANCELED});
    order((struct order){.attempt_id = 5, .phase = ORDER_STOP, .grace_ms = 0, .cause = CAUSE_CANCELED});
    expect("claim 5, poll, stop 5 30000 CANCELED, poll, stop 5 0 CANCELED, poll");
}
END_TEST

START_TEST(a_stop_hands_on_the_signal_that_it_begins_with)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    order((struct order){.attempt_id = 5,
                         .phase = ORDER_STOP,
                         .grace_ms = 30000,
                         .cause = CAUSE_PREEMPTED,
                         .signal = EARLY_USR1});
    expect("claim 5, poll, stop 5 30000 PREEMPTED USR1, poll");
}
END_TEST

START_TEST(ranks_that_run_are_warned_once)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    expect("claim 5, poll, report 5 running");
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .signal = EARLY_USR1});
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .signal = EARLY_USR1});
    expect("report 5 running, warn 5 USR1, poll, report 5 running, poll");
}
END_TEST

START_TEST(ranks_of_a_kept_gang_are_ended_once_and_the_stop_comes_later)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_PREPARE});
    reconciler_heard(reconciler, 5, NEWS_PREPARED);
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    order((struct order){.attempt_id = 5, .phase = ORDER_START, .kept = true});
    expect("claim 5, poll, report 5 prepared, start 5, poll");
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    expect("report 5 running, keep 5");
    order((struct order){.attempt_id = 5, .phase = ORDER_START, .kept = true});
    expect("report 5 running, poll");
    order((struct order){.attempt_id = 5, .phase = ORDER_STOP, .grace_ms = 5000, .cause = CAUSE_RANK_FAILED});
    expect("stop 5 5000 RANK_FAILED, poll");
}
END_TEST

START_TEST(a_new_agent_tells_the_supervisor_of_a_kept_gang_again)
{
    reconciler_adopt(reconciler, 5);
    join();
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    expect("report 5 running");
    order((struct order){.attempt_id = 5, .phase = ORDER_START, .kept = true});
    expect("report 5 running, keep 5, poll");
}
END_TEST

START_TEST(a_warning_waits_until_the_ranks_run)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .signal = EARLY_USR1});
    expect("claim 5, poll");
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    expect("report 5 running, warn 5 USR1");
    order((struct order){.attempt_id = 6, .phase = ORDER_PREPARE});
    reconciler_heard(reconciler, 6, NEWS_PREPARED);
    expect("stop 5 0 NODE_LOST, claim 6, poll, report 6 prepared");
    order((struct order){.attempt_id = 6, .phase = ORDER_START, .signal = EARLY_TERM});
    expect("start 6, poll");
    reconciler_heard(reconciler, 6, NEWS_RUNNING);
    expect("warn 6 TERM");
}
END_TEST

START_TEST(a_new_agent_tells_an_adopted_shim_which_knows_better)
{
    reconciler_adopt(reconciler, 5);
    join();
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .signal = EARLY_USR1});
    expect("report 5 running, warn 5 USR1, poll");
}
END_TEST

START_TEST(a_stop_before_the_start_means_no_start)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_PREPARE});
    order((struct order){.attempt_id = 5, .phase = ORDER_STOP, .cause = CAUSE_CANCELED});
    reconciler_heard(reconciler, 5, NEWS_PREPARED);
    order((struct order){.attempt_id = 5, .phase = ORDER_START});
    expect("claim 5, poll, stop 5 0 CANCELED, poll, poll");
}
END_TEST

START_TEST(a_stop_of_an_unknown_attempt_id_buries_it)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_STOP, .cause = CAUSE_CANCELED});
    expect("tombstone 5 CANCELED, poll");
    reconciler_heard(reconciler, 5, NEWS_EXITED);
    reconciler_heard(reconciler, 5, NEWS_CLEARED);
    expect("clear 5, report 5 exited");
}
END_TEST

START_TEST(a_start_of_an_unknown_attempt_id_starts_nothing)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_START});
    expect("tombstone 5 SHIM_LOST, poll");
}
END_TEST

START_TEST(a_stop_of_a_declined_attempt_is_answered_with_its_exit)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_PREPARE});
    reconciler_heard(reconciler, 5, NEWS_DECLINED);
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    expect("claim 5, poll, report 5 declined");
    order((struct order){.attempt_id = 5, .phase = ORDER_STOP, .cause = CAUSE_CANCELED});
    expect("report 5 exited, poll");
}
END_TEST

START_TEST(an_attempt_id_that_is_not_listed_is_killed_and_forgotten)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    reconciler_answered(reconciler, 5, ANSWER_TAKEN);
    expect("claim 5, poll, report 5 running");
    poll_with(LIVE(9), NULL, 0);
    expect("stop 5 0 NODE_LOST, poll");
    poll_with(LIVE(9), NULL, 0);
    expect("poll");
    reconciler_heard(reconciler, 5, NEWS_EXITED);
    expect("clear 5");
    reconciler_heard(reconciler, 5, NEWS_CLEARED);
    expect("forget 5");
}
END_TEST

START_TEST(a_fenced_report_kills_the_attempt)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    expect("claim 5, poll, report 5 running");
    reconciler_answered(reconciler, 5, ANSWER_FENCED);
    expect("stop 5 0 NODE_LOST");
    reconciler_heard(reconciler, 5, NEWS_FAILED);
    expect("");
}
END_TEST

START_TEST(an_order_that_is_not_listed_is_not_taken)
{
    join();
    const struct order stale = {.attempt_id = 5, .phase = ORDER_RUN};
    poll_with(LIVE(9), &stale, 1);
    expect("poll");
}
END_TEST

/* --- standing ------------------------------------------------------------------------------------------- */

START_TEST(a_stranger_registers_again_and_its_reports_wait)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    expect("claim 5, poll, report 5 running");
    reconciler_answered(reconciler, 5, ANSWER_STRANGER);
    reconciler_heard(reconciler, 5, NEWS_FAILED);
    expect("register");
    ck_assert_uint_eq(reconciler_version(reconciler), 0);
    registered(2000);
    expect("report 5 running, poll");
}
END_TEST

START_TEST(being_a_stranger_twice_registers_once)
{
    join();
    reconciler_stranger(reconciler);
    reconciler_stranger(reconciler);
    expect("register");
}
END_TEST

START_TEST(what_was_adopted_is_listed_and_goes_on)
{
    reconciler_adopt(reconciler, 5);
    reconciler_heard(reconciler, 5, NEWS_PREPARED);
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    reconciler_start(reconciler);
    expect("register");
    size_t count;
    autofree struct node_attempt *list = reconciler_list(reconciler, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(list[0].attempt_id, 5);
    ck_assert_int_eq(list[0].state, MEMBER_RUNNING);
    registered(1000);
    expect("report 5 running, poll");
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    expect("poll");
}
END_TEST

START_TEST(a_silent_adopted_shim_is_told_again)
{
    reconciler_adopt(reconciler, 5);
    reconciler_adopt(reconciler, 6);
    join();
    const struct order orders[] = {{.attempt_id = 5, .phase = ORDER_RUN},
                                   {.attempt_id = 6, .phase = ORDER_PREPARE}};
    poll_with(LIVE(5, 6), orders, 2);
    expect("run 5, prepare 6, poll");
}
END_TEST

START_TEST(an_adopted_exit_is_reported_unless_nobody_wants_it)
{
    reconciler_adopt(reconciler, 5);
    reconciler_adopt(reconciler, 6);
    reconciler_heard(reconciler, 5, NEWS_EXITED);
    reconciler_heard(reconciler, 5, NEWS_CLEARED);
    reconciler_heard(reconciler, 6, NEWS_EXITED);
    reconciler_heard(reconciler, 6, NEWS_CLEARED);
    reconciler_start(reconciler);
    registered(1000);
    expect("clear 5, clear 6, register, report 5 exited, report 6 exited, poll");
    poll_with(LIVE(6), NULL, 0);
    expect("poll, forget 5");
}
END_TEST

START_TEST(an_agent_that_is_told_to_end_does_so_when_nothing_is_left)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    struct poll_reply reply = LIVE(5);
    reply.shutdown = true;
    poll_with(reply, NULL, 0);
    expect("claim 5, poll, poll");
    reconciler_heard(reconciler, 5, NEWS_EXITED);
    reconciler_heard(reconciler, 5, NEWS_CLEARED);
    reconciler_answered(reconciler, 5, ANSWER_FLUSHED);
    expect("clear 5, report 5 exited");
    reply = LIVE();
    reply.shutdown = true;
    poll_with(reply, NULL, 0);
    expect("forget 5, end");
}
END_TEST

Suite *reconciler_suite(void)
{
    Suite *suite = suite_create("reconciler");
    TCase *tcase = tcase_create("reconciler");
    tcase_add_checked_fixture(tcase, reconciler_rig_open, reconciler_rig_close);
    tcase_add_test(tcase, a_node_registers_then_polls);
    tcase_add_test(tcase, a_run_order_is_claimed_reported_and_forgotten);
    tcase_add_test(tcase, a_gang_over_nodes_waits_for_its_start);
    tcase_add_test(tcase, a_start_is_not_given_twice);
    tcase_add_test(tcase, a_repeated_order_is_not_claimed_again);
    tcase_add_test(tcase, a_controller_that_forgot_hears_again_what_is);
    tcase_add_test(tcase, a_late_prepare_does_not_take_back_a_start);
    tcase_add_test(tcase, a_decline_is_reported_and_ends_it);
    tcase_add_test(tcase, reports_of_one_attempt_id_leave_one_at_a_time);
    tcase_add_test(tcase, an_exit_is_reported_again_when_its_logs_have_followed);
    tcase_add_test(tcase, a_stop_reaches_the_shim_each_time);
    tcase_add_test(tcase, a_stop_hands_on_the_signal_that_it_begins_with);
    tcase_add_test(tcase, ranks_that_run_are_warned_once);
    tcase_add_test(tcase, ranks_of_a_kept_gang_are_ended_once_and_the_stop_comes_later);
    tcase_add_test(tcase, a_new_agent_tells_the_supervisor_of_a_kept_gang_again);
    tcase_add_test(tcase, a_warning_waits_until_the_ranks_run);
    tcase_add_test(tcase, a_new_agent_tells_an_adopted_shim_which_knows_better);
    tcase_add_test(tcase, a_stop_before_the_start_means_no_start);
    tcase_add_test(tcase, a_stop_of_an_unknown_attempt_id_buries_it);
    tcase_add_test(tcase, a_start_of_an_unknown_attempt_id_starts_nothing);
    tcase_add_test(tcase, a_stop_of_a_declined_attempt_is_answered_with_its_exit);
    tcase_add_test(tcase, an_attempt_id_that_is_not_listed_is_killed_and_forgotten);
    tcase_add_test(tcase, a_fenced_report_kills_the_attempt);
    tcase_add_test(tcase, an_order_that_is_not_listed_is_not_taken);
    tcase_add_test(tcase, a_stranger_registers_again_and_its_reports_wait);
    tcase_add_test(tcase, being_a_stranger_twice_registers_once);
    tcase_add_test(tcase, what_was_adopted_is_listed_and_goes_on);
    tcase_add_test(tcase, a_silent_adopted_shim_is_told_again);
    tcase_add_test(tcase, an_adopted_exit_is_reported_unless_nobody_wants_it);
    tcase_add_test(tcase, an_agent_that_is_told_to_end_does_so_when_nothing_is_left);
    suite_add_tcase(suite, tcase);
    return suite;
}
