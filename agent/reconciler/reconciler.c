/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's standing with the controller, and the state that the controller desires for each attempt. An
 * attempt id is claimed once. An attempt that the controller does not list is stopped. A lease counts from
 * the sending of the heartbeat that renewed it. An attempt whose lease is over ends even if its shim hangs.
 * reconciler_attempt.c keeps the phases of attempts; the caller does all I/O. */
#include "agent/reconciler/reconciler.h"

#include <stdlib.h>

#include "agent/reconciler/reconciler_parts.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

struct reconciler *reconciler_create(void)
{
    struct reconciler *reconciler = xzalloc(sizeof *reconciler);
    reconciler->standing = STANDING_STRANGER;
    reconciler->heartbeat_ms = HEARTBEAT_MS;
    return reconciler;
}

void reconciler_destroy(struct reconciler *reconciler)
{
    if (reconciler != NULL) {
        free(reconciler->items);
        free(reconciler->actions);
        free(reconciler);
    }
}

bool reconciler_next(struct reconciler *reconciler, struct reconciler_action *ret_action)
{
    if (reconciler->action_first == reconciler->action_count) {
        reconciler->action_first = reconciler->action_count = 0;
        return false;
    }
    *ret_action = reconciler->actions[reconciler->action_first++];
    reconciler->outdated = reconciler->outdated && ret_action->act != ACT_POLL;
    return true;
}

void reconciler_adopt(struct reconciler *reconciler, uint64_t attempt_id)
{
    reconciler_add(reconciler, attempt_id, RECONCILER_ADOPTED, DESIRED_UNKNOWN);
}

/* --- orders --------------------------------------------------------------------------------------------- */

static void lease(const struct reconciler *reconciler, const struct entry *entry,
                  struct reconciler_action *action)
{
    if (entry->lease_ms > 0) {
        action->term_ms = reconciler->renewed_ms + entry->lease_ms / 4 * 3;
        action->kill_ms = reconciler->renewed_ms + entry->lease_ms / 20 * 17;
    }
}

static enum desired desired_of(enum order_phase phase)
{
    switch (phase) {
    case ORDER_PREPARE:
        return DESIRED_READY;
    case ORDER_START:
    case ORDER_RUN:
        return DESIRED_RUN;
    case ORDER_STOP:
    case ORDER_PHASE_COUNT:
        break;
    }
    return DESIRED_STOP;
}

/* Handles an order for an unknown attempt id: takes up PREPARE and RUN. START is for a prepared attempt,
 * which is lost. */
static void take_order(struct reconciler *reconciler, const struct order *order)
{
    bool run = order->phase == ORDER_RUN;
    bool tombstone = order->phase == ORDER_STOP || order->phase == ORDER_START;
    struct entry *entry =
        reconciler_add(reconciler, order->attempt_id, run ? RECONCILER_STARTED : RECONCILER_CLAIMED,
                       desired_of(order->phase));
    entry->lease_ms = order->lease_ms;
    entry->signal = order->signal;
    entry->kept = order->kept;
    struct reconciler_action *action =
        reconciler_act(reconciler, tombstone ? ACT_TOMBSTONE : ACT_CLAIM, order->attempt_id);
    action->order = order;
    action->cause = order->phase == ORDER_START ? CAUSE_SHIM_LOST : order->cause;
    lease(reconciler, entry, action);
}

/* The controller repeats an order if it has forgotten the answer before it was written: reports the state
 * again. */
static void tell_again(struct reconciler *reconciler, struct entry *entry, enum order_phase phase)
{
    switch (entry->phase) {
    case RECONCILER_RUNNING:
        if (phase == ORDER_RUN || phase == ORDER_START) {
            reconciler_report(reconciler, entry, REPORT_RUNNING);
        }
        return;
    case RECONCILER_DECLINED:
        if (phase != ORDER_STOP) {
            reconciler_report(reconciler, entry, REPORT_DECLINED);
        }
        return;
    case RECONCILER_EXITED:
    case RECONCILER_FLUSHED:
        reconciler_report(reconciler, entry, REPORT_EXITED);
        return;
    case RECONCILER_ADOPTED:
    case RECONCILER_CLAIMED:
    case RECONCILER_PREPARED:
    case RECONCILER_STARTED:
    case RECONCILER_CLEARING:
        return;
    }
}

/* The agent of an adopted attempt may have ended before it told the shim anything, the lease included. */
static void tell_adopted(struct reconciler *reconciler, struct entry *entry, const struct order *order)
{
    if (order->phase != ORDER_PREPARE && order->phase != ORDER_RUN) {
        return;
    }
    if (entry->lease_ms > 0) {
        lease(reconciler, entry, reconciler_act(reconciler, ACT_LEASE, entry->attempt_id));
    }
    bool run = order->phase == ORDER_RUN;
    entry->phase = run ? RECONCILER_STARTED : RECONCILER_CLAIMED;
    reconciler_act(reconciler, run ? ACT_RUN : ACT_PREPARE, entry->attempt_id)->order = order;
}

