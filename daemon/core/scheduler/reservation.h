/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations for waiting jobs during one scheduling pass: of all devices that a job could use, or of the
 * devices that it will get. Also the searches for their devices. */
#ifndef CORE_SCHEDULER_RESERVATION_H
#define CORE_SCHEDULER_RESERVATION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/scheduler/fit.h"

struct core;
struct job;
struct queue_entry;

/* reservations_begin starts without reservations. */
void reservations_begin(struct reservations *reservations, const struct core *core);
/* The jobs that made them may go. */
void reservations_forget_jobs(struct reservations *reservations, const struct core *core);
void reservations_end(struct reservations *reservations);

/* The search for a job's devices, on nodes of at least this readiness; reservations may be NULL. */
struct search reservation_search(struct core *core, const struct job *job, enum view view,
                                 const struct reservations *reservations, enum readiness readiness);
/* The search for a gang with this estimated run time, within the limits of the job's accounts. */
struct search reservation_search_until(struct core *core, const struct job *job, int64_t estimate_ms,
                                       enum view view, const struct reservations *reservations,
                                       enum readiness readiness);

/* Reserves all devices that the job could use now, or could use if running work ended. */
void reserve_all(struct reservations *reservations, struct core *core, const struct job *job);

/* Reserves this fit, as of capacity->free_then, for the job from at_ms on. */
void reserve_fit(struct reservations *reservations, const struct job *job, const struct fit *fit,
                 int64_t at_ms, bool firm);
/* Reserves the earliest start of the job, in partitions without a reservation. Returns when another look is
 * due because an attempt should have ended by then; NEVER: none. */
int64_t reserve_start(struct core *core, const struct queue_entry *entry, struct reservations *reservations);
/* A gang gets devices beside a reservation: reduces the spare devices by those that it will still hold
 * then. */
void reservation_spend(const struct search *search, const struct fit *fit);

/* How long a gang of that search may run before a reservation in its way; 0: no gap. */
int64_t reservation_gap_ms(const struct core *core, const struct search *search,
                           const struct reservations *reservations);

#endif
