/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of agent/duty: each is a story in inputs, and the actions that it must cause, in order. */
#include <stdlib.h>
#include <string.h>

#include "agent/duty.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"
#include "proto/limits.h"
#include "tests/unit/agent_suites.h"

#define BEAT  5000
#define LEASE 80000

static struct duty *duty;

/* One action as a word with what matters of it. */
static void append_action(struct text *out, const struct duty_action *action)
{
    text_printf(out, "%s%s", out->length > 0 ? ", " : "", duty_act_text(action->act));
    if (action->epoch != 0) {
        text_printf(out, " %llu", (unsigned long long)action->epoch);
    }
    if (action->act == ACT_REPORT) {
        text_printf(out, " %s", report_kind_text(action->report));
    }
    if (action->act == ACT_STOP) {
        text_printf(out, " %lld %s", (long long)action->grace_ms, cause_text(action->cause));
    }
    if (action->signal != EARLY_NONE) {
        text_printf(out, " %s", early_signal_text(action->signal));
    }
    if (action->act == ACT_BURY) {
        text_printf(out, " %s", cause_text(action->cause));
    }
    if (action->term_ms != 0) {
        text_printf(out, " until %lld %lld", (long long)action->term_ms, (long long)action->kill_ms);
    }
}

static void expect_at(const char *expected, int line)
{
    autotext struct text actual = {0};
    struct duty_action action;
    text_append(&actual, "");
    while (duty_next(duty, &action)) {
        append_action(&actual, &action);
    }
    ck_assert_msg(strcmp(actual.bytes, expected) == 0, "line %d: expected \"%s\", got \"%s\"", line, expected,
                  actual.bytes);
}
#define expect(text) expect_at(text, __LINE__)

/* A reply that lists the epochs that are given, ended by 0. */
static struct poll_reply listing(const uint64_t *live)
{
    static uint64_t copy[8];
    struct poll_reply reply = {.version = 7, .live = copy};
    while (live[reply.live_count] != 0) {
        copy[reply.live_count] = live[reply.live_count];
        reply.live_count++;
    }
    return reply;
}
#define LIVE(...) listing((const uint64_t[]){__VA_ARGS__ __VA_OPT__(, ) 0})

static void poll_with(struct poll_reply reply, const struct order *orders, size_t count)
{
    struct order copies[4];
    if (count > 0) {
        memcpy(copies, orders, count * sizeof *orders);
    }
    reply.orders = copies;
    reply.order_count = count;
    duty_polled(duty, &reply);
}

static void order(struct order one)
{
    poll_with(LIVE(one.epoch), &one, 1);
}

static void registered(int64_t sent_ms)
{
    duty_registered(duty, &(struct register_reply){.incarnation = 1, .beat_ms = BEAT, .park_ms = 25000},
                    sent_ms);
}

/* The controller takes a beat that left at this time. */
static void beaten(int64_t number, int64_t sent_ms)
{
    duty_beaten(duty, number, &(struct beat_reply){0}, sent_ms);
}

static void setup(void)
{
    duty = duty_create();
}

static void teardown(void)
{
    duty_destroy(duty);
}

/* A member of the cluster that waits for orders, since time 1000. */
static void join(void)
{
    duty_start(duty);
    registered(1000);
    expect("register, poll");
}

/* --- life of an attempt -------------------------------------------------------------------------- */

START_TEST(a_node_registers_then_polls)
{
    duty_start(duty);
    expect("register");
    registered(1000);
    expect("poll");
    ck_assert_uint_eq(duty_version(duty), 0);
    poll_with(LIVE(), NULL, 0);
    expect("poll");
    ck_assert_uint_eq(duty_version(duty), 7);
}
END_TEST

START_TEST(a_run_order_is_claimed_reported_and_forgotten)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    expect("claim 5, poll");
    duty_heard(duty, 5, NEWS_RUNNING);
    expect("report 5 running");
    duty_heard(duty, 5, NEWS_EXITED);
    expect("clear 5");
    duty_heard(duty, 5, NEWS_CLEARED);
    expect("");
    duty_answered(duty, 5, ANSWER_TAKEN);
    expect("report 5 exited");
    duty_answered(duty, 5, ANSWER_FLUSHED);
    expect("");
    poll_with(LIVE(), NULL, 0);
    expect("poll, forget 5");
}
END_TEST

