/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: which waiting job gets which devices. Another scheduler would replace this file and queue.c. */
#ifndef CORE_SCHEDULER_PLACE_H
#define CORE_SCHEDULER_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/model/queue.h"
#include "daemon/core/scheduler/fit.h"

struct core;
struct job;

/* Visits the queue in order, or a part of it. */
struct walk {
    struct core *core;
    struct reservations *reservations;
    bool apply;                     /* carries out the moves */
    const struct queue_entry *from; /* the first entry; NULL: of all */
    int64_t most;                   /* work of the pass, at which it stops, after one entry at least */
    bool moved;                     /* there was a move, or an entry was renewed */
    struct queue_entry reached;     /* where it stopped, without its batch */
};
/* true: it came to the end of the queue. */
bool place_walk(struct walk *walk);

/* Whether a walk over the whole queue would have a move. */
bool place_would(struct core *core);

/* --- dry run for one job -------------------------------------------------------------------------------- */

enum move {
    MOVE_NONE,
    MOVE_PLACE,   /* the job gets these devices */
    MOVE_STAGE,   /* these nodes stage its environment */
    MOVE_AWAIT,   /* it will get these devices from attempts that are stopping already */
    MOVE_PREEMPT, /* it will get these devices when these victims have gone */
};

/* The state of a pass when it reaches a job. */
struct outlook {
    struct reservations reservations; /* of earlier jobs */
    bool reached;   /* false: it was skipped with others of its job class, or is behind an equal job */
    bool unsettled; /* the pass would act for an earlier job, so the state will change */
    enum move move; /* the action for this job, if it is reached */
};
/* Runs a pass up to the waiting job without any effect. */
void place_consider(struct core *core, const struct job *job, struct outlook *ret_outlook);
void outlook_finish(struct outlook *outlook);
/* Whether the question's own step would place the job. */
static inline bool outlook_starts_now(const struct outlook *outlook)
{
    return outlook->reached && !outlook->unsettled && outlook->move == MOVE_PLACE;
}

/* Runs a pass over the whole queue without any effect. The caller ends the reservations that it leaves. */
void place_reserve(struct core *core, struct reservations *ret_reservations);

/* The search that would place a job, with another view; reservations may be NULL. */
struct search place_search(struct core *core, const struct job *job, enum view view,
                           const struct reservations *reservations, enum readiness readiness);

/* How long a job of this resource request may run before a reservation in its way; 0: no gap. */
int64_t place_gap_ms(struct core *core, const struct job *job, const struct reservations *reservations);

/* Whether limits of its accounts keep the job from all devices that it could ever have, and which limit. */
struct account_limit;
bool place_is_limited(struct core *core, const struct job *job, struct account_limit *ret_limit);

/* Whether a waiting job reserves all devices that it could use. */
bool place_reserves_all(const struct core *core);

#endif
