/* SPDX-License-Identifier: Apache-2.0 */
/* The newest events of all jobs, for streams that follow all of them. */
#ifndef HTTP_EVENT_RING_H
#define HTTP_EVENT_RING_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/store/store.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct event_ring;

struct event_ring *event_ring_create(void);
/* NULL is allowed. */
void event_ring_destroy(struct event_ring *ring);

/* Jobs have new events; those without any are left out. */
void event_ring_add(struct event_ring *ring, const struct job_touch *touched, size_t count);

/* Touches are numbered from 1: the oldest that is there, and the number that the next one gets. */
int64_t event_ring_oldest(const struct event_ring *ring);
int64_t event_ring_next(const struct event_ring *ring);

/* The events of a touch that is there, as JSON, one a line, each behind the name of its kind and a space.
 * They are read once, and borrowed until the next event_ring_add. *ret_owner is the owner of the job; NULL:
 * the job is gone. */
bool event_ring_read(struct event_ring *ring, int64_t number, struct reader *reader, const char **ret_owner,
                     const struct text **ret_lines, struct err *err);

#endif
