/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when each node goes away because it expires or a window begins. A node that is away gets no work.
 * An expired node is drained. A node takes work again by itself when its window is over. People give these
 * times by the wall clock, and this file alone translates them. fit.c finds the jobs that are short enough
 * for a node, and eviction.c stops work that is not. */
#include "daemon/core/fleet/departure.h"

#include <string.h>

#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/fleet/window.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "proto/limits.h"

#define REASON_EXPIRED "expired" /* reason of the drain; a new expiry ends only such a drain */

/* --- the clock ------------------------------------------------------------------------------------------ */

int64_t departure_time(const struct core *core, int64_t wall_ms)
{
    return wall_ms - core->wall_offset_ms;
}

void departure_set_clock(struct core *core, int64_t wall_ms)
{
    int64_t offset_ms = wall_ms - core->now_ms;
    int64_t moved_ms = offset_ms - core->wall_offset_ms;
    if (moved_ms > WALL_STEP_MS || moved_ms < -WALL_STEP_MS) {
        core->wall_offset_ms = offset_ms;
        departure_judge_all(core);
    }
}

/* --- departure times ------------------------------------------------------------------------------------ */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool departure_has_expired(const struct core *core, const struct node *node)
{
    return node->expires_at_ms != 0 && departure_time(core, node->expires_at_ms) <= core->now_ms;
}

/* The known future of a node, and when that changes next. */
struct outlook {
    int64_t leaves_ms, stops_ms, changes_ms;
    bool away;
};

static void see_expiry(const struct core *core, const struct node *node, struct outlook *outlook)
{
    if (node->expires_at_ms == 0) {
        return;
    }
    int64_t at_ms = departure_time(core, node->expires_at_ms);
    outlook->leaves_ms = at_ms;
    outlook->stops_ms = at_ms;
    outlook->away = at_ms <= core->now_ms;
    if (!outlook->away || node->state == NODE_READY) { /* else it has been drained */
        outlook->changes_ms = at_ms;
    }
}

static void see_window(const struct core *core, const struct window *window, struct outlook *outlook)
{
    int64_t from_ms = departure_time(core, window->from_ms);
    int64_t until_ms = departure_time(core, window->until_ms);
    if (until_ms <= core->now_ms) {
        return;
    }
    if (from_ms <= core->now_ms) {
        outlook->away = true;
        outlook->changes_ms = earlier(outlook->changes_ms, until_ms);
    } else {
        outlook->leaves_ms = earlier(outlook->leaves_ms, from_ms);
        outlook->changes_ms = earlier(outlook->changes_ms, from_ms);
    }
    if (window->hard) {
        outlook->stops_ms = earlier(outlook->stops_ms, from_ms);
    }
}

static struct outlook look_ahead(const struct core *core, const struct node *node)
{
    struct outlook outlook = {NEVER, NEVER, NEVER, false};
    see_expiry(core, node, &outlook);
    for (const struct window *window = core->windows; window != NULL; window = window->next) {
        if (window_covers(window, node)) {
            see_window(core, window, &outlook);
        }
    }
    return outlook;
}

static void take_outlook(struct core *core, struct node *node, const struct outlook *outlook)
{
    if (node->away != outlook->away) {
        trace_line(core, "node %s %s", node->name, outlook->away ? "goes away" : "is back");
    }
    if (node->away != outlook->away || node->leaves_ms != outlook->leaves_ms) {
        staging_node_changed(core, node);
    }
    core->departing_count -= node->leaves_ms != NEVER;
    core->departing_count += outlook->leaves_ms != NEVER;
    node->leaves_ms = outlook->leaves_ms;
    node->stops_ms = outlook->stops_ms;
    node->away = outlook->away;
}

static void note_members(struct core *core, const struct node *node)
{
    for (const struct member *member = node->members; member != NULL; member = member->next) {
        deadline_note(core, departure_due_ms(member));
    }
}

void departure_judge(struct core *core, struct node *node)
{
    const struct outlook outlook = look_ahead(core, node);
    take_outlook(core, node, &outlook);
    core->judge_ms = earlier(core->judge_ms, outlook.changes_ms);
    deadline_note(core, core->judge_ms);
    note_members(core, node);
}

void departure_judge_all(struct core *core)
{
    core->judge_ms = NEVER;
    for (const struct window *window = core->windows; window != NULL; window = window->next) {
        core->judge_ms = earlier(core->judge_ms, departure_time(core, window->until_ms));
    }
    for (size_t i = 0; i < core->node_count; i++) {
        departure_judge(core, core->nodes[i]);
    }
    departure_note(core);
}

