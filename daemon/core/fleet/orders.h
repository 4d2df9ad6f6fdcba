/* SPDX-License-Identifier: Apache-2.0 */
/* Orders: what each node should do, derived from the state of its members. */
#ifndef CORE_FLEET_ORDERS_H
#define CORE_FLEET_ORDERS_H

struct core;
struct member;
struct node;

/* The member's order is another than before. */
void orders_changed(struct core *core, struct member *member);
/* The member is no longer among those that its node should hold. */
void orders_dropped(struct core *core, struct member *member);
/* The node has answered our last word: the version that it repeated is no answer again. */
void orders_word_spoken(struct core *core, struct node *node);
/* What the node is to get ready is another than before. */
void orders_staging_changed(struct core *core, struct node *node);

#endif
