/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: which waiting job gets which devices. Another policy would replace this file and queue.c. */
#ifndef CORE_SCHEDULER_PLACE_H
#define CORE_SCHEDULER_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/scheduler/fit.h"

struct core;
struct partition;
struct job;
struct job_class;
struct resource_request;

/* Places every job that is at the front and fits: the one scheduling function. */
void place_pass(struct core *core);

/* Whether place_pass would place something. */
bool place_would(struct core *core);

/* --- what it would do for one job ----------------------------------------------------------------------- */

enum move {
    MOVE_NONE,
    MOVE_PLACE,   /* the job gets these devices */
    MOVE_STAGE,   /* these nodes are to get ready for it */
    MOVE_AWAIT,   /* it will get these devices from what is stopping already */
    MOVE_PREEMPT, /* or when these victims have gone */
};

/* How things stand for a job when its turn comes. */
struct outlook {
    struct reservations reservations; /* for earlier jobs */
    bool reached;   /* false: it was skipped with others of its job class, or stands behind one like it */
    bool unsettled; /* something would be done for an earlier job, so this is not how it will be */
    enum move move; /* what would be done for this one, once it is reached */
};
/* Looks around up to the job, which waits, and does nothing. */
void place_consider(struct core *core, const struct job *job, struct outlook *ret_outlook);
void outlook_finish(struct outlook *outlook);

/* The search by which a job would be placed, with another view; reservations may be NULL. */
struct search place_search(struct core *core, const struct job *job, enum view view,
                           const struct reservations *reservations, enum readiness readiness);

/* How long a job of this resource request may run before a reservation where it could go; 0: there is no such
 * gap. */
int64_t place_gap_ms(struct core *core, const struct job *job, const struct reservations *reservations);

/* Whether limits of its accounts keep the job from all that it could ever have; by which. */
struct account_limit;
bool place_is_limited(struct core *core, const struct job *job, struct account_limit *ret_limit);

/* Whether a job that waits keeps all that it could use from the jobs behind it. */
bool place_reserves_all(const struct core *core);

/* The largest gang that the registered nodes, busy or not, could ever hold for such a resource request;
 * *ret_partition, unless NULL, is where, NULL for 0. */
int64_t place_largest(struct core *core, const struct resource_request *request,
                      const struct partition **ret_partition);

/* The same number for a job class, remembered until the registry changes. */
int64_t place_job_class_largest(struct core *core, struct job_class *job_class);

#endif
