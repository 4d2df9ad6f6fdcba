/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the versions of orders. Every change of a node's orders raises the node's version, and marks the
 * node for the end of the step. desired_state.c derives the orders themselves. */
#include "daemon/core/fleet/orders.h"

#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"

static void raise_version(struct core *core, struct node *node)
{
    node->orders_version++;
    assert(node->orders_version >> 32 == core->config.incarnation);
    record_dirty(core, node);
}

void orders_changed(struct core *core, struct member *member)
{
    raise_version(core, member->node);
    member->version = member->node->orders_version;
}

void orders_dropped(struct core *core, struct member *member)
{
    raise_version(core, member->node);
}

void orders_word_spoken(struct core *core, struct node *node)
{
    raise_version(core, node);
}

void orders_staging_changed(struct core *core, struct node *node)
{
    raise_version(core, node);
}
