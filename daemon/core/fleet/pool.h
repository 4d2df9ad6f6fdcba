/* SPDX-License-Identifier: Apache-2.0 */
/* What is registered: the devices of all nodes by pool and type, and how many are free. */
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

/* Offers the devices of a node that is not LOST, and takes the offer back. */
void pool_join(struct core *core, struct node *node);
void pool_leave(struct core *core, struct node *node);

/* A device changes hands: free to holder, and back. */
void pool_take(struct core *core, struct node_device *device, struct member *holder);
void pool_give_back(struct core *core, struct node_device *device);

/* A device cannot be had, for a reason, which is copied; NULL: it can again. Whoever holds it keeps it. */
void pool_set_unavailable(struct core *core, struct node_device *device, const char *reason);

/* The kind of a pool as nodes other than this one made it; false when there is no such pool. except may be
 * NULL. */
bool pool_kind_of(const struct core *core, const char *pool, const struct node *except,
                  enum pool_kind *ret_kind);
/* How many pools and types there are. */
size_t pool_count(const struct core *core);
size_t pool_type_count(const struct core *core);
bool pool_has_type(const struct core *core, const char *type);
/* Whether the type is among alternatives such as "H100|A100", and how many of these are preferred to it. */
bool pool_type_matches(const char *alternatives, const char *type, size_t *ret_rank);

/* Appends "a, b, c": the names of all pools or types. */
void pool_list_names(const struct core *core, struct text *out);
void pool_list_types(const struct core *core, struct text *out);
/* The registered type that may have been meant; NULL: none is like it. */
const char *pool_nearest_type(const struct core *core, const char *type);

/* The node's devices in a partition that it is in. */
struct capacity *pool_capacity(const struct partition *partition, const struct node *node);

/* Whether ranks on other hosts cannot reach the node. */
bool pool_is_loopback(const struct node *node);

#endif
