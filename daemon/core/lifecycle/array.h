/* SPDX-License-Identifier: Apache-2.0 */
/* An array: one job that stands for many tasks of the same spec, waits for all of them, and becomes as many
 * jobs as are placed. */
#ifndef CORE_LIFECYCLE_ARRAY_H
#define CORE_LIFECYCLE_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/states.h"

struct array;
struct core;
struct job;

/* Makes a job that was just created stand for so many tasks; parallel 0: any number at a time. */
void array_create(struct core *core, struct job *whole, int64_t tasks, int64_t parallel);
void array_free(struct array *array);

/* Whom a job that is first in the queue sends ahead: itself, or the next task, which has never waited. */
struct job *array_send(struct core *core, struct job *job);
/* What was sent has been placed: an array that has no more to send leaves the queue. */
void array_sent(struct core *core, struct job *job);

/* One of its tasks runs, or has ended. Of other jobs these are nothing. */
void array_note_running(struct core *core, struct job *task);
void array_note_end(struct core *core, struct job *task);

/* Arrays that may have one more task live wait again; between two scheduling passes. */
void array_queue_due(struct core *core);

/* None of its tasks will ever be placed, and none was: whoever calls ends the array. */
void array_drop(struct core *core, struct job *whole, const char *reason);
/* No further task will be placed: the others go on, and the array fails when they have ended. */
void array_give_up(struct core *core, struct job *whole, const char *reason);
/* The same, and the array counts as canceled: whoever calls cancels those that live, and settles it. */
void array_cancel_rest(struct core *core, struct job *whole, const char *reason);
/* Ends the array if none of its tasks is left. */
void array_settle(struct core *core, struct array *array);

/* Aborts when counts contradict each other; array_check_all also when they contradict the jobs. */
void array_check(const struct array *array);
void array_check_all(struct core *core);

#endif
