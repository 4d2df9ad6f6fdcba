/* SPDX-License-Identifier: Apache-2.0 */
/* What is reserved for waiting jobs, during one scheduling pass: everything that one could use, or what it
 * will get. The searches for their devices. */
#ifndef CORE_SCHEDULER_RESERVATION_H
#define CORE_SCHEDULER_RESERVATION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/scheduler/fit.h"

struct core;
struct job;
struct queue_entry;

/* Nothing is reserved. */
void reservations_begin(struct reservations *reservations, const struct core *core);
void reservations_end(struct reservations *reservations);

/* The search for a job's devices, on nodes that are as ready as that; reservations may be NULL. */
struct search reservation_search(struct core *core, const struct job *job, enum view view,
                                 const struct reservations *reservations, enum readiness readiness);
/* The same for a gang that is estimated to run so long, within the limits of the job's accounts. */
struct search reservation_search_until(struct core *core, const struct job *job, int64_t estimate_ms,
                                       enum view view, const struct reservations *reservations,
                                       enum readiness readiness);

/* Reserves all that the job could use now, or could if running work ended. */
void reserve_all(struct reservations *reservations, struct core *core, const struct job *job);

/* Reserves this fit, which is as of capacity->free_then, for the job from then on. */
void reserve_fit(struct reservations *reservations, const struct job *job, const struct fit *fit,
                 int64_t at_ms, bool firm);
/* Reserves the earliest start of the job, in partitions that have no reservation yet. Returns when another
 * look is due because something should have ended by then; NEVER: no look is. */
int64_t reserve_start(struct core *core, const struct queue_entry *entry, struct reservations *reservations);
/* A gang gets its devices beside a reservation: what it will still hold then is spent. */
void reservation_spend(const struct search *search, const struct fit *fit);

/* How long a gang of that search may run before a reservation where it could go; 0: there is no such gap. */
int64_t reservation_gap_ms(const struct core *core, const struct search *search,
                           const struct reservations *reservations);

#endif
