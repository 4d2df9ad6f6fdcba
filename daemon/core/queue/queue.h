/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: jobs that wait, and whose turn it is. Jobs of one job class have one resource request; jobs of
 * one batch are equal to the policy as well, and go first in, first out. */
#ifndef CORE_QUEUE_QUEUE_H
#define CORE_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct environment_spec;
struct job;
struct job_class;
struct queue_entry;
struct resource_request;

/* The job class of a resource request, NULL when no live job has it. */
struct job_class *queue_find(const struct core *core, const struct resource_request *request);

/* A live job belongs to the job class of its resource request for all its life; the job class ends with its
 * last job. environment is the one that the resource request names; NULL where it names nothing. */
void queue_join(struct core *core, struct job *job, const struct resource_request *request,
                const struct environment_spec *environment);
/* The same for a job whose resource request the job class has. */
void queue_share(struct core *core, struct job *job, struct job_class *job_class);
void queue_leave(struct core *core, struct job *job);

/* When it was submitted, by the steady clock: its age counts from then. Jobs come in order of key. */
void queue_stamp(struct core *core, struct job *job, int64_t steady_ms);

/* Whether one job of a batch goes before another: by place, and the tasks of an array that wait again before
 * it. */
bool queue_job_before(const struct job *a, const struct job *b);

/* The job waits, at the place that the policy gives it; and no longer. */
void queue_put(struct core *core, struct job *job);
void queue_take(struct core *core, struct job *job);

/* Which comes first. */
bool queue_before(const struct queue_entry *a, const struct queue_entry *b);

/* The queue entry of a live job, which need not wait: what it counts by, or would. */
struct queue_entry queue_entry_of(struct core *core, const struct job *job);

/* When a queue entry is due, by the wall clock; 0: the policy has no due times. */
int64_t queue_due_ms(const struct core *core, const struct queue_entry *entry);

/* Calls visit for every job that waits in the job class; visit may end the job, but no other. */
void queue_each(struct core *core, struct job_class *job_class,
                void (*visit)(struct core *core, struct job *job, void *closure), void *closure);

/* --- a pass over the waiting jobs, in queue order ------------------------------------------------------- */

/* Estimates and shares have changed with the time: looks at queue entries that are old. */
void queue_refresh(struct core *core);

/* Begins a pass. Jobs may leave the queue while it goes on, and none may come. */
void queue_open(struct core *core);

/* Whose turn it is among those that were not skipped; NULL: nobody's. Valid until a job leaves the queue.
 */
struct queue_entry *queue_next(struct core *core);

/* Works out anew a queue entry that may be older than what was learned since; true: it is another one now,
 * and somebody else may be first. */
bool queue_renew(struct core *core, struct queue_entry *entry);

/* The first job of a queue entry. */
struct job *queue_first(const struct queue_entry *entry);

/* In this pass, skips: the whole job class; jobs of it that will run longer than this; one batch. */
void queue_close(struct job_class *job_class);
void queue_narrow(struct job_class *job_class, int64_t longest_ms);
void queue_skip(struct queue_entry *entry);
/* All jobs of the job class that are of this one's project and owner. */
void queue_skip_owner(struct job_class *job_class, const struct job *job);

#endif
