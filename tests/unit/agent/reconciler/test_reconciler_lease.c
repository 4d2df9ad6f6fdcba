/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/reconciler: heartbeats, the leases that they renew, and what is worth nothing after a
 * silence. */
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "tests/unit/agent/agent_suites.h"
#include "tests/unit/agent/reconciler/reconciler_rig.h"

/* --- time ----------------------------------------------------------------------------------------------- */

START_TEST(heartbeats_come_at_their_interval)
{
    join();
    ck_assert_int_eq(reconciler_deadline(reconciler), 1000 + HEARTBEAT);
    reconciler_tick(reconciler, 1000 + HEARTBEAT - 1);
    expect("");
    reconciler_tick(reconciler, 1000 + HEARTBEAT);
    expect("beat");
    ck_assert_int_eq(reconciler_deadline(reconciler), 1000 + 2 * HEARTBEAT);
}
END_TEST

START_TEST(a_stranger_does_not_heartbeat)
{
    join();
    reconciler_stranger(reconciler);
    ck_assert_int_eq(reconciler_deadline(reconciler), INT64_MAX);
}
END_TEST

START_TEST(a_lease_counts_from_the_sending_of_the_heartbeat)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    reconciler_tick(reconciler, 6000);
    expect("beat");
    heartbeat_committed(1, 6000);
    expect("lease 5 until 66000 74000");
}
END_TEST

START_TEST(a_heartbeat_renews_only_what_it_has_listed)
{
    join();
    reconciler_tick(reconciler, 6000);
    expect("beat");
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    heartbeat_committed(1, 6000);
    expect("");
    reconciler_tick(reconciler, 11000);
    heartbeat_committed(2, 11000);
    expect("beat, lease 5 until 71000 79000");
}
END_TEST

START_TEST(what_a_heartbeat_is_told_to_be_fenced_is_killed_and_not_renewed)
{
    uint64_t fenced[] = {5, 99};
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    expect("claim 5 until 61000 69000, poll, report 5 running");
    reconciler_tick(reconciler, 6000);
    reconciler_heartbeat_done(reconciler, 1, &(struct heartbeat_reply){.fenced = fenced, .fenced_count = 2},
                              6000);
    expect("beat, stop 5 0 NODE_LOST");
    reconciler_heard(reconciler, 5, NEWS_EXITED);
    reconciler_heard(reconciler, 5, NEWS_CLEARED);
    expect("clear 5, forget 5");
}
END_TEST

START_TEST(heartbeats_do_not_wait_for_those_before_them)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    for (int64_t i = 1; i <= HEARTBEATS_OUT; i++) {
        ck_assert_int_eq(reconciler_deadline(reconciler), 1000 + HEARTBEAT * i);
        reconciler_tick(reconciler, 1000 + HEARTBEAT * i);
        expect("beat");
    }
    reconciler_tick(reconciler, 1000 + HEARTBEAT * (HEARTBEATS_OUT + 1));
    expect(""); /* enough are out */
    heartbeat_committed(2, 11000);
    expect("lease 5 until 71000 79000");
    heartbeat_committed(1, 6000); /* late, and it tells nothing new */
    reconciler_heartbeat_done(reconciler, 3, NULL, 16000);
    expect("");
    reconciler_tick(reconciler, 1000 + HEARTBEAT * (HEARTBEATS_OUT + 1));
    expect("beat");
}
END_TEST

static int64_t next_timeout(int64_t now_ms)
{
    struct reconciler_action action;
    reconciler_tick(reconciler, now_ms);
    ck_assert(reconciler_next(reconciler, &action) && action.act == ACT_HEARTBEAT);
    return action.timeout_ms;
}

START_TEST(a_heartbeat_is_waited_for_while_its_answer_is_of_use)
{
    join();
    ck_assert_int_eq(next_timeout(6000), REQUEST_TIMEOUT_MS);
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .lease_ms = 8000});
    expect("claim 5 until 7000 7800, poll");
    ck_assert_int_eq(next_timeout(7000), 4000);
}
END_TEST

START_TEST(what_its_shim_does_not_end_after_the_lease_the_agent_ends)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    order((struct order){.attempt_id = 6, .phase = ORDER_RUN});
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    for (int64_t i = 1; i <= HEARTBEATS_OUT; i++) {
        reconciler_tick(reconciler, 1000 + HEARTBEAT * i);
        reconciler_heartbeat_done(reconciler, i, NULL, 1000 + HEARTBEAT * i);
    }
    while (reconciler_next(reconciler, &(struct reconciler_action){0})) {
    }
    reconciler_tick(reconciler, 72900);
    expect("beat");
    ck_assert_int_eq(reconciler_deadline(reconciler), 73000);
    reconciler_tick(reconciler, 73000);
    reconciler_tick(reconciler, 73001);
    expect("kill 5");
    ck_assert_int_gt(reconciler_deadline(reconciler), 73001);
}
END_TEST

