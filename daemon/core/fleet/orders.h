/* SPDX-License-Identifier: Apache-2.0 */
/* Orders: the desired state of each node, derived from its members. */
#ifndef CORE_FLEET_ORDERS_H
#define CORE_FLEET_ORDERS_H

struct core;
struct member;
struct node;

/* Notes that the member's order has changed. */
void orders_changed(struct core *core, struct member *member);
/* Notes that the node should no longer hold the member. */
void orders_dropped(struct core *core, struct member *member);
/* Raises the version of the node's orders after the node has repeated it as a nonce, so that the nonce is
 * accepted only once. */
void orders_word_spoken(struct core *core, struct node *node);
/* Notes that the environments which the node must stage have changed. */
void orders_staging_changed(struct core *core, struct node *node);

#endif