START_TEST(a_gang_over_nodes_waits_for_its_start)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_PREPARE});
    expect("claim 5, poll");
    duty_heard(duty, 5, NEWS_PREPARED);
    expect("report 5 prepared");
    duty_answered(duty, 5, ANSWER_TAKEN);
    order((struct order){.epoch = 5, .phase = ORDER_START});
    expect("start 5, poll");
    duty_heard(duty, 5, NEWS_RUNNING);
    expect("report 5 running");
}
END_TEST

START_TEST(a_start_is_not_given_twice)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_PREPARE});
    duty_heard(duty, 5, NEWS_PREPARED);
    duty_answered(duty, 5, ANSWER_TAKEN);
    order((struct order){.epoch = 5, .phase = ORDER_START});
    order((struct order){.epoch = 5, .phase = ORDER_START});
    expect("claim 5, poll, report 5 prepared, start 5, poll, poll");
}
END_TEST

START_TEST(a_repeated_order_is_not_claimed_again)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    expect("claim 5, poll, poll");
}
END_TEST

START_TEST(a_controller_that_forgot_hears_again_what_is)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_PREPARE});
    duty_heard(duty, 5, NEWS_PREPARED);
    duty_answered(duty, 5, ANSWER_TAKEN);
    expect("claim 5, poll, report 5 prepared");
    order((struct order){.epoch = 5, .phase = ORDER_PREPARE});
    expect("report 5 prepared, poll");
}
END_TEST

START_TEST(a_late_prepare_does_not_take_back_a_start)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_PREPARE});
    order((struct order){.epoch = 5, .phase = ORDER_START});
    order((struct order){.epoch = 5, .phase = ORDER_PREPARE});
    expect("claim 5, poll, poll, poll");
    duty_heard(duty, 5, NEWS_PREPARED);
    expect("start 5");
}
END_TEST

START_TEST(a_decline_is_reported_and_ends_it)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    duty_heard(duty, 5, NEWS_DECLINED);
    expect("claim 5, poll, report 5 declined");
    duty_answered(duty, 5, ANSWER_TAKEN);
    poll_with(LIVE(), NULL, 0);
    expect("poll, forget 5");
}
END_TEST

START_TEST(reports_of_one_epoch_leave_one_at_a_time)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    duty_heard(duty, 5, NEWS_RUNNING);
    duty_heard(duty, 5, NEWS_FAILED);
    expect("claim 5, poll, report 5 running");
    duty_answered(duty, 5, ANSWER_TAKEN);
    expect("report 5 failed");
    duty_heard(duty, 5, NEWS_EXITED);
    duty_heard(duty, 5, NEWS_CLEARED);
    duty_answered(duty, 5, ANSWER_TAKEN);
    expect("clear 5, report 5 exited");
}
END_TEST

START_TEST(an_exit_is_reported_again_when_its_logs_have_followed)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    duty_heard(duty, 5, NEWS_EXITED);
    duty_heard(duty, 5, NEWS_CLEARED);
    duty_answered(duty, 5, ANSWER_TAKEN);
    expect("claim 5, poll, clear 5, report 5 exited");
    duty_heard(duty, 5, NEWS_DRAINED);
    expect("report 5 exited");
    duty_answered(duty, 5, ANSWER_FLUSHED);
    size_t count;
    autofree struct node_attempt *list = duty_list(duty, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(list[0].state, MEMBER_FLUSHED);
}
END_TEST

/* --- stopping ------------------------------------------------------------------------------------ */

START_TEST(a_stop_reaches_the_shim_each_time)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    order((struct order){.epoch = 5, .phase = ORDER_STOP, .grace_ms = 30000, .cause = CAUSE_CANCELED});
    order((struct order){.epoch = 5, .phase = ORDER_STOP, .grace_ms = 0, .cause = CAUSE_CANCELED});
    expect("claim 5, poll, stop 5 30000 CANCELED, poll, stop 5 0 CANCELED, poll");
}
END_TEST

