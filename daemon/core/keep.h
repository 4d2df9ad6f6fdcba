/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept for jobs that wait, during one scheduling pass: everything that one could use, or what it
 * will get. The searches for their devices. */
#ifndef CORE_KEEP_H
#define CORE_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/fit.h"

struct core;
struct job;
struct queue_entry;

/* Nothing is kept. */
void kept_begin(struct kept *kept, const struct core *core);
void kept_end(struct kept *kept);

/* The search for a job's devices, on nodes that are as ready as that; kept may be NULL. */
struct search keep_search(const struct core *core, const struct job *job, enum view view,
                          const struct kept *kept, enum readiness readiness);
/* The same for a gang that is estimated to run so long, within the limits of the job's accounts. */
struct search keep_search_until(const struct core *core, const struct job *job, int64_t estimate_ms,
                                enum view view, const struct kept *kept, enum readiness readiness);

/* Keeps all that the job could use now, or could if running work ended. */
void keep_all(struct kept *kept, const struct core *core, const struct job *job);

/* Reserves this fit, which is as of capacity->free_then, for the job from then on. */
void keep_fit(struct kept *kept, const struct job *job, const struct fit *fit, int64_t at_ms, bool firm);
/* Reserves the earliest start of the job, in partitions that have no reservation yet. Returns when another
 * look is due because something should have ended by then; NEVER: no look is. */
int64_t keep_start(const struct core *core, const struct queue_entry *entry, struct kept *kept);
/* A gang gets its devices beside a reservation: what it will still hold then is spent. */
void keep_spend(const struct search *search, const struct fit *fit);

/* How long a gang of that search may run before a reservation where it could go; 0: there is no such gap. */
int64_t keep_gap_ms(const struct core *core, const struct search *search, const struct kept *kept);

#endif
