/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the phases of each attempt that this node knows, and the reports that are due of it. It promises that
 * a phase changes only as the table says, and that reports of one epoch leave in order and one at a time,
 * each until it was answered. Orders and heartbeats are duty.c's. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/duty_parts.h"
#include "proto/base/text.h"

/* What news do to a phase; no row means that it is no news. */
struct move {
    enum duty_phase from;
    enum duty_news news;
    enum duty_phase to;
    enum report_kind report; /* REPORT_KIND_COUNT: none */
};

#define SILENT REPORT_KIND_COUNT

static const struct move moves[] = {
    {DUTY_ADOPTED, NEWS_PREPARED, DUTY_PREPARED, SILENT},
    {DUTY_CLAIMED, NEWS_PREPARED, DUTY_PREPARED, SILENT},
    {DUTY_ADOPTED, NEWS_DECLINED, DUTY_DECLINED, REPORT_DECLINED},
    {DUTY_CLAIMED, NEWS_DECLINED, DUTY_DECLINED, REPORT_DECLINED},
    {DUTY_PREPARED, NEWS_DECLINED, DUTY_DECLINED, REPORT_DECLINED},
    {DUTY_STARTED, NEWS_DECLINED, DUTY_DECLINED, REPORT_DECLINED},
    {DUTY_ADOPTED, NEWS_RUNNING, DUTY_RUNNING, REPORT_RUNNING},
    {DUTY_CLAIMED, NEWS_RUNNING, DUTY_RUNNING, REPORT_RUNNING},
    {DUTY_PREPARED, NEWS_RUNNING, DUTY_RUNNING, REPORT_RUNNING},
    {DUTY_STARTED, NEWS_RUNNING, DUTY_RUNNING, REPORT_RUNNING},
    {DUTY_ADOPTED, NEWS_FAILED, DUTY_STARTED, REPORT_FAILED},
    {DUTY_PREPARED, NEWS_FAILED, DUTY_STARTED, REPORT_FAILED},
    {DUTY_STARTED, NEWS_FAILED, DUTY_STARTED, REPORT_FAILED},
    {DUTY_RUNNING, NEWS_FAILED, DUTY_RUNNING, REPORT_FAILED},
    {DUTY_ADOPTED, NEWS_EXITED, DUTY_CLEARING, SILENT},
    {DUTY_CLAIMED, NEWS_EXITED, DUTY_CLEARING, SILENT},
    {DUTY_PREPARED, NEWS_EXITED, DUTY_CLEARING, SILENT},
    {DUTY_STARTED, NEWS_EXITED, DUTY_CLEARING, SILENT},
    {DUTY_RUNNING, NEWS_EXITED, DUTY_CLEARING, SILENT},
    {DUTY_CLEARING, NEWS_CLEARED, DUTY_EXITED, REPORT_EXITED},
    {DUTY_EXITED, NEWS_DRAINED, DUTY_EXITED, REPORT_EXITED},
};

struct duty_action *duty_act(struct duty *duty, enum duty_act what, uint64_t epoch)
{
    if (duty->action_count == duty->action_room) {
        duty->action_room = duty->action_room ? 2 * duty->action_room : 32;
        duty->actions = xrealloc(duty->actions, duty->action_room * sizeof *duty->actions);
    }
    struct duty_action *action = &duty->actions[duty->action_count++];
    *action = (struct duty_action){.act = what, .epoch = epoch};
    return action;
}

struct known *duty_find(const struct duty *duty, uint64_t epoch)
{
    for (size_t i = 0; i < duty->count; i++) {
        if (duty->items[i].epoch == epoch) {
            return &duty->items[i];
        }
    }
    return NULL;
}

struct known *duty_add(struct duty *duty, uint64_t epoch, enum duty_phase phase, enum wish wish)
{
    assert(duty_find(duty, epoch) == NULL);
    if (duty->count == duty->room) {
        duty->room = duty->room ? 2 * duty->room : 16;
        duty->items = xrealloc(duty->items, duty->room * sizeof *duty->items);
    }
    struct known *known = &duty->items[duty->count++];
    *known =
        (struct known){.epoch = epoch, .phase = phase, .wish = wish, .first_heartbeat = duty->heartbeats + 1};
    return known;
}

static void forget(struct duty *duty, struct known *known)
{
    duty_act(duty, ACT_FORGET, known->epoch);
    size_t index = (size_t)(known - duty->items);
    duty->count--;
    memmove(known, known + 1, (duty->count - index) * sizeof *known);
}