START_TEST(a_stop_hands_on_the_signal_that_it_begins_with)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    order((struct order){
        .epoch = 5, .phase = ORDER_STOP, .grace_ms = 30000, .cause = CAUSE_PREEMPTED, .signal = EARLY_USR1});
    expect("claim 5, poll, stop 5 30000 PREEMPTED USR1, poll");
}
END_TEST

START_TEST(ranks_that_run_are_warned_once)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    duty_heard(duty, 5, NEWS_RUNNING);
    duty_answered(duty, 5, ANSWER_TAKEN);
    expect("claim 5, poll, report 5 running");
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .signal = EARLY_USR1});
    duty_answered(duty, 5, ANSWER_TAKEN);
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .signal = EARLY_USR1});
    expect("report 5 running, warn 5 USR1, poll, report 5 running, poll");
}
END_TEST

START_TEST(a_warning_waits_until_the_ranks_run)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .signal = EARLY_USR1});
    expect("claim 5, poll");
    duty_heard(duty, 5, NEWS_RUNNING);
    expect("report 5 running, warn 5 USR1");
    order((struct order){.epoch = 6, .phase = ORDER_PREPARE});
    duty_heard(duty, 6, NEWS_PREPARED);
    expect("stop 5 0 NODE_LOST, claim 6, poll, report 6 prepared");
    order((struct order){.epoch = 6, .phase = ORDER_START, .signal = EARLY_TERM});
    expect("start 6, poll");
    duty_heard(duty, 6, NEWS_RUNNING);
    expect("warn 6 TERM");
}
END_TEST

START_TEST(a_new_agent_tells_an_adopted_shim_which_knows_better)
{
    duty_adopt(duty, 5);
    join();
    duty_heard(duty, 5, NEWS_RUNNING);
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .signal = EARLY_USR1});
    expect("report 5 running, warn 5 USR1, poll");
}
END_TEST

START_TEST(a_stop_before_the_start_means_no_start)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_PREPARE});
    order((struct order){.epoch = 5, .phase = ORDER_STOP, .cause = CAUSE_CANCELED});
    duty_heard(duty, 5, NEWS_PREPARED);
    order((struct order){.epoch = 5, .phase = ORDER_START});
    expect("claim 5, poll, stop 5 0 CANCELED, poll, poll");
}
END_TEST

START_TEST(a_stop_of_an_unknown_epoch_buries_it)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_STOP, .cause = CAUSE_CANCELED});
    expect("bury 5 CANCELED, poll");
    duty_heard(duty, 5, NEWS_EXITED);
    duty_heard(duty, 5, NEWS_CLEARED);
    expect("clear 5, report 5 exited");
}
END_TEST

START_TEST(a_start_of_an_unknown_epoch_starts_nothing)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_START});
    expect("bury 5 SHIM_LOST, poll");
}
END_TEST

START_TEST(a_stop_of_a_declined_attempt_is_answered_with_its_exit)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_PREPARE});
    duty_heard(duty, 5, NEWS_DECLINED);
    duty_answered(duty, 5, ANSWER_TAKEN);
    expect("claim 5, poll, report 5 declined");
    order((struct order){.epoch = 5, .phase = ORDER_STOP, .cause = CAUSE_CANCELED});
    expect("report 5 exited, poll");
}
END_TEST

START_TEST(an_epoch_that_is_not_listed_is_killed_and_forgotten)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    duty_heard(duty, 5, NEWS_RUNNING);
    duty_answered(duty, 5, ANSWER_TAKEN);
    expect("claim 5, poll, report 5 running");
    poll_with(LIVE(9), NULL, 0);
    expect("stop 5 0 NODE_LOST, poll");
    poll_with(LIVE(9), NULL, 0);
    expect("poll");
    duty_heard(duty, 5, NEWS_EXITED);
    expect("clear 5");
    duty_heard(duty, 5, NEWS_CLEARED);
    expect("forget 5");
}
END_TEST