static void work_order(struct reconciler *reconciler, const struct order *order)
{
    struct entry *entry = reconciler_find(reconciler, order->attempt_id);
    if (entry == NULL) {
        take_order(reconciler, order);
        return;
    }
    entry->lease_ms = order->lease_ms > 0 ? order->lease_ms : entry->lease_ms;
    entry->signal = order->signal;
    entry->kept = order->kept;
    if (entry->phase == RECONCILER_ADOPTED) {
        tell_adopted(reconciler, entry, order);
    }
    if (order->phase == ORDER_STOP && reconciler_is_alive(entry)) {
        struct reconciler_action *action = reconciler_act(reconciler, ACT_STOP, order->attempt_id);
        action->grace_ms = order->grace_ms;
        action->cause = order->cause;
        action->signal = order->signal;
    }
    tell_again(reconciler, entry, order->phase);
    if (desired_of(order->phase) >= entry->desired) {
        entry->desired = desired_of(order->phase);
        reconciler_settle(reconciler, entry);
    }
}

static bool is_live(const struct poll_reply *reply, uint64_t attempt_id)
{
    for (size_t i = 0; i < reply->live_count; i++) {
        if (reply->live[i] == attempt_id) {
            return true;
        }
    }
    return false;
}

static void go_on(struct reconciler *reconciler)
{
    if (reconciler->standing == STANDING_MEMBER && !reconciler->polling &&
        !(reconciler->ending && reconciler->count == 0)) {
        reconciler_act(reconciler, ACT_POLL, 0);
        reconciler->polling = true;
    }
}

/* Live attempts are stopped before new ones begin; ended ones are dropped after the new ones are under
 * way. */
static void drop_unlisted(struct reconciler *reconciler, const struct poll_reply *reply, bool only_alive)
{
    for (size_t i = 0; i < reconciler->count;) {
        struct entry *entry = &reconciler->items[i];
        bool spared = is_live(reply, entry->attempt_id) || (only_alive && !reconciler_is_alive(entry));
        i += spared || !reconciler_drop(reconciler, entry);
    }
}

void reconciler_polled(struct reconciler *reconciler, const struct poll_reply *reply)
{
    if (!reconciler->polling || reconciler->outdated) {
        return;
    }
    reconciler->polling = false;
    reconciler->version = reply->version;
    reconciler->ending = reply->shutdown;
    drop_unlisted(reconciler, reply, true);
    for (size_t i = 0; i < reply->order_count; i++) {
        if (is_live(reply, reply->orders[i].attempt_id)) {
            work_order(reconciler, &reply->orders[i]);
        }
    }
    if (!reconciler->ending) {
        go_on(reconciler);
    }
    drop_unlisted(reconciler, reply, false);
    reconciler_end_if_done(reconciler);
    go_on(reconciler);
}

/* --- standing ------------------------------------------------------------------------------------------- */

void reconciler_start(struct reconciler *reconciler)
{
    reconciler_act(reconciler, ACT_REGISTER, 0);
}

void reconciler_registered(struct reconciler *reconciler, const struct register_reply *reply, int64_t sent_ms)
{
    reconciler->standing = STANDING_MEMBER;
    reconciler->heartbeat_ms = reply->heartbeat_ms;
    reconciler->heartbeat_sent_ms = sent_ms;
    reconciler->renewed_ms = sent_ms;
    for (size_t i = 0; i < reconciler->count; i++) {
        reconciler_push_report(reconciler, &reconciler->items[i]);
    }
    go_on(reconciler);
}

bool reconciler_stranger(struct reconciler *reconciler)
{
    bool registers = reconciler->standing == STANDING_MEMBER;
    if (registers) {
        reconciler->standing = STANDING_STRANGER;
        reconciler->polling = false;
        reconciler->version = 0;
        reconciler_act(reconciler, ACT_REGISTER, 0);
    }
    return registers;
}

/* An eighth of the shortest lease, at most the interval that the controller asked for. */
static int64_t heartbeat_interval(const struct reconciler *reconciler)
{
    int64_t interval = reconciler->heartbeat_ms;
    for (size_t i = 0; i < reconciler->count; i++) {
        int64_t lease_ms = reconciler->items[i].lease_ms;
        interval = lease_ms > 0 && lease_ms / 8 < interval ? lease_ms / 8 : interval;
    }
    return interval;
}

/* The controller may have reassigned an attempt after a long silence. So this renews only attempts that the
 * heartbeat listed and that its answer did not fence. Attempts without an order keep the end of their
 * lease. */
static void renew(struct reconciler *reconciler, int64_t number)
{
    for (size_t i = 0; i < reconciler->count; i++) {
        struct entry *entry = &reconciler->items[i];
        bool listed = entry->first_heartbeat <= number && entry->desired != DESIRED_NOTHING;
        if (entry->lease_ms > 0 && listed && reconciler_is_alive(entry)) {
            entry->killed = false;
            lease(reconciler, entry, reconciler_act(reconciler, ACT_LEASE, entry->attempt_id));
        }
    }
}