void duty_end_if_done(struct duty *duty)
{
    if (duty->ending && duty->count == 0) {
        duty_act(duty, ACT_END, 0);
    }
}

/* --- reports ------------------------------------------------------------------------------------- */

void duty_push_report(struct duty *duty, struct known *known)
{
    if (known->due_count > 0 && !known->asking && duty->standing == STANDING_MEMBER) {
        duty_act(duty, ACT_REPORT, known->epoch)->report = known->due[0];
        known->asking = true;
    }
}

/* Adds a report behind those that wait. The same one is not added twice, but for the one that is out: what it
 * tells may be old. */
void duty_report(struct duty *duty, struct known *known, enum report_kind kind)
{
    for (size_t i = known->asking ? 1 : 0; i < known->due_count; i++) {
        if (known->due[i] == kind) {
            return;
        }
    }
    assert(known->due_count < REPORTS_DUE);
    known->due[known->due_count++] = kind;
    duty_push_report(duty, known);
}

/* --- one attempt --------------------------------------------------------------------------------- */

bool duty_is_alive(const struct known *known)
{
    return known->phase < DUTY_CLEARING;
}

/* Nobody wants it: what lives is killed, what is over is forgotten. True when it was forgotten, and known is
 * gone. */
bool duty_drop(struct duty *duty, struct known *known)
{
    bool first = known->wish != WISH_NOTHING;
    known->wish = WISH_NOTHING;
    known->due_count = 0;
    known->asking = false;
    if (duty_is_alive(known)) {
        if (first) {
            duty_act(duty, ACT_STOP, known->epoch)->cause = CAUSE_NODE_LOST;
        }
        return false;
    }
    if (known->phase == DUTY_CLEARING) {
        return false;
    }
    forget(duty, known);
    return true;
}

void duty_settle(struct duty *duty, struct known *known)
{
    switch (known->wish) {
    case WISH_UNKNOWN:
        return;
    case WISH_READY:
        if (known->phase == DUTY_PREPARED) {
            duty_report(duty, known, REPORT_PREPARED);
        }
        return;
    case WISH_RUN:
        if (known->phase == DUTY_PREPARED) {
            known->phase = DUTY_STARTED;
            duty_act(duty, ACT_START, known->epoch);
        }
        if (known->phase == DUTY_RUNNING && known->signal != EARLY_NONE && !known->warned) {
            known->warned = true;
            duty_act(duty, ACT_WARN, known->epoch)->signal = known->signal;
        }
        return;
    case WISH_STOP:
        if (known->phase == DUTY_DECLINED) {
            known->phase = DUTY_EXITED;
            known->due_count = known->asking ? 1 : 0;
            duty_report(duty, known, REPORT_EXITED);
        }
        return;
    case WISH_NOTHING:
        duty_drop(duty, known);
        return;
    }
}

void duty_answered(struct duty *duty, uint64_t epoch, enum duty_answer answer)
{
    struct known *known = duty_find(duty, epoch);
    if (known == NULL || !known->asking) {
        return;
    }
    known->asking = false;
    switch (answer) {
    case ANSWER_FLUSHED:
        known->phase = known->phase == DUTY_EXITED ? DUTY_FLUSHED : known->phase;
        __attribute__((fallthrough));
    case ANSWER_TAKEN:
        known->due_count--;
        memmove(known->due, known->due + 1, known->due_count * sizeof known->due[0]);
        duty_push_report(duty, known);
        return;
    case ANSWER_STRANGER:
        duty_stranger(duty);
        return;
    case ANSWER_FENCED:
        duty_drop(duty, known);
        duty_end_if_done(duty);
        return;
    }
}

void duty_heard(struct duty *duty, uint64_t epoch, enum duty_news news)
{
    struct known *known = duty_find(duty, epoch);
    const struct move *move = NULL;
    for (size_t i = 0; known != NULL && move == NULL && i < sizeof moves / sizeof moves[0]; i++) {
        move = moves[i].from == known->phase && moves[i].news == news ? &moves[i] : NULL;
    }
    if (move == NULL) {
        return;
    }
    known->phase = move->to;
    if (move->to == DUTY_CLEARING) {
        duty_act(duty, ACT_CLEAR, epoch);
    }
    if (move->report != SILENT && known->wish != WISH_NOTHING) {
        duty_report(duty, known, move->report);
    }
    duty_settle(duty, known);
    duty_end_if_done(duty);
}
