/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the state of each node (a table), its contact (heartbeats), its holds and its devices. LOST nodes
 * offer nothing. A draining node becomes DRAINED by itself. register.c adds nodes, departure.c decides when
 * they go away, node_action.c carries out what operators ask, and tick.c decides what silence means for
 * attempts. */
#include "daemon/core/fleet/node.h"

#include <string.h>

#include "daemon/core/fleet/locality.h"
#include "daemon/core/fleet/pool.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/model/device.h"
#include "daemon/core/model/label.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/rule.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "proto/limits.h"

/* --- the list ------------------------------------------------------------------------------------------- */

static void list_by_name(struct core *core, struct node *node)
{
    XGROW(core->nodes, core->node_count, core->node_room, 16);
    size_t at = core->node_count++;
    while (at > 0 && strcmp(core->nodes[at - 1]->name, node->name) > 0) {
        core->nodes[at] = core->nodes[at - 1];
        core->nodes[at]->index = at;
        at--;
    }
    core->nodes[at] = node;
    node->index = at;
}

struct node *node_create(struct core *core, const char *name)
{
    struct node *node = xzalloc(sizeof *node);
    node->name = xstrdup(name);
    node->state = NODE_LOST;
    node->leaves_ms = NEVER;
    node->stops_ms = NEVER;
    node->orders_version = (uint64_t)core->config.incarnation << 32;
    core->node_counts[NODE_LOST]++;
    list_by_name(core, node);
    HASH_ADD_KEYPTR(hh, core->nodes_by_name, node->name, strlen(node->name), node);
    return node;
}

void node_remove(struct core *core, struct node *node)
{
    core->departing_count -= node->leaves_ms != NEVER;
    HASH_DEL(core->nodes_by_name, node);
    core->node_counts[node->state]--;
    core->node_count--;
    for (size_t i = node->index; i < core->node_count; i++) {
        core->nodes[i] = core->nodes[i + 1];
        core->nodes[i]->index = i;
    }
    core->registry++;
    node->next_removed = core->removed;
    core->removed = node;
}

struct node *node_removed(struct core *core, const char *name)
{
    struct node *node = core->removed;
    while (node != NULL && strcmp(node->name, name) != 0) {
        node = node->next_removed;
    }
    if (node == NULL) {
        node = xzalloc(sizeof *node);
        node->name = xstrdup(name);
        node->state = NODE_LOST;
        node->next_removed = core->removed;
        core->removed = node;
    }
    return node;
}

void node_free(struct node *node)
{
    assert(node->capacities == NULL);
    device_list_free(node->devices, node->device_count);
    labels_free(node->labels, node->label_count);
    NODE_OWN_ROW(ROW_FREE, *node)
    row_free(&node->rival);
    free(node->name);
    free(node);
}

/* --- states --------------------------------------------------------------------------------------------- */

static void come(struct core *core, struct node *node)
{
    core->known_count++;
    staging_node_changed(core, node);
}

static void drain(struct core *core, struct node *node)
{
    staging_node_changed(core, node); /* jobs that waited for this node no longer hold up others */
    if (node->members == NULL) {
        node_fire(core, node, NODE_EVENT_EMPTY, node->reason);
    }
}

static void resume(struct core *core, struct node *node)
{
    staging_node_changed(core, node);
}

static void go(struct core *core, struct node *node)
{
    core->known_count--;
    core->silent_count -= node->contact == CONTACT_SILENT;
    node->contact = CONTACT_FRESH;
    node->hold_until_ms = 0;
    node->declines = 0;
    staging_forget_node(core, node);
    locality_forget_node(core, node);
    pool_leave(core, node);
    staging_node_changed(core, node);
}

static const struct node_rule {
    enum node_state from;
    enum node_event event;
    enum node_state to;
    void (*effect)(struct core *core, struct node *node); /* or NULL */
} rules[] = {
    {NODE_LOST, NODE_EVENT_REGISTER, NODE_READY, come},
    {NODE_READY, NODE_EVENT_DRAIN, NODE_DRAINING, drain},
    {NODE_DRAINING, NODE_EVENT_EMPTY, NODE_DRAINED, NULL},
    {NODE_DRAINING, NODE_EVENT_RESUME, NODE_READY, resume},
    {NODE_DRAINED, NODE_EVENT_RESUME, NODE_READY, resume},
    {NODE_READY, NODE_EVENT_FENCE, NODE_LOST, go},
    {NODE_DRAINING, NODE_EVENT_FENCE, NODE_LOST, go},
    {NODE_DRAINED, NODE_EVENT_FENCE, NODE_LOST, go},
};

DEFINE_RULE_OF(node)

bool node_fire(struct core *core, struct node *node, enum node_event event, const char *reason)
{
    const struct node_rule *rule = rule_of(node->state, event);
    if (rule == NULL) {
        return false;
    }
    trace_line(core, "node %s %s -> %s", node->name, node_state_text(rule->from), node_state_text(rule->to));
    core->node_counts[node->state]--;
    node->state = rule->to;
    core->node_counts[node->state]++;
    replace_text(&node->reason, reason);
    record_node(core, node);
    if (rule->effect != NULL) {
        rule->effect(core, node);
    }
    return true;
}

bool node_speaks(const struct node *node, const char *boot_id, const char *agent_id)
{
    return node != NULL && node->state != NODE_LOST && strcmp(node->boot_id, boot_id) == 0 &&
           (agent_id == NULL || node->agent_id[0] == '\0' || strcmp(node->agent_id, agent_id) == 0);
}

