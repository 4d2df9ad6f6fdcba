/* SPDX-License-Identifier: Apache-2.0 */
/* Processes due work: silence, holds, leases, deadlines of attempts. A lease expires only if more than the
 * lease and a twentieth has passed since the node was heard, never while most nodes are silent at once, and
 * never by the wall clock. A restart of the controller renews all leases. departure.c handles times that
 * people set by the wall clock. */
#include "daemon/core/inputs/tick.h"

#include "daemon/core/fleet/departure.h"
#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/eviction.h"
#include "daemon/core/lifecycle/expiry.h"
#include "daemon/core/lifecycle/idle.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/lifecycle/start_time.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/quota/account.h"

#define BRAKE_NODES 3 /* with fewer nodes, one broken machine is half of them */

static void watch_start_times(struct core *core)
{
    for (struct job *job; (job = start_time_next(core)) != NULL;) {
        if (job->state == JOB_BLOCKED && !job_waits_to_be_ready(job)) {
            job_fire(core, job, JOB_EVENT_READY, NULL, ": its time has come");
        }
    }
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

static void watch_node(struct core *core, struct node *node)
{
    if (node->contact == CONTACT_FRESH) {
        if (core->now_ms >= node_silent_ms(core, node)) {
            node_silent(core, node);
        } else {
            deadline_note(core, node_silent_ms(core, node));
        }
    }
    if (node->hold_until_ms != 0) {
        if (core->now_ms >= node->hold_until_ms) {
            node->hold_until_ms = 0;
            core->place_wanted = true;
        } else {
            deadline_note(core, node->hold_until_ms);
        }
    }
    staging_watch(core, node);
}

void tick_watch_brake(struct core *core)
{
    bool braked = core->known_count >= BRAKE_NODES && 2 * core->silent_count > core->known_count;
    if (braked == core->braked) {
        return;
    }
    core->braked = braked;
    trace_line(core, "brake %s: %zu of %zu nodes are silent", braked ? "on" : "off", core->silent_count,
               core->known_count);
    if (!braked) {
        core->calm_since_ms = core->now_ms; /* nodes that are still reconnecting get a whole lease */
        deadline_note(core, core->now_ms);
    }
}

/* --- attempts ------------------------------------------------------------------------------------------- */

/* When the lease of a member on a silent node expires; NEVER: it has none. */
static int64_t lease_end_ms(const struct core *core, const struct member *member)
{
    const struct job *job = member->attempt->job;
    if (job->on_disconnect == ON_DISCONNECT_KEEP || core->braked) {
        return NEVER;
    }
    int64_t heard_ms = member->node->heartbeat_ms;
    int64_t from_ms = heard_ms > core->calm_since_ms ? heard_ms : core->calm_since_ms;
    return from_ms + job->lease_ms + job->lease_ms / 20;
}

/* Whether the gang was never started: it has no processes on a silent node, and need not wait for that node's
 * report. */
static bool is_idle(const struct attempt *attempt)
{
    return attempt->state == ATTEMPT_STOPPING && !attempt_has_started(attempt);
}

/* false: the attempt has ended. */
static bool watch_member(struct core *core, struct member *member)
{
    struct attempt *attempt = member->attempt;
    if (member->node->contact != CONTACT_SILENT || !member_is_up(member)) {
        return true;
    }
    bool idle = is_idle(attempt);
    int64_t end_ms = idle ? core->now_ms : lease_end_ms(core, member);
    if (core->now_ms < end_ms) {
        deadline_note(core, end_ms);
        return true;
    }
    const char *how = idle ? "is silent" : "was silent for longer than the lease";
    attempt_lose(core, member, record_text(core, "node %s %s", member->node->name, how));
    return attempt_is_live(attempt);
}

static void watch_attempt(struct core *core, struct attempt *attempt)
{
    if (core->now_ms >= attempt->deadline_ms) {
        expiry_due(core, attempt);
        if (!attempt_is_live(attempt)) {
            return;
        }
    }
    deadline_note(core, attempt->deadline_ms);
    idle_watch(core, attempt);
    for (size_t i = 0; i < attempt->member_count; i++) {
        if (!watch_member(core, attempt->members[i])) {
            return;
        }
    }
}

/* --- the inputs ----------------------------------------------------------------------------------------- */

bool tick_pass(struct core *core, const struct input *input, struct err *err)
{
    core->deadline_ms = NEVER;
    departure_set_clock(core, input->wall_ms);
    for (size_t i = 0; i < core->node_count; i++) {
        if (core->nodes[i]->state != NODE_LOST) {
            watch_node(core, core->nodes[i]);
        }
    }
    tick_watch_brake(core);
    struct attempt *attempt, *next;
    DL_FOREACH_SAFE (core->attempts, attempt, next) {
        watch_attempt(core, attempt);
    }
    account_watch(core);
    departure_watch(core);
    watch_start_times(core);
    eviction_watch(core);
    return true;
}

/* The restart has renewed all leases and deadlines. */
bool tick_boot(struct core *core, const struct input *input, struct err *err)
{
    core->booted = true;
    core->calm_since_ms = core->now_ms;
    core->wall_offset_ms = input->wall_ms - core->now_ms;
    for (size_t i = 0; i < core->node_count; i++) {
        if (core->nodes[i]->state != NODE_LOST) {
            node_heard(core, core->nodes[i]);
        }
    }
    for (struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        expiry_set(core, attempt);
        attempt->idle_told_ms = core->now_ms;
    }
    account_boot(core);
    departure_judge_all(core);
    watch_start_times(core);
    core->place_wanted = true;
    return true;
}