/* --- expiry --------------------------------------------------------------------------------------------- */

static bool is_drained_for_expiry(const struct node *node)
{
    bool drained = node->state == NODE_DRAINING || node->state == NODE_DRAINED;
    return drained && node->reason != NULL && strcmp(node->reason, REASON_EXPIRED) == 0;
}

static void set_expiry(struct core *core, struct node *node, int64_t expires_at_ms)
{
    node->expires_at_ms = expires_at_ms;
    record_node(core, node);
    if (is_drained_for_expiry(node) && !departure_has_expired(core, node)) {
        node_fire(core, node, NODE_EVENT_RESUME, NULL);
    }
    departure_judge(core, node);
}

void departure_take_word(struct core *core, struct node *node, int64_t expires_at_ms, bool anew)
{
    bool counts = anew || node->agent_expires_at_ms != expires_at_ms;
    node->agent_expires_at_ms = expires_at_ms;
    if (counts) {
        set_expiry(core, node, expires_at_ms);
    } else {
        departure_judge(core, node);
    }
}

bool departure_expire(struct core *core, struct node *node, int64_t expires_at_ms, struct err *err)
{
    if (expires_at_ms != 0 && departure_time(core, expires_at_ms) <= core->now_ms) {
        return err_field(err, ERR_FIELD, "at", "name a time to come, or drain the node",
                         "node %s cannot expire in the past", node->name);
    }
    trace_line(core, "node %s %s", node->name, expires_at_ms != 0 ? "is to expire" : "does not expire");
    set_expiry(core, node, expires_at_ms);
    return true;
}

void departure_leave(struct core *core, struct node *node)
{
    if (!departure_has_expired(core, node)) {
        trace_line(core, "node %s leaves", node->name);
        set_expiry(core, node, core->now_ms + core->wall_offset_ms);
    }
}

/* --- running work --------------------------------------------------------------------------------------- */

static bool may_be_stopped(const struct attempt *attempt)
{
    return attempt->state == ATTEMPT_RESERVED || attempt->state == ATTEMPT_PREPARING ||
           attempt->state == ATTEMPT_STARTED || attempt->state == ATTEMPT_KEPT;
}

int64_t departure_due_ms(const struct member *member)
{
    int64_t stops_ms = member->node->stops_ms;
    if (stops_ms == NEVER || !may_be_stopped(member->attempt)) {
        return NEVER;
    }
    return stops_ms - member->attempt->job->grace_ms;
}

/* --- time ----------------------------------------------------------------------------------------------- */

/* Reconsiders waiting jobs: a job may become too long for a departing node, and a shorter one behind it may
 * be next. */
static void look_again(struct core *core)
{
    if (core->departing_count == 0) {
        return;
    }
    if (core->job_classes != NULL && core->now_ms - core->look_ms >= LEAVES_LOOK_MS) {
        core->place_wanted = true;
    }
    deadline_note(core, core->now_ms + LEAVES_LOOK_MS);
}

void departure_note(struct core *core)
{
    deadline_note(core, core->judge_ms);
    if (core->departing_count > 0) {
        deadline_note(core, core->now_ms + LEAVES_LOOK_MS);
    }
    for (size_t i = 0; i < core->node_count; i++) {
        note_members(core, core->nodes[i]);
    }
}

void departure_watch(struct core *core)
{
    for (size_t i = 0; i < core->node_count; i++) {
        struct node *node = core->nodes[i];
        if (node->state == NODE_READY && departure_has_expired(core, node)) {
            node_fire(core, node, NODE_EVENT_DRAIN, REASON_EXPIRED);
        }
    }
    if (core->now_ms >= core->judge_ms) {
        window_drop_past(core, core->now_ms + core->wall_offset_ms);
        departure_judge_all(core);
    }
    deadline_note(core, core->judge_ms);
    look_again(core);
}

/* --- invariants ----------------------------------------------------------------------------------------- */

void departure_check(const struct core *core)
{
    size_t departing = 0;
    for (size_t i = 0; i < core->node_count; i++) {
        const struct node *node = core->nodes[i];
        departing += node->leaves_ms != NEVER;
        assert(node->stops_ms == NEVER || node->away || node->leaves_ms <= node->stops_ms);
        assert(node->expires_at_ms == 0 || node->leaves_ms != NEVER);
        for (const struct member *member = node->members; member != NULL; member = member->next) {
            assert(core->deadline_ms <= departure_due_ms(member));
        }
    }
    assert(departing == core->departing_count && core->deadline_ms <= core->judge_ms);
}
