/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the phases of each attempt that this node knows, and the reports that are due of it. It promises that
 * a phase changes only as the table says, and that reports of one epoch leave in order and one at a time,
 * each until it was answered. Orders and heartbeats are reconciler.c's. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/reconciler_parts.h"
#include "proto/base/text.h"

/* What news do to a phase; no row means that it is no news. */
struct move {
    enum reconciler_phase from;
    enum reconciler_news news;
    enum reconciler_phase to;
    enum report_kind report; /* REPORT_KIND_COUNT: none */
};

#define SILENT REPORT_KIND_COUNT

static const struct move moves[] = {
    {RECONCILER_ADOPTED, NEWS_PREPARED, RECONCILER_PREPARED, SILENT},
    {RECONCILER_CLAIMED, NEWS_PREPARED, RECONCILER_PREPARED, SILENT},
    {RECONCILER_ADOPTED, NEWS_DECLINED, RECONCILER_DECLINED, REPORT_DECLINED},
    {RECONCILER_CLAIMED, NEWS_DECLINED, RECONCILER_DECLINED, REPORT_DECLINED},
    {RECONCILER_PREPARED, NEWS_DECLINED, RECONCILER_DECLINED, REPORT_DECLINED},
    {RECONCILER_STARTED, NEWS_DECLINED, RECONCILER_DECLINED, REPORT_DECLINED},
    {RECONCILER_ADOPTED, NEWS_RUNNING, RECONCILER_RUNNING, REPORT_RUNNING},
    {RECONCILER_CLAIMED, NEWS_RUNNING, RECONCILER_RUNNING, REPORT_RUNNING},
    {RECONCILER_PREPARED, NEWS_RUNNING, RECONCILER_RUNNING, REPORT_RUNNING},
    {RECONCILER_STARTED, NEWS_RUNNING, RECONCILER_RUNNING, REPORT_RUNNING},
    {RECONCILER_ADOPTED, NEWS_FAILED, RECONCILER_STARTED, REPORT_FAILED},
    {RECONCILER_PREPARED, NEWS_FAILED, RECONCILER_STARTED, REPORT_FAILED},
    {RECONCILER_STARTED, NEWS_FAILED, RECONCILER_STARTED, REPORT_FAILED},
    {RECONCILER_RUNNING, NEWS_FAILED, RECONCILER_RUNNING, REPORT_FAILED},
    {RECONCILER_ADOPTED, NEWS_EXITED, RECONCILER_CLEARING, SILENT},
    {RECONCILER_CLAIMED, NEWS_EXITED, RECONCILER_CLEARING, SILENT},
    {RECONCILER_PREPARED, NEWS_EXITED, RECONCILER_CLEARING, SILENT},
    {RECONCILER_STARTED, NEWS_EXITED, RECONCILER_CLEARING, SILENT},
    {RECONCILER_RUNNING, NEWS_EXITED, RECONCILER_CLEARING, SILENT},
    {RECONCILER_CLEARING, NEWS_CLEARED, RECONCILER_EXITED, REPORT_EXITED},
    {RECONCILER_EXITED, NEWS_DRAINED, RECONCILER_EXITED, REPORT_EXITED},
};

struct reconciler_action *reconciler_act(struct reconciler *reconciler, enum reconciler_act what,
                                         uint64_t epoch)
{
    if (reconciler->action_count == reconciler->action_room) {
        reconciler->action_room = reconciler->action_room ? 2 * reconciler->action_room : 32;
        reconciler->actions =
            xrealloc(reconciler->actions, reconciler->action_room * sizeof *reconciler->actions);
    }
    struct reconciler_action *action = &reconciler->actions[reconciler->action_count++];
    *action = (struct reconciler_action){.act = what, .epoch = epoch};
    return action;
}

struct known *reconciler_find(const struct reconciler *reconciler, uint64_t epoch)
{
    for (size_t i = 0; i < reconciler->count; i++) {
        if (reconciler->items[i].epoch == epoch) {
            return &reconciler->items[i];
        }
    }
    return NULL;
}

struct known *reconciler_add(struct reconciler *reconciler, uint64_t epoch, enum reconciler_phase phase,
                             enum wish wish)
{
    assert(reconciler_find(reconciler, epoch) == NULL);
    if (reconciler->count == reconciler->room) {
        reconciler->room = reconciler->room ? 2 * reconciler->room : 16;
        reconciler->items = xrealloc(reconciler->items, reconciler->room * sizeof *reconciler->items);
    }
    struct known *known = &reconciler->items[reconciler->count++];
    *known = (struct known){
        .epoch = epoch, .phase = phase, .wish = wish, .first_heartbeat = reconciler->heartbeats + 1};
    return known;
}

static void forget(struct reconciler *reconciler, struct known *known)
{
    reconciler_act(reconciler, ACT_FORGET, known->epoch);
    size_t index = (size_t)(known - reconciler->items);
    reconciler->count--;
    memmove(known, known + 1, (reconciler->count - index) * sizeof *known);
}

