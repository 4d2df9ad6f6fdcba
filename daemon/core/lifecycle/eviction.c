/* SPDX-License-Identifier: Apache-2.0 */
/* Stops work on nodes that go away. An attempt that cannot end before the departure of its node is told to
 * stop a grace period earlier. That costs no retry, and the job says why. */
#include "daemon/core/lifecycle/eviction.h"

#include "daemon/core/fleet/departure.h"
#include "daemon/core/fleet/window.h"
#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "proto/base/clock.h"

/* The hard window that ends the node's work; NULL: its expiry does. */
static const struct window *what_stops(const struct core *core, const struct node *node)
{
    for (const struct window *window = core->windows; window != NULL; window = window->next) {
        if (window->hard && window_covers(window, node) &&
            departure_time(core, window->from_ms) == node->stops_ms) {
            return window;
        }
    }
    return NULL;
}

static const char *why(struct core *core, const struct node *node)
{
    char at[32];
    clock_format_wall(node->stops_ms + core->wall_offset_ms, at, sizeof at);
    const struct window *window = what_stops(core, node);
    if (window == NULL) {
        return record_text(core, "node %s expires at %s", node->name, at);
    }
    bool told = window->reason != NULL;
    return record_text(core, "node %s has maintenance from %s%s%s", node->name, at, told ? ": " : "",
                       told ? window->reason : "");
}

static void watch_node(struct core *core, struct node *node)
{
    for (struct member *member = node->members; member != NULL; member = member->next) {
        int64_t due_ms = departure_due_ms(member);
        if (core->now_ms >= due_ms) {
            const struct fault fault = {
                .cause = CAUSE_PREEMPTED, .member = member, .rank = -1, .text = why(core, node)};
            attempt_stop(core, member->attempt, &fault);
        } else {
            deadline_note(core, due_ms);
        }
    }
}

void eviction_watch(struct core *core)
{
    for (size_t i = 0; i < core->node_count; i++) {
        watch_node(core, core->nodes[i]);
    }
}
