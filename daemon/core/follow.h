/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs follow which: the edges between them, until each is met or can never be. */
#ifndef CORE_FOLLOW_H
#define CORE_FOLLOW_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;
struct job;

/* The core knows, or is told, what became of every job that the input SUBMIT is to follow. */
bool follow_check(const struct core *core, const struct input *input, struct err *err);

/* Notes what the new job follows: one edge for each job that has not yet done what it should. Why the job can
 * never begin, in the step's memory; NULL: it may. */
const char *follow_join(struct core *core, struct job *job, const struct input *input);

/* It waits for another job. */
bool follow_is_open(const struct job *job);

/* The job has ended: it follows nobody any more, and those that follow it are due. Called by job.c. */
void follow_ended(struct core *core, struct job *job);
/* The job runs for the first time. */
void follow_started(struct core *core, struct job *job);

/* Works off what is due: jobs become ready, or end because they never can be; and so do those that follow
 * them. */
void follow_pass(struct core *core);

/* Frees all edges. */
void follow_clear(struct core *core);

#endif
