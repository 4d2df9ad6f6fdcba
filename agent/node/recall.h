/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a controller that was restored from a backup which attempts this node has run since. */
#ifndef AGENT_RECALL_H
#define AGENT_RECALL_H

#include "agent/attempt/attempt.h"

struct recall;

struct recall *recall_create(struct agent_context *context);
/* Cancels a report that is under way. */
void recall_destroy(struct recall *recall);

/* To be called with every answer to a poll. If the controller was restored since the last report, sends all
 * attempts that began after the backup, page by page. */
void recall_hear(struct recall *recall, const struct poll_reply *reply);

#endif