void reconciler_end_if_done(struct reconciler *reconciler)
{
    if (reconciler->ending && reconciler->count == 0) {
        reconciler_act(reconciler, ACT_END, 0);
    }
}

/* --- reports -------------------------------------------------------------------------------------------- */

void reconciler_push_report(struct reconciler *reconciler, struct known *known)
{
    if (known->due_count > 0 && !known->asking && reconciler->standing == STANDING_MEMBER) {
        reconciler_act(reconciler, ACT_REPORT, known->epoch)->report = known->due[0];
        known->asking = true;
    }
}

/* Adds a report behind those that wait. The same one is not added twice, but for the one that is out: what it
 * tells may be old. */
void reconciler_report(struct reconciler *reconciler, struct known *known, enum report_kind kind)
{
    for (size_t i = known->asking ? 1 : 0; i < known->due_count; i++) {
        if (known->due[i] == kind) {
            return;
        }
    }
    assert(known->due_count < REPORTS_DUE);
    known->due[known->due_count++] = kind;
    reconciler_push_report(reconciler, known);
}

/* --- one attempt ---------------------------------------------------------------------------------------- */

bool reconciler_is_alive(const struct known *known)
{
    return known->phase < RECONCILER_CLEARING;
}

/* Nobody wants it: what lives is killed, what is over is forgotten. True when it was forgotten, and known is
 * gone. */
bool reconciler_drop(struct reconciler *reconciler, struct known *known)
{
    bool first = known->wish != WISH_NOTHING;
    known->wish = WISH_NOTHING;
    known->due_count = 0;
    known->asking = false;
    if (reconciler_is_alive(known)) {
        if (first) {
            reconciler_act(reconciler, ACT_STOP, known->epoch)->cause = CAUSE_NODE_LOST;
        }
        return false;
    }
    if (known->phase == RECONCILER_CLEARING) {
        return false;
    }
    forget(reconciler, known);
    return true;
}

void reconciler_settle(struct reconciler *reconciler, struct known *known)
{
    switch (known->wish) {
    case WISH_UNKNOWN:
        return;
    case WISH_READY:
        if (known->phase == RECONCILER_PREPARED) {
            reconciler_report(reconciler, known, REPORT_PREPARED);
        }
        return;
    case WISH_RUN:
        if (known->phase == RECONCILER_PREPARED) {
            known->phase = RECONCILER_STARTED;
            reconciler_act(reconciler, ACT_START, known->epoch);
        }
        if (known->phase == RECONCILER_RUNNING && known->signal != EARLY_NONE && !known->warned) {
            known->warned = true;
            reconciler_act(reconciler, ACT_WARN, known->epoch)->signal = known->signal;
        }
        return;
    case WISH_STOP:
        if (known->phase == RECONCILER_DECLINED) {
            known->phase = RECONCILER_EXITED;
            known->due_count = known->asking ? 1 : 0;
            reconciler_report(reconciler, known, REPORT_EXITED);
        }
        return;
    case WISH_NOTHING:
        reconciler_drop(reconciler, known);
        return;
    }
}

void reconciler_answered(struct reconciler *reconciler, uint64_t epoch, enum reconciler_answer answer)
{
    struct known *known = reconciler_find(reconciler, epoch);
    if (known == NULL || !known->asking) {
        return;
    }
    known->asking = false;
    switch (answer) {
    case ANSWER_FLUSHED:
        known->phase = known->phase == RECONCILER_EXITED ? RECONCILER_FLUSHED : known->phase;
        __attribute__((fallthrough));
    case ANSWER_TAKEN:
        known->due_count--;
        memmove(known->due, known->due + 1, known->due_count * sizeof known->due[0]);
        reconciler_push_report(reconciler, known);
        return;
    case ANSWER_STRANGER:
        reconciler_stranger(reconciler);
        return;
    case ANSWER_FENCED:
        reconciler_drop(reconciler, known);
        reconciler_end_if_done(reconciler);
        return;
    }
}

void reconciler_heard(struct reconciler *reconciler, uint64_t epoch, enum reconciler_news news)
{
    struct known *known = reconciler_find(reconciler, epoch);
    const struct move *move = NULL;
    for (size_t i = 0; known != NULL && move == NULL && i < sizeof moves / sizeof moves[0]; i++) {
        move = moves[i].from == known->phase && moves[i].news == news ? &moves[i] : NULL;
    }
    if (move == NULL) {
        return;
    }
    known->phase = move->to;
    if (move->to == RECONCILER_CLEARING) {
        reconciler_act(reconciler, ACT_CLEAR, epoch);
    }
    if (move->report != SILENT && known->wish != WISH_NOTHING) {
        reconciler_report(reconciler, known, move->report);
    }
    reconciler_settle(reconciler, known);
    reconciler_end_if_done(reconciler);
}