START_TEST(a_fenced_report_kills_the_attempt)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    duty_heard(duty, 5, NEWS_RUNNING);
    expect("claim 5, poll, report 5 running");
    duty_answered(duty, 5, ANSWER_FENCED);
    expect("stop 5 0 NODE_LOST");
    duty_heard(duty, 5, NEWS_FAILED);
    expect("");
}
END_TEST

START_TEST(an_order_that_is_not_listed_is_not_taken)
{
    join();
    const struct order stale = {.epoch = 5, .phase = ORDER_RUN};
    poll_with(LIVE(9), &stale, 1);
    expect("poll");
}
END_TEST

/* --- standing ------------------------------------------------------------------------------------ */

START_TEST(a_stranger_registers_again_and_its_reports_wait)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    duty_heard(duty, 5, NEWS_RUNNING);
    expect("claim 5, poll, report 5 running");
    duty_answered(duty, 5, ANSWER_STRANGER);
    duty_heard(duty, 5, NEWS_FAILED);
    expect("register");
    ck_assert_uint_eq(duty_version(duty), 0);
    registered(2000);
    expect("report 5 running, poll");
}
END_TEST

START_TEST(being_a_stranger_twice_registers_once)
{
    join();
    duty_stranger(duty);
    duty_stranger(duty);
    expect("register");
}
END_TEST

START_TEST(what_was_adopted_is_listed_and_goes_on)
{
    duty_adopt(duty, 5);
    duty_heard(duty, 5, NEWS_PREPARED);
    duty_heard(duty, 5, NEWS_RUNNING);
    duty_start(duty);
    expect("register");
    size_t count;
    autofree struct node_attempt *list = duty_list(duty, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(list[0].epoch, 5);
    ck_assert_int_eq(list[0].state, MEMBER_RUNNING);
    registered(1000);
    expect("report 5 running, poll");
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    expect("poll");
}
END_TEST

START_TEST(a_silent_adopted_shim_is_told_again)
{
    duty_adopt(duty, 5);
    duty_adopt(duty, 6);
    join();
    const struct order orders[] = {{.epoch = 5, .phase = ORDER_RUN}, {.epoch = 6, .phase = ORDER_PREPARE}};
    poll_with(LIVE(5, 6), orders, 2);
    expect("run 5, prepare 6, poll");
}
END_TEST

START_TEST(an_adopted_exit_is_reported_unless_nobody_wants_it)
{
    duty_adopt(duty, 5);
    duty_adopt(duty, 6);
    duty_heard(duty, 5, NEWS_EXITED);
    duty_heard(duty, 5, NEWS_CLEARED);
    duty_heard(duty, 6, NEWS_EXITED);
    duty_heard(duty, 6, NEWS_CLEARED);
    duty_start(duty);
    registered(1000);
    expect("clear 5, clear 6, register, report 5 exited, report 6 exited, poll");
    poll_with(LIVE(6), NULL, 0);
    expect("poll, forget 5");
}
END_TEST

START_TEST(an_agent_that_is_told_to_end_does_so_when_nothing_is_left)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN});
    struct poll_reply reply = LIVE(5);
    reply.shutdown = true;
    poll_with(reply, NULL, 0);
    expect("claim 5, poll, poll");
    duty_heard(duty, 5, NEWS_EXITED);
    duty_heard(duty, 5, NEWS_CLEARED);
    duty_answered(duty, 5, ANSWER_FLUSHED);
    expect("clear 5, report 5 exited");
    reply = LIVE();
    reply.shutdown = true;
    poll_with(reply, NULL, 0);
    expect("forget 5, end");
}
END_TEST

/* --- time ---------------------------------------------------------------------------------------- */

START_TEST(beats_come_at_their_interval)
{
    join();
    ck_assert_int_eq(duty_deadline(duty), 1000 + BEAT);
    duty_tick(duty, 1000 + BEAT - 1);
    expect("");
    duty_tick(duty, 1000 + BEAT);
    expect("beat");
    ck_assert_int_eq(duty_deadline(duty), 1000 + 2 * BEAT);
}
END_TEST

