/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/duty: heartbeats, the leases that they renew, and what is worth nothing after a silence. */
#include "proto/limits.h"
#include "tests/unit/agent_suites.h"
#include "tests/unit/duty_rig.h"

/* --- time ---------------------------------------------------------------------------------------- */

START_TEST(heartbeats_come_at_their_interval)
{
    join();
    ck_assert_int_eq(duty_deadline(duty), 1000 + HEARTBEAT);
    duty_tick(duty, 1000 + HEARTBEAT - 1);
    expect("");
    duty_tick(duty, 1000 + HEARTBEAT);
    expect("beat");
    ck_assert_int_eq(duty_deadline(duty), 1000 + 2 * HEARTBEAT);
}
END_TEST

START_TEST(a_stranger_does_not_heartbeat)
{
    join();
    duty_stranger(duty);
    ck_assert_int_eq(duty_deadline(duty), INT64_MAX);
}
END_TEST

START_TEST(a_lease_counts_from_the_sending_of_the_heartbeat)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    duty_tick(duty, 6000);
    expect("beat");
    heartbeat_committed(1, 6000);
    expect("lease 5 until 66000 74000");
}
END_TEST

START_TEST(a_heartbeat_renews_only_what_it_has_listed)
{
    join();
    duty_tick(duty, 6000);
    expect("beat");
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    heartbeat_committed(1, 6000);
    expect("");
    duty_tick(duty, 11000);
    heartbeat_committed(2, 11000);
    expect("beat, lease 5 until 71000 79000");
}
END_TEST

START_TEST(what_a_heartbeat_is_told_to_be_fenced_is_killed_and_not_renewed)
{
    uint64_t fenced[] = {5, 99};
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    duty_heard(duty, 5, NEWS_RUNNING);
    expect("claim 5 until 61000 69000, poll, report 5 running");
    duty_tick(duty, 6000);
    duty_heartbeat_done(duty, 1, &(struct heartbeat_reply){.fenced = fenced, .fenced_count = 2}, 6000);
    expect("beat, stop 5 0 NODE_LOST");
    duty_heard(duty, 5, NEWS_EXITED);
    duty_heard(duty, 5, NEWS_CLEARED);
    expect("clear 5, forget 5");
}
END_TEST

START_TEST(heartbeats_do_not_wait_for_those_before_them)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    for (int64_t i = 1; i <= HEARTBEATS_OUT; i++) {
        ck_assert_int_eq(duty_deadline(duty), 1000 + HEARTBEAT * i);
        duty_tick(duty, 1000 + HEARTBEAT * i);
        expect("beat");
    }
    duty_tick(duty, 1000 + HEARTBEAT * (HEARTBEATS_OUT + 1));
    expect(""); /* enough are out */
    heartbeat_committed(2, 11000);
    expect("lease 5 until 71000 79000");
    heartbeat_committed(1, 6000); /* late, and it tells nothing new */
    duty_heartbeat_done(duty, 3, NULL, 16000);
    expect("");
    duty_tick(duty, 1000 + HEARTBEAT * (HEARTBEATS_OUT + 1));
    expect("beat");
}
END_TEST

static int64_t next_timeout(int64_t now_ms)
{
    struct duty_action action;
    duty_tick(duty, now_ms);
    ck_assert(duty_next(duty, &action) && action.act == ACT_HEARTBEAT);
    return action.timeout_ms;
}

START_TEST(a_heartbeat_is_waited_for_while_its_answer_is_of_use)
{
    join();
    ck_assert_int_eq(next_timeout(6000), REQUEST_TIMEOUT_MS);
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = 8000});
    expect("claim 5 until 7000 7800, poll");
    ck_assert_int_eq(next_timeout(7000), 4000);
}
END_TEST

START_TEST(what_its_shim_does_not_end_after_the_lease_the_agent_ends)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    order((struct order){.epoch = 6, .phase = ORDER_RUN});
    duty_heard(duty, 5, NEWS_RUNNING);
    for (int64_t i = 1; i <= HEARTBEATS_OUT; i++) {
        duty_tick(duty, 1000 + HEARTBEAT * i);
        duty_heartbeat_done(duty, i, NULL, 1000 + HEARTBEAT * i);
    }
    while (duty_next(duty, &(struct duty_action){0})) {
    }
    duty_tick(duty, 72900);
    expect("beat");
    ck_assert_int_eq(duty_deadline(duty), 73000);
    duty_tick(duty, 73000);
    duty_tick(duty, 73001);
    expect("kill 5");
    ck_assert_int_gt(duty_deadline(duty), 73001);
}
END_TEST

START_TEST(what_has_ended_in_time_is_not_killed)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    duty_heard(duty, 5, NEWS_RUNNING);
    duty_heard(duty, 5, NEWS_EXITED);
    expect("claim 5 until 61000 69000, poll, report 5 running, clear 5");
    duty_tick(duty, 80000);
    expect("beat");
}
END_TEST

START_TEST(after_a_silence_orders_are_asked_for_anew)
{
    join();
    duty_tick(duty, 6000);
    heartbeat_committed(1, 6000);
    expect("beat"); /* the poll that is out may still be answered */
    duty_tick(duty, 30000);
    heartbeat_committed(2, 30000);
    expect("beat, poll");
}
END_TEST

/* It came with the heartbeat that ended the silence: before the poll was asked anew. */
START_TEST(orders_of_before_a_silence_are_not_worked_in)
{
    static uint64_t live[] = {5};
    static struct order old = {.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE};
    const struct poll_reply late = {
        .version = 9, .live = live, .live_count = 1, .orders = &old, .order_count = 1};
    join();
    duty_tick(duty, 90000);
    heartbeat_committed(1, 90000);
    duty_polled(duty, &late);
    ck_assert_uint_eq(duty_version(duty), 0);
    expect("beat, poll");
    order((struct order){.epoch = 6, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 6 until 150000 158000, poll");
}
END_TEST

START_TEST(orders_of_before_it_was_a_stranger_are_not_worked_in)
{
    join();
    duty_stranger(duty);
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    expect("register");
    registered(90000);
    order((struct order){.epoch = 6, .phase = ORDER_RUN});
    expect("poll, claim 6, poll");
}
END_TEST

START_TEST(an_adopted_attempt_has_its_lease_before_it_is_told_what_to_do)
{
    duty_adopt(duty, 5);
    duty_adopt(duty, 6);
    join();
    const struct order orders[] = {{.epoch = 5, .phase = ORDER_PREPARE, .lease_ms = LEASE},
                                   {.epoch = 6, .phase = ORDER_RUN, .lease_ms = LEASE}};
    poll_with(LIVE(5, 6), orders, 2);
    expect("lease 5 until 61000 69000, prepare 5, lease 6 until 61000 69000, run 6, poll");
}
END_TEST

START_TEST(a_heartbeat_without_an_answer_renews_nothing)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    duty_tick(duty, 6000);
    duty_heartbeat_done(duty, 1, NULL, 6000);
    expect("beat");
}
END_TEST

START_TEST(a_short_lease_makes_heartbeats_come_sooner)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = 8000});
    ck_assert_int_eq(duty_deadline(duty), 1000 + 1000);
}
END_TEST

START_TEST(an_attempt_without_a_lease_gets_none)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    duty_tick(duty, 6000);
    heartbeat_committed(1, 6000);
    expect("claim 5, poll, beat");
}
END_TEST

Suite *duty_lease_suite(void)
{
    Suite *suite = suite_create("duty leases");
    TCase *tcase = tcase_create("duty leases");
    tcase_add_checked_fixture(tcase, duty_rig_open, duty_rig_close);
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
