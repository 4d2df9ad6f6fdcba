/* SPDX-License-Identifier: Apache-2.0 */
/* Registers nodes. A refused registration takes nothing from running work. An attempt is given up only on
 * evidence: a new boot of the same machine, or an agent that no longer knows the attempt. Another machine or
 * another agent under the same name is no evidence while the first may be alive. A delayed message is none
 * either: from a known node, only the answer to our newest nonce is accepted. */
#include "daemon/core/inputs/register.h"

#include <string.h>
#include <strings.h>

#include "daemon/core/fleet/departure.h"
#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/orders.h"
#include "daemon/core/fleet/pool.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/member.h"
#include "daemon/core/model/device.h"
#include "daemon/core/model/label.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/quota/account.h"
#include "proto/limits.h"
#include "proto/spec/node_label.h"

/* --- admission ------------------------------------------------------------------------------------------ */

static const char *pool_of(const struct register_message *message)
{
    if (message->pool != NULL) {
        return message->pool;
    }
    return message->reserved ? "reserved" : "default";
}

static enum pool_kind kind_of(const struct register_message *message)
{
    return message->reserved ? POOL_RESERVED : POOL_ON_DEMAND;
}

static const struct node_attempt *listed(const struct register_message *message, uint64_t attempt_id)
{
    for (size_t i = 0; i < message->attempt_count; i++) {
        if (message->attempts[i].attempt_id == attempt_id) {
            return &message->attempts[i];
        }
    }
    return NULL;
}

static bool lists_all(const struct register_message *message, const struct node *node)
{
    for (const struct member *member = node->members; member != NULL; member = member->next) {
        if (member_is_up(member) && listed(message, member->attempt->attempt_id) == NULL) {
            return false;
        }
    }
    return true;
}

static const char *agent_of(const struct register_message *message)
{
    return message->agent_id != NULL ? message->agent_id : "";
}

static bool elsewhere(const struct register_message *message, const struct node *node)
{
    return strcmp(node->host_id, message->host_id) != 0;
}

static bool same_boot(const struct register_message *message, const struct node *node)
{
    return strcmp(node->boot_id, message->boot_id) == 0;
}

/* Whether the message is from another agent than the registered one. The same state folder on the same boot
 * is the same agent, because the folder has a lock. After a reboot, and on a copy of the disk, the agent has
 * the same id. Agents without an id are trusted. */
static bool is_other(const struct register_message *message, const struct node *node)
{
    bool same_agent = strcmp(node->agent_id, agent_of(message)) == 0;
    return elsewhere(message, node) ||
           (node->agent_id[0] != '\0' && !(same_agent && same_boot(message, node)));
}

static const char *where(const struct register_message *message, const struct node *node)
{
    return elsewhere(message, node)   ? "on another host"
           : same_boot(message, node) ? "with another state folder on its host"
                                      : "on another boot of its host, or on a copy of it";
}

/* Whether the second agent knows the first one's work, or a reboot has ended that work. On the same boot, it
 * proves nothing that the second does not know the work. Another boot proves nothing either once both agents
 * were heard at the same time. */
static bool may_follow(const struct register_message *message, const struct node *node)
{
    bool both_lived = node->contested && strcmp(node->rival, agent_of(message)) == 0;
    return !elsewhere(message, node) &&
           (lists_all(message, node) || (!same_boot(message, node) && !both_lived));
}

/* Checks for two agents under one name: while the first is heard, or may hold work, the second must wait. */
static bool check_name(const struct register_message *message, struct node *node, struct err *err)
{
    if (node == NULL || node->state == NODE_LOST || !is_other(message, node)) {
        return true;
    }
    if (node->contact == CONTACT_FRESH) {
        replace_text(&node->rival, agent_of(message));
        return err_field(err, ERR_CONFLICT, "name", "give each agent its own --name, or stop the other",
                         "node %s is served by an agent at %.64s, which was heard just now; this one, at "
                         "%.64s, is %s",
                         node->name, node->address, message->address, where(message, node));
    }
    if (node->members != NULL && !may_follow(message, node)) {
        return err_field(
            err, ERR_CONFLICT, "name",
            "give this agent another --name, or if the other's jobs are dead: gpuctl nodes fence",
            "node %s was served by an agent at %.64s, whose jobs may still run; this one, at "
            "%.64s, is %s",
            node->name, node->address, message->address, where(message, node));
    }
    return true;
}

static bool check_pool(const struct core *core, const struct register_message *message,
                       const struct node *node, struct err *err)
{
    const char *pool = pool_of(message);
    enum pool_kind kind;
    bool known = pool_kind_of(core, pool, node, &kind);
    if (known && kind != kind_of(message)) {
        return err_field(err, ERR_CONFLICT, "pool", "name another pool, or register it the same way",
                         "pool %.64s is %s", pool, pool_kind_text(kind));
    }
    const char *isolation = json_string_value(json_object_get(message->labels, ISOLATION_LABEL));
    if (account_pool_isolated(core, pool) &&
        (isolation == NULL || strcmp(isolation, ISOLATION_BY_USERS) != 0)) {
        return err_field(err, ERR_CONFLICT, "pool",
                         "start the agent as root without --run-as agent, or name another pool",
                         "pool %.64s takes only nodes that run jobs as the users of their owners", pool);
    }
    if (!known && core->pool_count >= LIMIT_POOLS) {
        return err_field(err, ERR_FIELD, "pool", "name a pool that exists", "there are %d pools already",
                         LIMIT_POOLS);
    }
    return true;
}

