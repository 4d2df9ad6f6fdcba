/* SPDX-License-Identifier: Apache-2.0 */
/* Telling a controller that was put back from a backup what this node has run since. */
#ifndef AGENT_RECALL_H
#define AGENT_RECALL_H

#include "agent/attempt/attempt.h"

struct recall;

struct recall *recall_create(struct agent_context *context);
/* Ends what is under way. */
void recall_destroy(struct recall *recall);

/* Every answer to a poll. Where the controller was put back since it was told last, all attempts that began
 * after the backup are told, page by page. */
void recall_hear(struct recall *recall, const struct poll_reply *reply);

#endif
