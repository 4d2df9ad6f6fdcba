/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: waiting jobs and their order. Jobs of one job class have equal resource requests. Jobs of one
 * batch are also equal to the policy, and go first in, first out. */
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

/* The job class of a resource request; NULL: no live job has it. */
struct job_class *queue_find(const struct core *core, const struct resource_request *request);

/* Adds a live job to the job class of its resource request, for the job's whole life; the job class ends with
 * its last job. environment is the one that the resource request names; NULL: it names none. */
void queue_join(struct core *core, struct job *job, const struct resource_request *request,
                const struct environment_spec *environment);
/* queue_share adds a job whose resource request the job class has; queue_leave removes the job. */
void queue_share(struct core *core, struct job *job, struct job_class *job_class);
void queue_leave(struct core *core, struct job *job);

/* Sets when the job was submitted, by the steady clock: its age counts from then. Jobs come in order of
 * key. */
void queue_stamp(struct core *core, struct job *job, int64_t steady_ms);

/* Whether one job of a batch precedes another: by place, but tasks of an array that wait again precede the
 * array. */
bool queue_job_before(const struct job *a, const struct job *b);

/* queue_put queues the job at the place that the policy gives it; queue_take removes it. */
void queue_put(struct core *core, struct job *job);
void queue_take(struct core *core, struct job *job);

/* Whether entry a precedes entry b. */
bool queue_before(const struct queue_entry *a, const struct queue_entry *b);

/* The queue entry that a live job has, or would have if it were queued. */
struct queue_entry queue_entry_of(struct core *core, const struct job *job);

/* When a queue entry is due, by the wall clock; 0: the policy has no due times. */
int64_t queue_due_ms(const struct core *core, const struct queue_entry *entry);

/* What makes the due time of a job: its submission and these. */
struct queue_parts {
    int64_t allowance_ms; /* for its run time */
    int64_t share_ms;     /* for what its accounts have used; negative: it goes earlier */
};
/* false: the policy has no due times. */
bool queue_parts(const struct core *core, const struct job *job, const struct queue_entry *entry,
                 struct queue_parts *ret_parts);

/* Calls visit for every waiting job of the job class; visit may end that job, but no other. */
void queue_each(struct core *core, struct job_class *job_class,
                void (*visit)(struct core *core, struct job *job, void *closure), void *closure);

/* The first job of a queue entry. */
struct job *queue_first(const struct queue_entry *entry);
/* Calculates the entry anew, because estimates and shares change with time. */
void queue_recalculate(struct core *core, struct queue_entry *entry);

#endif
