/* SPDX-License-Identifier: Apache-2.0 */
/* This node in front of its controller: carries out what reconciler.c decides. */
#ifndef AGENT_NODE_H
#define AGENT_NODE_H

#include "agent/attempt/attempt.h"

struct node;

/* Takes up the attempts that are in the folders of this agent, and sets context->heard and context->stagings.
 * ended is called when the controller has told the agent to end. NULL with an error where a folder cannot be
 * listed: an attempt that is overlooked would be started again while it lives. */
struct node *node_create(struct agent_context *context, void (*ended)(void *closure), void *closure,
                         struct err *err);
/* What lives, lives on. */
void node_destroy(struct node *node);

/* Registers, and from then on works. */
void node_start(struct node *node);

#endif
