/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: walks over the waiting jobs in queue order. */
#ifndef CORE_QUEUE_TURN_H
#define CORE_QUEUE_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/model/queue.h"

struct core;
struct job;

/* The entries of a job class have changed, or only their places in memory. */
void turn_entries_changed(struct core *core, struct job_class *job_class);
void turn_entries_sorted(struct core *core, struct job_class *job_class);

/* Recalculates old queue entries, because estimates and shares change with time. */
void turn_refresh(struct core *core);

/* --- a turn --------------------------------------------------------------------------------------------- */

/* Begins a turn. During it jobs may leave the queue, but none may enter it. Unless all is true, settled job
 * classes are skipped once their family is closed. from: goes on with the turn of core->pass, from this queue
 * entry on; NULL: a new turn. */
void turn_open(struct core *core, bool all, const struct queue_entry *from);

/* The first queue entry that was not skipped; NULL: none. Valid until a job leaves the queue. */
struct queue_entry *turn_next(struct core *core);

/* No device is free, and none of those that have not come could do without. */
bool turn_is_spent(const struct core *core);

/* From now on settled job classes that are ready on a node with free devices come even if their family is
 * closed. */
void turn_add_ready(struct core *core);

/* Recalculates a queue entry that may be outdated; true: it has changed, and another entry may be first. */
bool turn_renew(struct core *core, struct queue_entry *entry);

/* Skips for the rest of this turn: the whole job class; jobs of it that will run longer than this; one
 * batch. */
void turn_close(struct core *core, struct job_class *job_class);
void turn_narrow(struct core *core, struct job_class *job_class, int64_t longest_ms);
void turn_skip(struct core *core, struct queue_entry *entry);
/* Skips all jobs of the job class that have this job's project and owner. */
void turn_skip_owner(struct core *core, struct job_class *job_class, const struct job *job);

/* Notes that jobs of the family which last as long as this fit on no free devices, even if all nodes were
 * ready for them; whether that is known of a job, and of all. limit_ms is the time limit, NEVER without. */
void turn_note_hopeless(const struct core *core, struct job_family *family, int64_t estimate_ms,
                        int64_t limit_ms);
bool turn_is_hopeless(const struct core *core, struct job_family *family, int64_t estimate_ms,
                      int64_t limit_ms);
bool turn_all_hopeless(const struct core *core, struct job_family *family);
/* Skips the jobs of the job class of which that is known. */
void turn_skip_hopeless(struct core *core, struct job_class *job_class);
/* Skips all settled job classes of the family that have not come yet. */
void turn_close_family(const struct core *core, struct job_family *family);
bool turn_is_closed(const struct core *core, struct job_family *family);

/* --- which job classes are settled ---------------------------------------------------------------------- */

/* Around the turns of one scheduling pass: job classes for which something has changed are not settled any
 * more, and those that were considered are. */
void turn_pass_begin(struct core *core);
void turn_pass_end(struct core *core);
/* What stages for the job class was considered; stuck: no node can. */
void turn_consider(struct core *core, struct job_class *job_class, bool stuck);
/* Gives the job class its old standing back after a question. */
void turn_restore(struct core *core, struct job_class *job_class, enum job_class_standing standing);

void turn_check(const struct core *core);

#endif