START_TEST(what_has_ended_in_time_is_not_killed)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    reconciler_heard(reconciler, 5, NEWS_RUNNING);
    reconciler_heard(reconciler, 5, NEWS_EXITED);
    expect("claim 5 until 61000 69000, poll, report 5 running, clear 5");
    reconciler_tick(reconciler, 80000);
    expect("beat");
}
END_TEST

START_TEST(after_a_silence_orders_are_asked_for_anew)
{
    join();
    reconciler_tick(reconciler, 6000);
    heartbeat_committed(1, 6000);
    expect("beat"); /* the poll that is out may still be answered */
    reconciler_tick(reconciler, 30000);
    heartbeat_committed(2, 30000);
    expect("beat, poll");
}
END_TEST

/* It came with the heartbeat that ended the silence: before the poll was asked anew. */
START_TEST(orders_of_before_a_silence_are_not_worked_in)
{
    static uint64_t live[] = {5};
    static struct order old = {.attempt_id = 5, .phase = ORDER_RUN, .lease_ms = LEASE};
    const struct poll_reply late = {
        .version = 9, .live = live, .live_count = 1, .orders = &old, .order_count = 1};
    join();
    reconciler_tick(reconciler, 90000);
    heartbeat_committed(1, 90000);
    reconciler_polled(reconciler, &late);
    ck_assert_uint_eq(reconciler_version(reconciler), 0);
    expect("beat, poll");
    order((struct order){.attempt_id = 6, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 6 until 150000 158000, poll");
}
END_TEST

START_TEST(orders_of_before_it_was_a_stranger_are_not_worked_in)
{
    join();
    reconciler_stranger(reconciler);
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    expect("register");
    registered(90000);
    order((struct order){.attempt_id = 6, .phase = ORDER_RUN});
    expect("poll, claim 6, poll");
}
END_TEST

START_TEST(an_adopted_attempt_has_its_lease_before_it_is_told_what_to_do)
{
    reconciler_adopt(reconciler, 5);
    reconciler_adopt(reconciler, 6);
    join();
    const struct order orders[] = {{.attempt_id = 5, .phase = ORDER_PREPARE, .lease_ms = LEASE},
                                   {.attempt_id = 6, .phase = ORDER_RUN, .lease_ms = LEASE}};
    poll_with(LIVE(5, 6), orders, 2);
    expect("lease 5 until 61000 69000, prepare 5, lease 6 until 61000 69000, run 6, poll");
}
END_TEST

START_TEST(a_heartbeat_without_an_answer_renews_nothing)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    reconciler_tick(reconciler, 6000);
    reconciler_heartbeat_done(reconciler, 1, NULL, 6000);
    expect("beat");
}
END_TEST

START_TEST(a_short_lease_makes_heartbeats_come_sooner)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN, .lease_ms = 8000});
    ck_assert_int_eq(reconciler_deadline(reconciler), 1000 + 1000);
}
END_TEST

START_TEST(an_attempt_without_a_lease_gets_none)
{
    join();
    order((struct order){.attempt_id = 5, .phase = ORDER_RUN});
    reconciler_tick(reconciler, 6000);
    heartbeat_committed(1, 6000);
    expect("claim 5, poll, beat");
}
END_TEST

Suite *reconciler_lease_suite(void)
{
    Suite *suite = suite_create("reconciler leases");
    TCase *tcase = tcase_create("reconciler leases");
    tcase_add_checked_fixture(tcase, reconciler_rig_open, reconciler_rig_close);
    tcase_add_test(tcase, heartbeats_come_at_their_interval);
    tcase_add_test(tcase, a_stranger_does_not_heartbeat);
    tcase_add_test(tcase, a_lease_counts_from_the_sending_of_the_heartbeat);
    tcase_add_test(tcase, a_heartbeat_renews_only_what_it_has_listed);
    tcase_add_test(tcase, what_a_heartbeat_is_told_to_be_fenced_is_killed_and_not_renewed);
    tcase_add_test(tcase, heartbeats_do_not_wait_for_those_before_them);
    tcase_add_test(tcase, a_heartbeat_is_waited_for_while_its_answer_is_of_use);
    tcase_add_test(tcase, what_its_shim_does_not_end_after_the_lease_the_agent_ends);
    tcase_add_test(tcase, what_has_ended_in_time_is_not_killed);
    tcase_add_test(tcase, after_a_silence_orders_are_asked_for_anew);
    tcase_add_test(tcase, orders_of_before_a_silence_are_not_worked_in);
    tcase_add_test(tcase, orders_of_before_it_was_a_stranger_are_not_worked_in);
    tcase_add_test(tcase, an_adopted_attempt_has_its_lease_before_it_is_told_what_to_do);
    tcase_add_test(tcase, a_heartbeat_without_an_answer_renews_nothing);
    tcase_add_test(tcase, a_short_lease_makes_heartbeats_come_sooner);
    tcase_add_test(tcase, an_attempt_without_a_lease_gets_none);
    suite_add_tcase(suite, tcase);
    return suite;
}