static bool check_types(const struct core *core, const struct register_message *message, struct err *err)
{
    size_t count = core->type_count;
    for (size_t i = 0; i < message->device_count; i++) {
        const char *type = message->devices[i].type;
        bool known = pool_has_type(core, type);
        for (size_t j = 0; j < i && !known; j++) {
            known = strcasecmp(message->devices[j].type, type) == 0;
        }
        count += !known;
    }
    if (count > LIMIT_GPU_TYPES) {
        return err_field(err, ERR_FIELD, "devices", "use the names of types that exist",
                         "there would be more than %d GPU types", LIMIT_GPU_TYPES);
    }
    return true;
}

/* Sorted devices from the message; NULL with *err if two have the same index. */
static struct node_device *devices_of(const struct register_message *message, struct err *err)
{
    struct node_device *devices = xzalloc(message->device_count * sizeof *devices);
    for (size_t i = 0; i < message->device_count; i++) {
        const struct device *device = &message->devices[i];
        devices[i] = (struct node_device){
            .index = device->index,
            .uuid = xstrdup(device->uuid),
            .type = xstrdup(device->type),
            .memory_bytes = device->memory_bytes,
            .group = device->group,
        };
        const char *reason = node_fault(&message->faults, device->index);
        devices[i].unavailable = copy_or_null(reason);
    }
    if (!device_list_sort(devices, message->device_count)) {
        device_list_free(devices, message->device_count);
        err_field(err, ERR_FIELD, "devices", "count each device once, from 0",
                  "two devices have the same index");
        return NULL;
    }
    return devices;
}

/* --- accepting a node ----------------------------------------------------------------------------------- */

static void take_names(struct core *core, struct node *node, const struct register_message *message)
{
    replace_text(&node->boot_id, message->boot_id);
    replace_text(&node->agent_id, agent_of(message));
    row_free(&node->rival);
    node->contested = false;
    replace_text(&node->host_id, message->host_id);
    replace_text(&node->version, message->version);
    replace_text(&node->address, message->address);
    replace_text(&node->pool, pool_of(message));
    node->pool_kind = kind_of(message);
    node->isolation = message->isolation;
    node->slots = message->slots;
    node->millicpus = message->millicpus;
    node->memory_bytes = message->memory_bytes;
    labels_free(node->labels, node->label_count);
    node->labels = labels_copy(message->labels, &node->label_count);
    node->registered_ms = node->heard_ms = core->change_set.wall_ms;
}

/* Takes the new devices; holders keep the devices with the same index. */
static void take_devices(struct node *node, struct node_device *devices, size_t count)
{
    device_list_free(node->devices, node->device_count);
    node->devices = devices;
    node->device_count = count;
    for (struct member *member = node->members; member != NULL; member = member->next) {
        for (size_t i = 0; i < member->device_count; i++) {
            node_device(node, member->devices[i])->holder = member;
        }
    }
}

/* A member that was only ordered or prepared, and that an agent of the same boot does not know, keeps its
 * order: the next poll sends it again. */
static void take_evidence(struct core *core, const struct register_message *message, struct member *member,
                          bool rebooted)
{
    const struct node_attempt *known = listed(message, member->attempt->attempt_id);
    const char *name = member->node->name;
    if (known == NULL && rebooted) {
        attempt_lose(core, member, record_text(core, "node %s was rebooted", name));
    } else if (known == NULL && member->state == MEMBER_RUNNING) {
        attempt_lose(core, member,
                     record_text(core, "the agent of node %s no longer knows the attempt", name));
    } else if (known != NULL && known->state == MEMBER_RUNNING && attempt_has_started(member->attempt) &&
               member_fire(core, member, MEMBER_EVENT_RUN)) {
        attempt_note_running(core, member->attempt);
    }
}

static void take_in(struct core *core, struct node *node, const struct register_message *message,
                    struct node_device *devices)
{
    bool anew = node->state == NODE_LOST;
    bool rebooted = node->boot_id != NULL && strcmp(node->boot_id, message->boot_id) != 0;
    if (!anew) {
        pool_leave(core, node);
    }
    record_node(core, node);
    staging_forget_node(core, node); /* its agent is asked again */
    take_names(core, node, message);
    take_devices(node, devices, message->device_count);
    trace_line(core, "node %s registers %zu devices in pool %s%s", node->name, message->device_count,
               node->pool, rebooted ? ", rebooted" : "");
    node_fire(core, node, NODE_EVENT_REGISTER, NULL);
    pool_join(core, node);
    orders_word_spoken(core, node);
    departure_take_word(core, node, message->expires_at_ms, anew);
    staging_node_changed(core, node);
    struct member *member, *next;
    DL_FOREACH_SAFE (node->members, member, next) {
        take_evidence(core, message, member, rebooted); /* uses the time at which the node was last heard */
    }
    node_heard(core, node);
}

/* A message may be delayed or duplicated, from before an attempt began or even from an earlier boot. The
 * version of the node's orders has never had this value before, and changes after this answer. */
static bool is_answer(const struct register_message *message, const struct node *node)
{
    return node == NULL || !message->has_nonce || message->nonce == node->orders_version;
}

bool register_node(struct core *core, const struct input *input, struct err *err)
{
    const struct register_message *message = input->node_register;
    struct node *node = node_find(core, message->name);
    if (!check_name(message, node, err) || !check_pool(core, message, node, err) ||
        !check_types(core, message, err)) {
        return false;
    }
    if (!is_answer(message, node)) {
        core->change_set.response = record_text(core, "%llu", (unsigned long long)node->orders_version);
        return true;
    }
    struct node_device *devices = devices_of(message, err);
    if (devices == NULL) {
        return false;
    }
    if (node == NULL) {
        node = node_create(core, message->name);
    }
    take_in(core, node, message, devices);
    return true;
}
