/* SPDX-License-Identifier: Apache-2.0 */
/* This node as its controller sees it: carries out the decisions of reconciler.c. */
#ifndef AGENT_NODE_H
#define AGENT_NODE_H

#include "agent/attempt/attempt.h"

struct node;

/* Adopts the attempts in the folders of this agent, and sets context->heard and context->stagings. ended is
 * called when the agent is to end, with the reason. NULL with an error if a folder cannot be listed: an
 * overlooked attempt would be started a second time while it lives. */
struct node *node_create(struct agent_context *context, void (*ended)(void *closure, const char *reason),
                         void *closure, struct err *err);
/* Attempts live on. */
void node_destroy(struct node *node);

/* Registers the node, and works from then on. */
void node_start(struct node *node);

#endif
