/* SPDX-License-Identifier: Apache-2.0 */
/* Owns this agent's standing with the controller, and what the controller wishes of each attempt. It promises
 * that an epoch is claimed once, that one which the controller does not list is stopped, that a lease is
 * counted from the sending of the heartbeat that renewed it, and that what has no lease any more ends even if
 * its shim hangs. What becomes of an attempt is duty_attempt.c's; files, processes and requests are left to
 * the caller. */
#include "agent/duty.h"

#include <stdlib.h>

#include "agent/duty_parts.h"
#include "proto/base/text.h"
#include "proto/limits.h"

struct duty *duty_create(void)
{
    struct duty *duty = xzalloc(sizeof *duty);
    duty->standing = STANDING_STRANGER;
    duty->heartbeat_ms = HEARTBEAT_MS;
    return duty;
}

void duty_destroy(struct duty *duty)
{
    if (duty != NULL) {
        free(duty->items);
        free(duty->actions);
        free(duty);
    }
}

bool duty_next(struct duty *duty, struct duty_action *ret_action)
{
    if (duty->action_first == duty->action_count) {
        duty->action_first = duty->action_count = 0;
        return false;
    }
    *ret_action = duty->actions[duty->action_first++];
    duty->outdated = duty->outdated && ret_action->act != ACT_POLL;
    return true;
}

void duty_adopt(struct duty *duty, uint64_t epoch)
{
    duty_add(duty, epoch, DUTY_ADOPTED, WISH_UNKNOWN);
}

/* --- orders -------------------------------------------------------------------------------------- */

static void lease(const struct duty *duty, const struct known *known, struct duty_action *action)
{
    if (known->lease_ms > 0) {
        action->term_ms = duty->renewed_ms + known->lease_ms / 4 * 3;
        action->kill_ms = duty->renewed_ms + known->lease_ms / 20 * 17;
    }
}

static enum wish wish_of(enum order_phase phase)
{
    switch (phase) {
    case ORDER_PREPARE:
        return WISH_READY;
    case ORDER_START:
    case ORDER_RUN:
        return WISH_RUN;
    case ORDER_STOP:
    case ORDER_PHASE_COUNT:
        break;
    }
    return WISH_STOP;
}

/* An epoch that is not known here: PREPARE and RUN are taken up. START is for what was prepared, and that is
 * lost. */
static void take_order(struct duty *duty, const struct order *order)
{
    bool run = order->phase == ORDER_RUN;
    bool bury = order->phase == ORDER_STOP || order->phase == ORDER_START;
    struct known *known =
        duty_add(duty, order->epoch, run ? DUTY_STARTED : DUTY_CLAIMED, wish_of(order->phase));
    known->lease_ms = order->lease_ms;
    known->signal = order->signal;
    struct duty_action *action = duty_act(duty, bury ? ACT_BURY : ACT_CLAIM, order->epoch);
    action->order = order;
    action->cause = order->phase == ORDER_START ? CAUSE_SHIM_LOST : order->cause;
    lease(duty, known, action);
}

/* The controller repeats an order when it has forgotten what it had not yet written: it hears again how
 * things are. */
static void tell_again(struct duty *duty, struct known *known, enum order_phase phase)
{
    switch (known->phase) {
    case DUTY_RUNNING:
        if (phase == ORDER_RUN || phase == ORDER_START) {
            duty_report(duty, known, REPORT_RUNNING);
        }
        return;
    case DUTY_DECLINED:
        if (phase != ORDER_STOP) {
            duty_report(duty, known, REPORT_DECLINED);
        }
        return;
    case DUTY_EXITED:
    case DUTY_FLUSHED:
        duty_report(duty, known, REPORT_EXITED);
        return;
    case DUTY_ADOPTED:
    case DUTY_CLAIMED:
    case DUTY_PREPARED:
    case DUTY_STARTED:
    case DUTY_CLEARING:
        return;
    }
}

/* An attempt that was found at start may have lost its agent before its shim was told anything, its lease
 * included. */
static void tell_adopted(struct duty *duty, struct known *known, const struct order *order)
{
    if (order->phase != ORDER_PREPARE && order->phase != ORDER_RUN) {
        return;
    }
    if (known->lease_ms > 0) {
        lease(duty, known, duty_act(duty, ACT_LEASE, known->epoch));
    }
    bool run = order->phase == ORDER_RUN;
    known->phase = run ? DUTY_STARTED : DUTY_CLAIMED;
    duty_act(duty, run ? ACT_RUN : ACT_PREPARE, known->epoch)->order = order;
}

