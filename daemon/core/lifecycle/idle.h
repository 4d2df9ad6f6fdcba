/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose GPUs are nearly unused: all of them, on all its nodes, since a common moment. */
#ifndef CORE_LIFECYCLE_IDLE_H
#define CORE_LIFECYCLE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct attempt;
struct core;
struct job;
struct member;

/* Who holds a job that gave its GPUs back because they were idle, as people are shown it. */
#define IDLE_HOLDER "the rule for idle GPUs of its project"

/* What the member's node says; -1: nothing. Notes when there is something to do. */
void idle_heard(struct core *core, struct member *member, int64_t idle_ms);

/* Tells the owner of a job whose GPUs have been idle for the time of its project, once, and again when they
 * are in use; stops the attempt where the project wants that, after the grace. Notes what is due next. */
void idle_watch(struct core *core, struct attempt *attempt);

/* Whether the job is to be held when it has given its GPUs back. */
bool idle_gives_way(const struct core *core, const struct job *job);

#endif