static void drop_fenced(struct reconciler *reconciler, const struct heartbeat_reply *reply)
{
    for (size_t i = 0; i < reply->fenced_count; i++) {
        struct entry *entry = reconciler_find(reconciler, reply->fenced[i]);
        if (entry != NULL) {
            reconciler_drop(reconciler, entry);
        }
    }
    reconciler_end_if_done(reconciler);
}

/* After a silence the answer to the pending poll may be lost, or late, with orders for attempts that were
 * reassigned since: polls again. */
static void poll_anew(struct reconciler *reconciler, int64_t silence_ms)
{
    if (reconciler->polling && silence_ms > HEARTBEATS_OUT * heartbeat_interval(reconciler)) {
        reconciler_act(reconciler, ACT_POLL, 0);
        reconciler->outdated = true;
    }
}

void reconciler_heartbeat_done(struct reconciler *reconciler, int64_t number,
                               const struct heartbeat_reply *reply, int64_t sent_ms)
{
    reconciler->beating--;
    if (reply == NULL || sent_ms < reconciler->renewed_ms) {
        return;
    }
    poll_anew(reconciler, sent_ms - reconciler->renewed_ms);
    reconciler->renewed_ms = sent_ms;
    drop_fenced(reconciler, reply);
    renew(reconciler, number);
}

/* When the agent itself kills a shim that has not ended its attempt: later than the shim would act, and
 * before the controller reassigns the job. */
static int64_t guard_ms(const struct reconciler *reconciler, const struct entry *entry)
{
    bool guarded = entry->lease_ms > 0 && !entry->killed && reconciler_is_alive(entry);
    return guarded ? reconciler->renewed_ms + entry->lease_ms / 10 * 9 : INT64_MAX;
}

static int64_t next_heartbeat_ms(const struct reconciler *reconciler)
{
    bool due = reconciler->standing == STANDING_MEMBER && reconciler->beating < HEARTBEATS_OUT;
    return due ? reconciler->heartbeat_sent_ms + heartbeat_interval(reconciler) : INT64_MAX;
}

int64_t reconciler_deadline(const struct reconciler *reconciler)
{
    int64_t due_ms = next_heartbeat_ms(reconciler);
    for (size_t i = 0; i < reconciler->count; i++) {
        int64_t guarded_ms = guard_ms(reconciler, &reconciler->items[i]);
        due_ms = guarded_ms < due_ms ? guarded_ms : due_ms;
    }
    return due_ms;
}

static void heartbeat(struct reconciler *reconciler, int64_t now_ms)
{
    int64_t timeout_ms = HEARTBEATS_OUT * heartbeat_interval(reconciler);
    reconciler->beating++;
    reconciler->heartbeat_sent_ms = now_ms;
    struct reconciler_action *action = reconciler_act(reconciler, ACT_HEARTBEAT, 0);
    action->number = ++reconciler->heartbeats;
    action->timeout_ms = timeout_ms < REQUEST_TIMEOUT_MS ? timeout_ms : REQUEST_TIMEOUT_MS;
}

void reconciler_tick(struct reconciler *reconciler, int64_t now_ms)
{
    for (size_t i = 0; i < reconciler->count; i++) {
        struct entry *entry = &reconciler->items[i];
        if (now_ms >= guard_ms(reconciler, entry)) {
            entry->killed = true;
            reconciler_act(reconciler, ACT_KILL, entry->attempt_id);
        }
    }
    if (now_ms >= next_heartbeat_ms(reconciler)) {
        heartbeat(reconciler, now_ms);
    }
}

void reconciler_hurry(struct reconciler *reconciler)
{
    reconciler->heartbeat_sent_ms = 0;
}

uint64_t reconciler_version(const struct reconciler *reconciler)
{
    return reconciler->version;
}

struct node_attempt *reconciler_list(const struct reconciler *reconciler, size_t *ret_count)
{
#define X(name, member) [RECONCILER_##name] = MEMBER_##member,
    static const enum member_state states[] = {RECONCILER_PHASES(X)};
#undef X
    struct node_attempt *list = xzalloc((reconciler->count + 1) * sizeof *list);
    for (size_t i = 0; i < reconciler->count; i++) {
        list[i] = (struct node_attempt){.attempt_id = reconciler->items[i].attempt_id,
                                        .state = states[reconciler->items[i].phase],
                                        .idle_ms = -1};
    }
    *ret_count = reconciler->count;
    return list;
}

const char *reconciler_act_text(enum reconciler_act value)
{
#define X(name, text) [ACT_##name] = text,
    static const char *const texts[] = {RECONCILER_ACTS(X)};
#undef X
    return texts[value];
}
