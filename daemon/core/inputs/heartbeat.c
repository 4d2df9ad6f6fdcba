/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the heartbeats of nodes. A heartbeat of an agent that is not registered is refused. The answer names
 * each attempt that the node should not have. tick.c decides about silent nodes. */
#include "daemon/core/inputs/heartbeat.h"

#include "daemon/core/fleet/node.h"
#include "daemon/core/lifecycle/idle.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "proto/limits.h"

bool heartbeat_take(struct core *core, const struct input *input, struct err *err)
{
    const struct heartbeat_message *heartbeat = input->heartbeat;
    struct node *node = node_find(core, heartbeat->node);
    if (!node_speaks(node, heartbeat->boot_id, heartbeat->agent_id)) {
        return err_field(err, ERR_NOT_FOUND, "node", "register again", "node %.64s is not registered",
                         heartbeat->node);
    }
    node_heard(core, node);
    if (input->wall_ms < node->heard_ms || input->wall_ms - node->heard_ms >= NODE_HEARD_MS) {
        node->heard_ms = input->wall_ms;
        record_node(core, node);
    }
    node->contested = node->rival != NULL;
    node_take_faults(core, node, &heartbeat->faults);
    for (size_t i = 0; i < heartbeat->attempt_count; i++) {
        struct member *member = member_on(node, heartbeat->attempts[i].attempt_id);
        if (member == NULL || !member_is_listed(member)) {
            record_fenced(core, heartbeat->attempts[i].attempt_id, heartbeat->attempt_count);
        } else {
            idle_heard(core, member, heartbeat->attempts[i].idle_ms);
        }
    }
    return true;
}