START_TEST(a_stranger_does_not_beat)
{
    join();
    duty_stranger(duty);
    ck_assert_int_eq(duty_deadline(duty), INT64_MAX);
}
END_TEST

START_TEST(a_lease_counts_from_the_sending_of_the_beat)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    duty_tick(duty, 6000);
    expect("beat");
    beaten(1, 6000);
    expect("lease 5 until 66000 74000");
}
END_TEST

START_TEST(a_beat_renews_only_what_it_has_listed)
{
    join();
    duty_tick(duty, 6000);
    expect("beat");
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    beaten(1, 6000);
    expect("");
    duty_tick(duty, 11000);
    beaten(2, 11000);
    expect("beat, lease 5 until 71000 79000");
}
END_TEST

START_TEST(what_a_beat_is_told_to_be_fenced_is_killed_and_not_renewed)
{
    uint64_t fenced[] = {5, 99};
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    duty_heard(duty, 5, NEWS_RUNNING);
    expect("claim 5 until 61000 69000, poll, report 5 running");
    duty_tick(duty, 6000);
    duty_beaten(duty, 1, &(struct beat_reply){.fenced = fenced, .fenced_count = 2}, 6000);
    expect("beat, stop 5 0 NODE_LOST");
    duty_heard(duty, 5, NEWS_EXITED);
    duty_heard(duty, 5, NEWS_CLEARED);
    expect("clear 5, forget 5");
}
END_TEST

START_TEST(beats_do_not_wait_for_those_before_them)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    for (int64_t i = 1; i <= BEATS_OUT; i++) {
        ck_assert_int_eq(duty_deadline(duty), 1000 + BEAT * i);
        duty_tick(duty, 1000 + BEAT * i);
        expect("beat");
    }
    duty_tick(duty, 1000 + BEAT * (BEATS_OUT + 1));
    expect(""); /* enough are out */
    beaten(2, 11000);
    expect("lease 5 until 71000 79000");
    beaten(1, 6000); /* late, and it tells nothing new */
    duty_beaten(duty, 3, NULL, 16000);
    expect("");
    duty_tick(duty, 1000 + BEAT * (BEATS_OUT + 1));
    expect("beat");
}
END_TEST

static int64_t next_timeout(int64_t now_ms)
{
    struct duty_action action;
    duty_tick(duty, now_ms);
    ck_assert(duty_next(duty, &action) && action.act == ACT_BEAT);
    return action.timeout_ms;
}

START_TEST(a_beat_is_waited_for_while_its_answer_is_of_use)
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
    for (int64_t i = 1; i <= BEATS_OUT; i++) {
        duty_tick(duty, 1000 + BEAT * i);
        duty_beaten(duty, i, NULL, 1000 + BEAT * i);
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
    beaten(1, 6000);
    expect("beat"); /* the poll that is out may still be answered */
    duty_tick(duty, 30000);
    beaten(2, 30000);
    expect("beat, poll");
}
END_TEST

/* It came with the beat that ended the silence: before the poll was asked anew. */
START_TEST(orders_of_before_a_silence_are_not_worked_in)
{
    static uint64_t live[] = {5};
    static struct order old = {.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE};
    const struct poll_reply late = {
        .version = 9, .live = live, .live_count = 1, .orders = &old, .order_count = 1};
    join();
    duty_tick(duty, 90000);
    beaten(1, 90000);
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

START_TEST(a_beat_without_an_answer_renews_nothing)
{
    join();
    order((struct order){.epoch = 5, .phase = ORDER_RUN, .lease_ms = LEASE});
    expect("claim 5 until 61000 69000, poll");
    duty_tick(duty, 6000);
    duty_beaten(duty, 1, NULL, 6000);
    expect("beat");
}
END_TEST

START_TEST(a_short_lease_makes_beats_come_sooner)
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
    beaten(1, 6000);
    expect("claim 5, poll, beat");
}
END_TEST

