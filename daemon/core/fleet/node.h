/* SPDX-License-Identifier: Apache-2.0 */
/* A node: whether it takes work, whether it is heard, and its devices. */
#ifndef CORE_FLEET_NODE_H
#define CORE_FLEET_NODE_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct device_faults;
struct member;
struct node;
struct node_device;

/* What happens to a node. */
enum node_event {
    NODE_EVENT_REGISTER,
    NODE_EVENT_DRAIN,
    NODE_EVENT_EMPTY,
    NODE_EVENT_RESUME,
    NODE_EVENT_FENCE,
};

/* A node that is LOST, in the list by name. */
struct node *node_create(struct core *core, const char *name);
void node_free(struct node *node);
/* Takes it out of the list. Attempts that have ended still name it, so it lives on beside. */
void node_remove(struct core *core, struct node *node);
/* One that was removed, for an attempt that has ended and names it. */
struct node *node_removed(struct core *core, const char *name);

/* Moves it along its table; reason may be NULL. false: no such edge. */
bool node_fire(struct core *core, struct node *node, enum node_event event, const char *reason);

/* What says this is the agent with which the node is registered; node may be NULL, agent_id too: of an agent
 * that does not say. */
bool node_speaks(const struct node *node, const char *boot_id, const char *agent_id);

/* It takes new work, unless it is on hold. */
bool node_works(const struct node *node);

/* When it goes away next, because it expires or a window begins; NEVER: not as far as is known. */
int64_t node_leaves_ms(const struct core *core, const struct node *node);

/* It was heard now. */
void node_heard(struct core *core, struct node *node);
/* It missed its heartbeats. */
void node_silent(struct core *core, struct node *node);
/* When it will count as silent. */
int64_t node_silent_ms(const struct core *core, const struct node *node);

/* It gets no work for a while, longer each time in a row. */
void node_hold(struct core *core, struct node *node);

/* The device with this index, which a member of the node holds. */
struct node_device *node_held_device(const struct node *node, int64_t index);
/* The device with this index; one that the node no longer has is added as retired. */
struct node_device *node_device(struct node *node, int64_t index);
/* Why a device cannot be had; NULL: it is not among the faults. */
const char *node_fault(const struct device_faults *faults, int64_t index);
/* How many of a member's devices can be had once it gives them back. */
int64_t node_member_returns(const struct member *member);
/* What the agent says of all its devices; nothing where it does not. */
void node_take_faults(struct core *core, struct node *node, const struct device_faults *faults);
/* The member gives back its devices and leaves the node. */
void node_release(struct core *core, struct member *member);

#endif
