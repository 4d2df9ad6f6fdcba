/* SPDX-License-Identifier: Apache-2.0 */
/* Preemption: which running work gives way to a job that waits. */
#ifndef CORE_SCHEDULER_PREEMPT_H
#define CORE_SCHEDULER_PREEMPT_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

struct attempt;
struct core;
struct fit;
struct input;
struct search;
struct queue_entry;

/* Who is to give way; none when what is stopping already will do. */
struct victims {
    struct attempt **items; /* the least loss first; owned */
    size_t count;
};
void victims_finish(struct victims *victims);

/* Whether anything that runs might ever yield. */
bool preempt_possible(const struct core *core);

/* Finds the fewest that have to go for the job to fit, and where it will; the search's view is VIEW_FUTURE.
 * false: nobody yields to it, or not enough. The caller finishes both. */
bool preempt_choose(struct core *core, const struct queue_entry *entry, const struct search *search,
                    struct victims *ret_victims, struct fit *ret_fit);

/* The same if all that run with a lower priority, or later in the queue, had to yield. */
bool preempt_rehearse(struct core *core, const struct queue_entry *entry, const struct search *search,
                      struct victims *ret_victims, struct fit *ret_fit);

/* Stops them; they wait again at their old places. */
void preempt_stop(struct core *core, const struct queue_entry *entry, const struct victims *victims);

/* The input PREEMPT: somebody has one job give back its GPUs. */
bool preempt_take(struct core *core, const struct input *input, struct err *err);

#endif
