/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: whether they take work, whether they send heartbeats, and their devices. */
#ifndef CORE_FLEET_NODE_H
#define CORE_FLEET_NODE_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct device_faults;
struct member;
struct node;
struct node_device;

/* The events of a node. */
enum node_event {
    NODE_EVENT_REGISTER,
    NODE_EVENT_DRAIN,
    NODE_EVENT_EMPTY,
    NODE_EVENT_RESUME,
    NODE_EVENT_FENCE,
};

/* A new node in LOST, in the list by name. */
struct node *node_create(struct core *core, const char *name);
void node_free(struct node *node);
/* Removes the node from the list. Ended attempts still name it, so its memory is kept. */
void node_remove(struct core *core, struct node *node);
/* A removed node, kept for ended attempts that name it. */
struct node *node_removed(struct core *core, const char *name);

/* Moves the node along its table; reason may be NULL. false: the table has no such transition. */
bool node_fire(struct core *core, struct node *node, enum node_event event, const char *reason);

/* Whether a message comes from the agent with which the node is registered. node may be NULL; agent_id NULL:
 * the agent does not say. */
bool node_speaks(const struct node *node, const char *boot_id, const char *agent_id);

/* Whether the node takes new work, unless it is on hold. */
bool node_works(const struct node *node);

/* When the node goes away next, because it expires or a window begins; NEVER: no such time is known. */
int64_t node_leaves_ms(const struct core *core, const struct node *node);

/* Notes a message from the node now. */
void node_heard(struct core *core, struct node *node);
/* Notes that the node missed its heartbeats. */
void node_silent(struct core *core, struct node *node);
/* When the node will count as silent. */
int64_t node_silent_ms(const struct core *core, const struct node *node);

/* Gives the node no work for a while, longer each time in a row. */
void node_hold(struct core *core, struct node *node);

/* The device with this index, which a member of the node holds. */
struct node_device *node_held_device(const struct node *node, int64_t index);
/* The device with this index; one that the node no longer has is added as retired. */
struct node_device *node_device(struct node *node, int64_t index);
/* Why a device is unavailable; NULL: it is not among the faults. */
const char *node_fault(const struct device_faults *faults, int64_t index);
/* The capacity that the member holds a part of; NULL: it is not offered. */
const struct capacity *node_member_capacity(const struct member *member);
/* How many of a member's devices will be available after it gives them back; 1 for a rank without GPU. */
int64_t node_member_returns(const struct member *member);
/* Takes the agent's report on all its devices; does nothing if there is none. */
void node_take_faults(struct core *core, struct node *node, const struct device_faults *faults);
/* The member gives back its devices and leaves the node. */
void node_release(struct core *core, struct member *member);

#endif