static void work_order(struct duty *duty, const struct order *order)
{
    struct known *known = duty_find(duty, order->epoch);
    if (known == NULL) {
        take_order(duty, order);
        return;
    }
    known->lease_ms = order->lease_ms > 0 ? order->lease_ms : known->lease_ms;
    known->signal = order->signal;
    if (known->phase == DUTY_ADOPTED) {
        tell_adopted(duty, known, order);
    }
    if (order->phase == ORDER_STOP && duty_is_alive(known)) {
        struct duty_action *action = duty_act(duty, ACT_STOP, order->epoch);
        action->grace_ms = order->grace_ms;
        action->cause = order->cause;
        action->signal = order->signal;
    }
    tell_again(duty, known, order->phase);
    if (wish_of(order->phase) >= known->wish) {
        known->wish = wish_of(order->phase);
        duty_settle(duty, known);
    }
}

static bool is_live(const struct poll_reply *reply, uint64_t epoch)
{
    for (size_t i = 0; i < reply->live_count; i++) {
        if (reply->live[i] == epoch) {
            return true;
        }
    }
    return false;
}

static void go_on(struct duty *duty)
{
    if (duty->standing == STANDING_MEMBER && !duty->polling && !(duty->ending && duty->count == 0)) {
        duty_act(duty, ACT_POLL, 0);
        duty->polling = true;
    }
}

/* What lives is stopped before anything new begins; what is over can wait until the new is on its way. */
static void drop_unlisted(struct duty *duty, const struct poll_reply *reply, bool only_alive)
{
    for (size_t i = 0; i < duty->count;) {
        struct known *known = &duty->items[i];
        bool spared = is_live(reply, known->epoch) || (only_alive && !duty_is_alive(known));
        i += spared || !duty_drop(duty, known);
    }
}

void duty_polled(struct duty *duty, const struct poll_reply *reply)
{
    if (!duty->polling || duty->outdated) {
        return;
    }
    duty->polling = false;
    duty->version = reply->version;
    duty->ending = reply->shutdown;
    drop_unlisted(duty, reply, true);
    for (size_t i = 0; i < reply->order_count; i++) {
        if (is_live(reply, reply->orders[i].epoch)) {
            work_order(duty, &reply->orders[i]);
        }
    }
    if (!duty->ending) {
        go_on(duty);
    }
    drop_unlisted(duty, reply, false);
    duty_end_if_done(duty);
    go_on(duty);
}

/* --- standing ------------------------------------------------------------------------------------ */

void duty_start(struct duty *duty)
{
    duty_act(duty, ACT_REGISTER, 0);
}

void duty_registered(struct duty *duty, const struct register_reply *reply, int64_t sent_ms)
{
    duty->standing = STANDING_MEMBER;
    duty->heartbeat_ms = reply->heartbeat_ms;
    duty->heartbeat_sent_ms = sent_ms;
    duty->renewed_ms = sent_ms;
    for (size_t i = 0; i < duty->count; i++) {
        duty_push_report(duty, &duty->items[i]);
    }
    go_on(duty);
}

void duty_stranger(struct duty *duty)
{
    if (duty->standing == STANDING_MEMBER) {
        duty->standing = STANDING_STRANGER;
        duty->polling = false;
        duty->version = 0;
        duty_act(duty, ACT_REGISTER, 0);
    }
}

/* An eighth of the shortest lease, but never more than what the controller asked for. */
static int64_t heartbeat_interval(const struct duty *duty)
{
    int64_t interval = duty->heartbeat_ms;
    for (size_t i = 0; i < duty->count; i++) {
        int64_t lease_ms = duty->items[i].lease_ms;
        interval = lease_ms > 0 && lease_ms / 8 < interval ? lease_ms / 8 : interval;
    }
    return interval;
}

/* The controller may have given away what it did not hear of for long: only what a heartbeat has listed, and
 * its answer has not named as fenced, may go on. What nobody wants keeps the end that it has. */
