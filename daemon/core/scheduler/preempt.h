/* SPDX-License-Identifier: Apache-2.0 */
/* Preemption: the running work that gives way to a waiting job. */
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

/* The attempts to preempt; none if attempts that are stopping already suffice. */
struct victims {
    struct attempt **items; /* smallest loss first; owned */
    size_t count;
};
void victims_finish(struct victims *victims);

/* Whether any running work could ever be preempted. */
bool preempt_possible(const struct core *core);

/* Finds the fewest victims that let the job fit, and the fit; the search's view is VIEW_FUTURE. false: there
 * are too few victims. The caller finishes both. */
bool preempt_choose(struct core *core, const struct queue_entry *entry, const struct search *search,
                    struct victims *ret_victims, struct fit *ret_fit);

/* Like preempt_choose, if all running work with a lower priority or a later place in the queue could be
 * preempted. */
bool preempt_rehearse(struct core *core, const struct queue_entry *entry, const struct search *search,
                      struct victims *ret_victims, struct fit *ret_fit);

/* Stops the victims; their jobs wait again at their old places. */
void preempt_stop(struct core *core, const struct queue_entry *entry, const struct victims *victims);

/* The input PREEMPT: a person makes one job give back its GPUs. */
bool preempt_take(struct core *core, const struct input *input, struct err *err);

#endif
