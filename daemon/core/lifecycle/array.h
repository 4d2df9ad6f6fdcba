/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: one job that stands for many tasks of the same spec. It waits on behalf of all tasks; each placed
 * task becomes a job of its own. */
#ifndef CORE_LIFECYCLE_ARRAY_H
#define CORE_LIFECYCLE_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/states.h"

struct array;
struct core;
struct job;
struct job_spec;

/* Makes a new job stand for the tasks of the spec. */
void array_create(struct core *core, struct job *whole, const struct job_spec *spec);
void array_free(struct array *array);

/* The job to place for the first job in the queue: that job itself, or a new job for the array's next
 * task. */
struct job *array_send(struct core *core, struct job *job);
/* Notes that the job of array_send has been placed: an array without further tasks leaves the queue. */
void array_sent(struct core *core, struct job *job);

/* Notes that a task runs, or has ended. Other jobs are ignored. */
void array_note_running(struct core *core, struct job *task);
void array_note_end(struct core *core, struct job *task);

/* Queues arrays that may have one more live task; runs between scheduling passes. */
void array_queue_due(struct core *core);

/* Drops all tasks, none of which was placed; the caller then ends the array. */
void array_drop(struct core *core, struct job *whole, const char *reason);
/* Drops the tasks that are left: placed tasks continue, and the array fails when they have ended. */
void array_give_up(struct core *core, struct job *whole, const char *reason);
/* The same, and the array counts as canceled: whoever calls cancels those that live, and settles it. */
void array_cancel_rest(struct core *core, struct job *whole, const char *reason);
/* Ends the array if none of its tasks is left. */
void array_settle(struct core *core, struct array *array);

/* array_check aborts if counts contradict each other, array_check_all also if they contradict the jobs. */
void array_check(const struct array *array);
void array_check_all(struct core *core);

#endif