static void renew(struct duty *duty, int64_t number)
{
    for (size_t i = 0; i < duty->count; i++) {
        struct known *known = &duty->items[i];
        bool listed = known->first_heartbeat <= number && known->wish != WISH_NOTHING;
        if (known->lease_ms > 0 && listed && duty_is_alive(known)) {
            known->killed = false;
            lease(duty, known, duty_act(duty, ACT_LEASE, known->epoch));
        }
    }
}

static void drop_fenced(struct duty *duty, const struct heartbeat_reply *reply)
{
    for (size_t i = 0; i < reply->fenced_count; i++) {
        struct known *known = duty_find(duty, reply->fenced[i]);
        if (known != NULL) {
            duty_drop(duty, known);
        }
    }
    duty_end_if_done(duty);
}

/* After a silence the answer to the poll that is out may be lost, and would be waited for in vain; or it is
 * late, and has orders for what was given away since. */
static void poll_anew(struct duty *duty, int64_t silence_ms)
{
    if (duty->polling && silence_ms > HEARTBEATS_OUT * heartbeat_interval(duty)) {
        duty_act(duty, ACT_POLL, 0);
        duty->outdated = true;
    }
}

void duty_heartbeat_done(struct duty *duty, int64_t number, const struct heartbeat_reply *reply,
                         int64_t sent_ms)
{
    duty->beating--;
    if (reply == NULL || sent_ms < duty->renewed_ms) {
        return;
    }
    poll_anew(duty, sent_ms - duty->renewed_ms);
    duty->renewed_ms = sent_ms;
    drop_fenced(duty, reply);
    renew(duty, number);
}

/* When the agent itself ends what its shim has not: later than a shim does it, and early enough to be done
 * before the controller gives the job away. */
static int64_t guard_ms(const struct duty *duty, const struct known *known)
{
    bool guarded = known->lease_ms > 0 && !known->killed && duty_is_alive(known);
    return guarded ? duty->renewed_ms + known->lease_ms / 10 * 9 : INT64_MAX;
}

static int64_t next_heartbeat_ms(const struct duty *duty)
{
    bool due = duty->standing == STANDING_MEMBER && duty->beating < HEARTBEATS_OUT;
    return due ? duty->heartbeat_sent_ms + heartbeat_interval(duty) : INT64_MAX;
}

int64_t duty_deadline(const struct duty *duty)
{
    int64_t due_ms = next_heartbeat_ms(duty);
    for (size_t i = 0; i < duty->count; i++) {
        int64_t guarded_ms = guard_ms(duty, &duty->items[i]);
        due_ms = guarded_ms < due_ms ? guarded_ms : due_ms;
    }
    return due_ms;
}

static void heartbeat(struct duty *duty, int64_t now_ms)
{
    int64_t timeout_ms = HEARTBEATS_OUT * heartbeat_interval(duty);
    duty->beating++;
    duty->heartbeat_sent_ms = now_ms;
    struct duty_action *action = duty_act(duty, ACT_HEARTBEAT, 0);
    action->number = ++duty->heartbeats;
    action->timeout_ms = timeout_ms < REQUEST_TIMEOUT_MS ? timeout_ms : REQUEST_TIMEOUT_MS;
}

void duty_tick(struct duty *duty, int64_t now_ms)
{
    for (size_t i = 0; i < duty->count; i++) {
        struct known *known = &duty->items[i];
        if (now_ms >= guard_ms(duty, known)) {
            known->killed = true;
            duty_act(duty, ACT_KILL, known->epoch);
        }
    }
    if (now_ms >= next_heartbeat_ms(duty)) {
        heartbeat(duty, now_ms);
    }
}

void duty_hurry(struct duty *duty)
{
    duty->heartbeat_sent_ms = 0;
}

uint64_t duty_version(const struct duty *duty)
{
    return duty->version;
}

struct node_attempt *duty_list(const struct duty *duty, size_t *ret_count)
{
#define X(name, member) [DUTY_##name] = MEMBER_##member,
    static const enum member_state states[] = {DUTY_PHASES(X)};
#undef X
    struct node_attempt *list = xzalloc((duty->count + 1) * sizeof *list);
    for (size_t i = 0; i < duty->count; i++) {
        list[i] = (struct node_attempt){duty->items[i].epoch, states[duty->items[i].phase]};
    }
    *ret_count = duty->count;
    return list;
}

const char *duty_act_text(enum duty_act value)
{
#define X(name, text) [ACT_##name] = text,
    static const char *const texts[] = {DUTY_ACTS(X)};
#undef X
    return texts[value];
}