Suite *duty_suite(void)
{
    Suite *suite = suite_create("duty");
    TCase *tcase = tcase_create("duty");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_node_registers_then_polls);
    tcase_add_test(tcase, a_run_order_is_claimed_reported_and_forgotten);
    tcase_add_test(tcase, a_gang_over_nodes_waits_for_its_start);
    tcase_add_test(tcase, a_start_is_not_given_twice);
    tcase_add_test(tcase, a_repeated_order_is_not_claimed_again);
    tcase_add_test(tcase, a_controller_that_forgot_hears_again_what_is);
    tcase_add_test(tcase, a_late_prepare_does_not_take_back_a_start);
    tcase_add_test(tcase, a_decline_is_reported_and_ends_it);
    tcase_add_test(tcase, reports_of_one_epoch_leave_one_at_a_time);
    tcase_add_test(tcase, an_exit_is_reported_again_when_its_logs_have_followed);
    tcase_add_test(tcase, a_stop_reaches_the_shim_each_time);
    tcase_add_test(tcase, a_stop_hands_on_the_signal_that_it_begins_with);
    tcase_add_test(tcase, ranks_that_run_are_warned_once);
    tcase_add_test(tcase, a_warning_waits_until_the_ranks_run);
    tcase_add_test(tcase, a_new_agent_tells_an_adopted_shim_which_knows_better);
    tcase_add_test(tcase, a_stop_before_the_start_means_no_start);
    tcase_add_test(tcase, a_stop_of_an_unknown_epoch_buries_it);
    tcase_add_test(tcase, a_start_of_an_unknown_epoch_starts_nothing);
    tcase_add_test(tcase, a_stop_of_a_declined_attempt_is_answered_with_its_exit);
    tcase_add_test(tcase, an_epoch_that_is_not_listed_is_killed_and_forgotten);
    tcase_add_test(tcase, a_fenced_report_kills_the_attempt);
    tcase_add_test(tcase, an_order_that_is_not_listed_is_not_taken);
    tcase_add_test(tcase, a_stranger_registers_again_and_its_reports_wait);
    tcase_add_test(tcase, being_a_stranger_twice_registers_once);
    tcase_add_test(tcase, what_was_adopted_is_listed_and_goes_on);
    tcase_add_test(tcase, a_silent_adopted_shim_is_told_again);
    tcase_add_test(tcase, an_adopted_exit_is_reported_unless_nobody_wants_it);
    tcase_add_test(tcase, an_agent_that_is_told_to_end_does_so_when_nothing_is_left);
    tcase_add_test(tcase, beats_come_at_their_interval);
    tcase_add_test(tcase, a_stranger_does_not_beat);
    tcase_add_test(tcase, a_lease_counts_from_the_sending_of_the_beat);
    tcase_add_test(tcase, orders_of_before_a_silence_are_not_worked_in);
    tcase_add_test(tcase, orders_of_before_it_was_a_stranger_are_not_worked_in);
    tcase_add_test(tcase, an_adopted_attempt_has_its_lease_before_it_is_told_what_to_do);
    tcase_add_test(tcase, a_beat_without_an_answer_renews_nothing);
    tcase_add_test(tcase, a_short_lease_makes_beats_come_sooner);
    tcase_add_test(tcase, a_beat_renews_only_what_it_has_listed);
    tcase_add_test(tcase, what_a_beat_is_told_to_be_fenced_is_killed_and_not_renewed);
    tcase_add_test(tcase, beats_do_not_wait_for_those_before_them);
    tcase_add_test(tcase, a_beat_is_waited_for_while_its_answer_is_of_use);
    tcase_add_test(tcase, what_its_shim_does_not_end_after_the_lease_the_agent_ends);
    tcase_add_test(tcase, what_has_ended_in_time_is_not_killed);
    tcase_add_test(tcase, after_a_silence_orders_are_asked_for_anew);
    tcase_add_test(tcase, an_attempt_without_a_lease_gets_none);
    suite_add_tcase(suite, tcase);
    return suite;
}
