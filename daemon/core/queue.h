/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: jobs that wait, in lanes of equal wishes; first in, first out over all lanes. */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

#include <stdint.h>

struct core;
struct core_need;
struct job;
struct lane;
struct wish;

/* The lane of a wish, NULL when no live job has it. */
struct lane *queue_find(const struct core *core, const struct wish *wish);

/* A live job belongs to the lane of its wish for all its life; the lane ends with its last job. need is what
 * the wish names; NULL where it names nothing. */
void queue_join(struct core *core, struct job *job, const struct wish *wish, const struct core_need *need);
void queue_leave(struct core *core, struct job *job);

/* The job waits, at the place that its key gives it; and no longer. */
void queue_put(struct core *core, struct job *job);
void queue_take(struct core *core, struct job *job);

/* The lane with the smallest first key above this one, NULL when there is none. */
struct lane *queue_after(const struct core *core, int64_t key);

#endif
