/* SPDX-License-Identifier: Apache-2.0 */
/* The streams into the attempts of this node: commands beside ranks, and connections to their ports. */
#ifndef AGENT_STREAMS_H
#define AGENT_STREAMS_H

#include <stdint.h>

#include "agent/attempt/attempt.h"
#include "proto/wire/messages.h"

struct streams;

/* find returns the attempt of this id, or NULL. */
struct streams *streams_create(struct agent_context *context,
                               struct attempt *(*find)(void *closure, uint64_t attempt_id), void *closure);
/* Ends all; NULL has no effect. */
void streams_destroy(struct streams *streams);

/* Joins the stream, and opens its end in the attempt. Where that is impossible the client is told why. */
void streams_join(struct streams *streams, const struct stream_order *order);
/* No process of the attempt is left. */
void streams_attempt_over(struct streams *streams, uint64_t attempt_id);

#endif
