/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a start goes: moments of jobs, attempts and members, for people to read. Nothing is
 * decided by them. */
#ifndef CORE_LIFECYCLE_TIMING_H
#define CORE_LIFECYCLE_TIMING_H

#include <stdint.h>

struct attempt;
struct core;
struct input;
struct job;
struct member;
struct report_message;

/* The time of the step that is opened. */
void timing_open(struct core *core, const struct input *input);
void timing_clear(struct core *core);

/* The job was submitted in this step; it is a task of a job that was. */
void timing_submit(struct core *core, struct job *job, const struct input *input);
void timing_share(struct job *task, const struct job *whole);

/* The attempt was made; its start, its end was decided. */
void timing_place(struct core *core, struct attempt *attempt);
void timing_start(struct core *core, struct attempt *attempt);
void timing_end(struct core *core, struct attempt *attempt);

/* All steps so far are on disk, at at_us; as core_committed. */
void timing_committed(struct core *core, int64_t at_us,
                      void (*ended)(void *closure, uint64_t attempt_id, int64_t visible_us), void *closure);

/* What a report says of its node, and when that had its orders. Who takes the report writes the member. */
void timing_take(struct core *core, struct member *member, const struct report_message *report);

#endif
