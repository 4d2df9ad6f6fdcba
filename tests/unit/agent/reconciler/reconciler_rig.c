/* SPDX-License-Identifier: Apache-2.0 */
/* The reconciler under test, and the text of its actions. */
#include "tests/unit/agent/reconciler/reconciler_rig.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

struct reconciler *reconciler;

/* One action as a word with what matters of it. */
static void append_action(struct text *out, const struct reconciler_action *action)
{
    text_printf(out, "%s%s", out->length > 0 ? ", " : "", reconciler_act_text(action->act));
    if (action->attempt_id != 0) {
        text_printf(out, " %llu", (unsigned long long)action->attempt_id);
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
    if (action->act == ACT_TOMBSTONE) {
        text_printf(out, " %s", cause_text(action->cause));
    }
    if (action->term_ms != 0) {
        text_printf(out, " until %lld %lld", (long long)action->term_ms, (long long)action->kill_ms);
    }
}

void expect_at(const char *expected, int line)
{
    autotext struct text actual = {0};
    struct reconciler_action action;
    text_append(&actual, "");
    while (reconciler_next(reconciler, &action)) {
        append_action(&actual, &action);
    }
    ck_assert_msg(strcmp(actual.bytes, expected) == 0, "line %d: expected \"%s\", got \"%s\"", line, expected,
                  actual.bytes);
}

struct poll_reply listing(const uint64_t *live)
{
    static uint64_t copy[8];
    struct poll_reply reply = {.version = 7, .live = copy};
    while (live[reply.live_count] != 0) {
        copy[reply.live_count] = live[reply.live_count];
        reply.live_count++;
    }
    return reply;
}

void poll_with(struct poll_reply reply, const struct order *orders, size_t count)
{
    struct order copies[4];
    if (count > 0) {
        memcpy(copies, orders, count * sizeof *orders);
    }
    reply.orders = copies;
    reply.order_count = count;
    reconciler_polled(reconciler, &reply);
}

void order(struct order one)
{
    poll_with(LIVE(one.attempt_id), &one, 1);
}

void registered(int64_t sent_ms)
{
    reconciler_registered(
        reconciler, &(struct register_reply){.incarnation = 1, .heartbeat_ms = HEARTBEAT, .park_ms = 25000},
        sent_ms);
}

void heartbeat_committed(int64_t number, int64_t sent_ms)
{
    reconciler_heartbeat_done(reconciler, number, &(struct heartbeat_reply){0}, sent_ms);
}

void reconciler_rig_open(void)
{
    reconciler = reconciler_create();
}

void reconciler_rig_close(void)
{
    reconciler_destroy(reconciler);
}

void join(void)
{
    reconciler_start(reconciler);
    registered(1000);
    expect("register, poll");
}
