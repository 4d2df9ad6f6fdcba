/* SPDX-License-Identifier: Apache-2.0 */
/* The durations of a start: moments of jobs, attempts and members, for people. No decision depends on
 * them. */
#ifndef CORE_LIFECYCLE_TIMING_H
#define CORE_LIFECYCLE_TIMING_H

#include <stdint.h>

struct attempt;
struct core;
struct input;
struct job;
struct member;
struct report_message;

/* timing_open notes the time of the step. */
void timing_open(struct core *core, const struct input *input);
void timing_clear(struct core *core);

/* timing_submit: the job was submitted in this step. timing_share: it is a task of such a job. */
void timing_submit(struct core *core, struct job *job, const struct input *input);
void timing_share(struct job *task, const struct job *whole);

/* The attempt was made; its start was decided; its end was decided. */
void timing_place(struct core *core, struct attempt *attempt);
void timing_start(struct core *core, struct attempt *attempt);
void timing_end(struct core *core, struct attempt *attempt);

/* All steps so far are on disk, at at_us; as core_committed. */
void timing_committed(struct core *core, int64_t at_us,
                      void (*ended)(void *closure, uint64_t attempt_id, int64_t visible_us), void *closure);

/* Takes the durations in a node's report, and the times when the node got its orders. The caller writes the
 * member's row. */
void timing_take(struct core *core, struct member *member, const struct report_message *report);

#endif
