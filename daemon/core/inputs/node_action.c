/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the actions of operators on nodes: drain, resume, fence, expire, remove; and lets nodes go
 * whose agents are about to end. A node is removed only when no live attempt names it, and forgotten only
 * when it was not heard for long. Only a fence gives up work. */
#include "daemon/core/inputs/node_action.h"

#include "daemon/core/fleet/departure.h"
#include "daemon/core/fleet/node.h"
#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/eviction.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "proto/limits.h"

static bool refuse_lost(const struct node *node, struct err *err)
{
    return err_field(err, ERR_CONFLICT, "name", "start its gpuagent, which registers it anew",
                     "node %s is LOST", node->name);
}

static bool drain(struct core *core, struct node *node, const char *reason, const char *by, struct err *err)
{
    if (node->state == NODE_LOST) {
        return refuse_lost(node, err);
    }
    const char *text = reason != NULL ? reason : record_text(core, "drained by %s", by);
    if (!node_fire(core, node, NODE_EVENT_DRAIN, text)) {
        replace_text(&node->reason, text);
        record_node(core, node);
    }
    return true;
}

static bool resume(struct core *core, struct node *node, struct err *err)
{
    if (node->state == NODE_LOST) {
        return refuse_lost(node, err);
    }
    if (departure_has_expired(core, node)) {
        return err_field(err, ERR_CONFLICT, "name", "say first until when it stays: gpuctl nodes expire",
                         "node %s has expired", node->name);
    }
    node_fire(core, node, NODE_EVENT_RESUME, NULL);
    return true;
}

static bool expire(struct core *core, struct node *node, int64_t expires_at_ms, struct err *err)
{
    return node->state == NODE_LOST ? refuse_lost(node, err)
                                    : departure_expire(core, node, expires_at_ms, err);
}

/* The operator asserts that the node's processes have ended. */
static void fence(struct core *core, struct node *node, const char *reason, const char *by)
{
    const char *text = reason != NULL ? reason : record_text(core, "fenced by %s", by);
    if (!node_fire(core, node, NODE_EVENT_FENCE, text)) {
        return;
    }
    struct member *member, *next;
    DL_FOREACH_SAFE (node->members, member, next) {
        attempt_lose(core, member, record_text(core, "node %s was fenced", node->name));
    }
}

/* A live attempt over several nodes names all of them, including lost ones. */
static bool is_named(const struct core *core, const struct node *node)
{
    const struct attempt *attempt;
    DL_FOREACH (core->attempts, attempt) {
        for (size_t i = 0; i < attempt->member_count; i++) {
            if (attempt->members[i]->node == node) {
                return true;
            }
        }
    }
    return false;
}

static void drop(struct core *core, struct node *node)
{
    trace_line(core, "node %s is removed", node->name);
    record_node_gone(core, node);
    node_remove(core, node);
}

/* Removes the row once no live attempt names the node; attempts over several nodes are stopped first. */
static bool remove_node(struct core *core, struct node *node, bool force, const char *by, struct err *err)
{
    bool idle = node->state == NODE_LOST || node->state == NODE_DRAINED;
    if (!force && (!idle || is_named(core, node))) {
        err_field(err, ERR_CONFLICT, "name", NULL,
                  idle || node->members != NULL ? "jobs still run on node %s" : "node %s still takes work",
                  node->name);
        return err_hint(err,
                        "drain it first: gpuctl nodes drain %s; or, if it is dead, repeat this with --force",
                        node->name);
    }
    fence(core, node, NULL, by);
    if (!is_named(core, node)) {
        drop(core, node);
    }
    return true;
}

/* Whether the node may come back at any moment: the controller has not run for long without hearing it. */
static bool is_awaited(const struct core *core, const struct node *node)
{
    return node->state != NODE_LOST && core->now_ms - node->heartbeat_ms < NODE_HEARD_MS;
}

static bool forget(struct core *core, struct node *node, int64_t heard_ms, const char *by, struct err *err)
{
    if (node->heard_ms > heard_ms || is_awaited(core, node) || is_named(core, node)) {
        return err_set(err, ERR_CONFLICT, "node %s is heard, or jobs still run on it", node->name);
    }
    fence(core, node, NULL, by);
    drop(core, node);
    return true;
}

/* A node that no attempt names goes in the same step that says so, and nothing can be placed on it between
 * the answer and the end of its agent. */
static bool leave(struct core *core, struct node *node, const struct leave_message *message, struct err *err)
{
    if (!node_speaks(node, message->boot_id, message->agent_id)) {
        return err_field(err, ERR_NOT_FOUND, "node", "register again", "node %.64s is not registered",
                         node->name);
    }
    if (is_named(core, node)) {
        if (message->stop) {
            departure_leave(core, node);
            eviction_watch(core);
        }
        return true;
    }
    node_fire(core, node, NODE_EVENT_FENCE, record_text(core, "left: %s", message->reason));
    if (message->forget) {
        drop(core, node);
    }
    return true;
}

bool node_action_take(struct core *core, const struct input *input, struct err *err)
{
    struct node *node = node_find(core, input->node.name);
    if (node == NULL) {
        return err_field(err, ERR_NOT_FOUND, "name", "list the nodes", "no node is named %.64s",
                         input->node.name);
    }
    switch (input->node.action) {
    case NODE_ACTION_DRAIN:
        return drain(core, node, input->node.reason, input->node.by, err);
    case NODE_ACTION_RESUME:
        return resume(core, node, err);
    case NODE_ACTION_FENCE:
        fence(core, node, input->node.reason, input->node.by);
        return true;
    case NODE_ACTION_EXPIRE:
        return expire(core, node, input->node.expires_at_ms, err);
    case NODE_ACTION_REMOVE:
        return remove_node(core, node, input->node.force, input->node.by, err);
    case NODE_ACTION_FORGET:
        return forget(core, node, input->node.heard_ms, input->node.by, err);
    case NODE_ACTION_LEAVE:
        return leave(core, node, input->node.leave, err);
    }
    abort();
}
