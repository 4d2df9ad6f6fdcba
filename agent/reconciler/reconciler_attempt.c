/* SPDX-License-Identifier: Apache-2.0 */
/* The phase of each attempt that this node knows, and the reports that are due. A phase changes only as the
 * table below says. Reports of one attempt are sent in order and one at a time, each until it is answered.
 * reconciler.c handles orders and heartbeats. */
#include <assert.h>
#include <string.h>

#include "agent/reconciler/reconciler_parts.h"
#include "proto/base/text/text.h"

/* How an event changes a phase; without a row the event has no effect. */
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
                                         uint64_t attempt_id)
{
    XGROW(reconciler->actions, reconciler->action_count, reconciler->action_room, 32);
    struct reconciler_action *action = &reconciler->actions[reconciler->action_count++];
    *action = (struct reconciler_action){.act = what, .attempt_id = attempt_id};
    return action;
}

struct entry *reconciler_find(const struct reconciler *reconciler, uint64_t attempt_id)
{
    for (size_t i = 0; i < reconciler->count; i++) {
        if (reconciler->items[i].attempt_id == attempt_id) {
            return &reconciler->items[i];
        }
    }
    return NULL;
}

struct entry *reconciler_add(struct reconciler *reconciler, uint64_t attempt_id, enum reconciler_phase phase,
                             enum desired desired)
{
    assert(reconciler_find(reconciler, attempt_id) == NULL);
    XGROW(reconciler->items, reconciler->count, reconciler->room, 16);
    struct entry *entry = &reconciler->items[reconciler->count++];
    *entry = (struct entry){.attempt_id = attempt_id,
                            .phase = phase,
                            .desired = desired,
                            .first_heartbeat = reconciler->heartbeats + 1};
    return entry;
}

static void forget(struct reconciler *reconciler, struct entry *entry)
{
    reconciler_act(reconciler, ACT_FORGET, entry->attempt_id);
    size_t index = (size_t)(entry - reconciler->items);
    reconciler->count--;
    memmove(entry, entry + 1, (reconciler->count - index) * sizeof *entry);
}

void reconciler_end_if_done(struct reconciler *reconciler)
{
    if (reconciler->ending && reconciler->count == 0) {
        reconciler_act(reconciler, ACT_END, 0);
    }
}

/* --- reports -------------------------------------------------------------------------------------------- */

void reconciler_push_report(struct reconciler *reconciler, struct entry *entry)
{
    if (entry->due_count > 0 && !entry->asking && reconciler->standing == STANDING_MEMBER) {
        reconciler_act(reconciler, ACT_REPORT, entry->attempt_id)->report = entry->due[0];
        entry->asking = true;
    }
}

/* Adds a report behind those that wait. A waiting report is not added twice. The report under way does not
 * count, because its content may be outdated. */
void reconciler_report(struct reconciler *reconciler, struct entry *entry, enum report_kind kind)
{
    for (size_t i = entry->asking ? 1 : 0; i < entry->due_count; i++) {
        if (entry->due[i] == kind) {
            return;
        }
    }
    assert(entry->due_count < REPORTS_DUE);
    entry->due[entry->due_count++] = kind;
    reconciler_push_report(reconciler, entry);
}

/* --- one attempt ---------------------------------------------------------------------------------------- */

bool reconciler_is_alive(const struct entry *entry)
{
    return entry->phase < RECONCILER_CLEARING;
}

/* For an attempt that the controller does not want: stops it if it is live, forgets it if it is over. True
 * when it was forgotten, and the entry is gone. */
bool reconciler_drop(struct reconciler *reconciler, struct entry *entry)
{
    bool first = entry->desired != DESIRED_NOTHING;
    entry->desired = DESIRED_NOTHING;
    entry->due_count = 0;
    entry->asking = false;
    if (reconciler_is_alive(entry)) {
        if (first) {
            reconciler_act(reconciler, ACT_STOP, entry->attempt_id)->cause = CAUSE_NODE_LOST;
        }
        return false;
    }
    if (entry->phase == RECONCILER_CLEARING) {
        return false;
    }
    forget(reconciler, entry);
    return true;
}

void reconciler_settle(struct reconciler *reconciler, struct entry *entry)
{
    switch (entry->desired) {
    case DESIRED_UNKNOWN:
        return;
    case DESIRED_READY:
        if (entry->phase == RECONCILER_PREPARED) {
            reconciler_report(reconciler, entry, REPORT_PREPARED);
        }
        return;
    case DESIRED_RUN:
        if (entry->phase == RECONCILER_PREPARED) {
            entry->phase = RECONCILER_STARTED;
            reconciler_act(reconciler, ACT_START, entry->attempt_id);
        }
        if (entry->phase == RECONCILER_RUNNING && entry->signal != EARLY_NONE && !entry->warned) {
            entry->warned = true;
            reconciler_act(reconciler, ACT_WARN, entry->attempt_id)->signal = entry->signal;
        }
        if (entry->phase == RECONCILER_RUNNING && entry->kept && !entry->told_kept) {
            entry->told_kept = true;
            reconciler_act(reconciler, ACT_KEEP, entry->attempt_id);
        }
        return;
    case DESIRED_STOP:
        if (entry->phase == RECONCILER_DECLINED) {
            entry->phase = RECONCILER_EXITED;
            entry->due_count = entry->asking ? 1 : 0;
            reconciler_report(reconciler, entry, REPORT_EXITED);
        }
        return;
    case DESIRED_NOTHING:
        reconciler_drop(reconciler, entry);
        return;
    }
}

void reconciler_answered(struct reconciler *reconciler, uint64_t attempt_id, enum reconciler_answer answer)
{
    struct entry *entry = reconciler_find(reconciler, attempt_id);
    if (entry == NULL || !entry->asking) {
        return;
    }
    entry->asking = false;
    switch (answer) {
    case ANSWER_FLUSHED:
        entry->phase = entry->phase == RECONCILER_EXITED ? RECONCILER_FLUSHED : entry->phase;
        __attribute__((fallthrough));
    case ANSWER_TAKEN:
        entry->due_count--;
        memmove(entry->due, entry->due + 1, entry->due_count * sizeof entry->due[0]);
        reconciler_push_report(reconciler, entry);
        return;
    case ANSWER_STRANGER:
        reconciler_stranger(reconciler);
        return;
    case ANSWER_FENCED:
        reconciler_drop(reconciler, entry);
        reconciler_end_if_done(reconciler);
        return;
    }
}

void reconciler_heard(struct reconciler *reconciler, uint64_t attempt_id, enum reconciler_news news)
{
    struct entry *entry = reconciler_find(reconciler, attempt_id);
    const struct move *move = NULL;
    for (size_t i = 0; entry != NULL && move == NULL && i < sizeof moves / sizeof moves[0]; i++) {
        move = moves[i].from == entry->phase && moves[i].news == news ? &moves[i] : NULL;
    }
    if (move == NULL) {
        return;
    }
    entry->phase = move->to;
    if (move->to == RECONCILER_CLEARING) {
        reconciler_act(reconciler, ACT_CLEAR, attempt_id);
    }
    if (move->report != SILENT && entry->desired != DESIRED_NOTHING) {
        reconciler_report(reconciler, entry, move->report);
    }
    reconciler_settle(reconciler, entry);
    reconciler_end_if_done(reconciler);
}
