/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are not to begin before a moment. */
#ifndef CORE_LIFECYCLE_START_TIME_H
#define CORE_LIFECYCLE_START_TIME_H

#include <stdint.h>

struct core;
struct job;

/* The job waits until that moment of the wall clock; 0, or one that has passed: it does not. */
void start_time_set(struct core *core, struct job *job, int64_t not_before_ms);
/* The job waits for its time no more. */
void start_time_forget(struct core *core, struct job *job);
/* A job whose time has come, which waits for it no more; NULL: there is none, and it notes when the next one
 * is due. */
struct job *start_time_next(struct core *core);
void start_time_clear(struct core *core);
/* Aborts unless the jobs are in order and each is kept back. */
void start_time_check(const struct core *core);

#endif
