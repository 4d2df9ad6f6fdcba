/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: the devices of all nodes by pool and type, and how many are free. */
#ifndef CORE_FLEET_POOL_H
#define CORE_FLEET_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/states.h"

struct core;
struct partition;
struct member;
struct node;
struct node_device;
struct capacity;
struct text;

/* Offers the devices of a node that is not LOST, and withdraws the offer. */
void pool_join(struct core *core, struct node *node);
void pool_leave(struct core *core, struct node *node);

/* A member takes its CPUs, its memory, and a place for a rank without GPU if it has no device; and gives them
 * back. */
void pool_take_amount(struct core *core, const struct member *member);
void pool_give_back_amount(struct core *core, const struct member *member);

/* The node's capacity for ranks without GPU; NULL: none. */
struct capacity *pool_gpuless_capacity(const struct node *node);

/* A free device goes to a holder, and becomes free again. */
void pool_take(struct core *core, struct node_device *device, struct member *holder);
void pool_give_back(struct core *core, struct node_device *device);

/* Marks a device as unavailable for a reason, which is copied; NULL: available again. Its holder keeps it. */
void pool_set_unavailable(struct core *core, struct node_device *device, const char *reason);

/* The kind of a pool, as set by nodes other than `except` (may be NULL); false if there is no such pool. */
bool pool_kind_of(const struct core *core, const char *pool, const struct node *except,
                  enum pool_kind *ret_kind);
/* Aborts unless core->pool_count and core->type_count are right. */
void pool_check(const struct core *core);
/* Whether a node has the type. */
bool pool_has_type(const struct core *core, const char *type);
/* Whether the type is among alternatives such as "H100|A100"; *ret_rank is how many of these are preferred to
 * it. */
bool pool_type_matches(const char *alternatives, const char *type, size_t *ret_rank);

/* Appends "a, b, c": the names of all pools or types. */
void pool_list_names(const struct core *core, struct text *out);
void pool_list_types(const struct core *core, struct text *out);
/* The registered type with the nearest spelling; NULL: none is near. */
const char *pool_nearest_type(const struct core *core, const char *type);

/* The node's capacity in the partition; NULL: it is not in it. */
struct capacity *pool_capacity(const struct partition *partition, const struct node *node);

/* Whether the node has a loopback address, which ranks on other hosts cannot reach. */
bool pool_is_loopback(const struct node *node);

#endif