bool node_works(const struct node *node)
{
    return node->state == NODE_READY && node->contact == CONTACT_FRESH && !node->away;
}

int64_t node_leaves_ms(const struct core *core, const struct node *node)
{
    return node->leaves_ms;
}

/* --- contact -------------------------------------------------------------------------------------------- */

int64_t node_silent_ms(const struct core *core, const struct node *node)
{
    return node->heartbeat_ms + HEARTBEATS_MISSED * core->config.heartbeat_ms;
}

void node_heard(struct core *core, struct node *node)
{
    node->heartbeat_ms = core->now_ms;
    deadline_note(core, node_silent_ms(core, node));
    if (node->contact == CONTACT_SILENT) {
        trace_line(core, "node %s is heard again", node->name);
        node->contact = CONTACT_FRESH;
        core->silent_count--;
        staging_node_changed(core, node);
    }
}

void node_silent(struct core *core, struct node *node)
{
    assert(node->contact == CONTACT_FRESH && node->state != NODE_LOST);
    trace_line(core, "node %s is silent", node->name);
    node->contact = CONTACT_SILENT;
    core->silent_count++;
    staging_node_changed(core, node); /* jobs that waited for this node no longer hold up others */
}

void node_hold(struct core *core, struct node *node)
{
    int64_t hold_ms = DECLINE_HOLD_MS;
    for (int64_t i = 0; i < node->declines && hold_ms < DECLINE_HOLD_MAX_MS; i++) {
        hold_ms *= 2;
    }
    hold_ms = hold_ms < DECLINE_HOLD_MAX_MS ? hold_ms : DECLINE_HOLD_MAX_MS;
    node->declines++;
    node->hold_until_ms = core->now_ms + hold_ms;
    deadline_note(core, node->hold_until_ms);
    core->place_wanted = true; /* a job that was to run here needs another node */
    trace_line(core, "node %s gets no work for %lld ms", node->name, (long long)hold_ms);
}

/* --- devices -------------------------------------------------------------------------------------------- */

struct node_device *node_held_device(const struct node *node, int64_t index)
{
    size_t at = 0;
    assert(at < node->device_count);
    while (node->devices[at].index < index) {
        at++;
        assert(at < node->device_count);
    }
    assert(node->devices[at].index == index);
    return &node->devices[at];
}

struct node_device *node_device(struct node *node, int64_t index)
{
    size_t at = 0;
    while (at < node->device_count && node->devices[at].index < index) {
        at++;
    }
    if (at < node->device_count && node->devices[at].index == index) {
        return &node->devices[at];
    }
    node->devices = xrealloc(node->devices, (node->device_count + 1) * sizeof *node->devices);
    memmove(&node->devices[at + 1], &node->devices[at], (node->device_count - at) * sizeof *node->devices);
    node->device_count++;
    node->devices[at] = (struct node_device){.index = index,
                                             .uuid = xstrdup(""),
                                             .type = xstrdup(""),
                                             .group = -1,
                                             .holder = NULL,
                                             .retired = true};
    return &node->devices[at];
}

static void drop_retired(struct node *node, int64_t index)
{
    struct node_device *device = node_held_device(node, index);
    if (device->retired) {
        free(device->uuid);
        free(device->type);
        row_free(&device->unavailable);
        size_t at = (size_t)(device - node->devices);
        node->device_count--;
        memmove(device, device + 1, (node->device_count - at) * sizeof *device);
    }
}

const char *node_fault(const struct device_faults *faults, int64_t index)
{
    for (size_t i = 0; i < faults->count; i++) {
        if (faults->items[i].index == index) {
            return faults->items[i].reason;
        }
    }
    return NULL;
}

const struct capacity *node_member_capacity(const struct member *member)
{
    return member->device_count > 0 ? node_held_device(member->node, member->devices[0])->capacity
                                    : pool_gpuless_capacity(member->node);
}

int64_t node_member_returns(const struct member *member)
{
    int64_t count = member->device_count == 0;
    for (size_t i = 0; i < member->device_count; i++) {
        count += node_held_device(member->node, member->devices[i])->unavailable == NULL;
    }
    return count;
}

static bool equal_texts(const char *left, const char *right)
{
    return left == right || (left != NULL && right != NULL && strcmp(left, right) == 0);
}

void node_take_faults(struct core *core, struct node *node, const struct device_faults *faults)
{
    bool changed = false;
    for (size_t i = 0; i < node->device_count && faults->told; i++) {
        struct node_device *device = &node->devices[i];
        const char *reason = node_fault(faults, device->index);
        if (equal_texts(device->unavailable, reason)) {
            continue;
        }
        trace_line(core, "device %lld of node %s is %s%s", (long long)device->index, node->name,
                   reason != NULL ? "unavailable: " : "available", reason != NULL ? reason : "");
        pool_set_unavailable(core, device, reason);
        changed = true;
    }
    if (changed) {
        record_node(core, node);
        staging_node_changed(core, node);
    }
}

void node_release(struct core *core, struct member *member)
{
    struct node *node = member->node;
    for (size_t i = 0; i < member->device_count; i++) {
        struct node_device *device = node_held_device(node, member->devices[i]);
        assert(device->holder == member);
        pool_give_back(core, device);
        drop_retired(node, member->devices[i]);
    }
    pool_give_back_amount(core, member);
    pass_hold_back(core, node);
    DL_DELETE(node->members, member);
    if (node->members == NULL) {
        node_fire(core, node, NODE_EVENT_EMPTY, node->reason);
    }
}
