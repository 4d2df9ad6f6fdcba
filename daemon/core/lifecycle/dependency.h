/* SPDX-License-Identifier: Apache-2.0 */
/* Dependencies between jobs, until each is met or can never be. */
#ifndef CORE_LIFECYCLE_DEPENDENCY_H
#define CORE_LIFECYCLE_DEPENDENCY_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;
struct job;

/* The core knows, or is told, what became of every job on which the input SUBMIT depends. */
bool dependency_check(const struct core *core, const struct input *input, struct err *err);

/* Notes the dependencies of the new job: one edge for each job that has not yet done what it should. Why the
 * job can never begin, in the step's memory; NULL: it may. */
const char *dependency_join(struct core *core, struct job *job, const struct input *input);

/* A row of a dependency, after all jobs. */
struct dependency_row;
void dependency_load(struct core *core, const struct dependency_row *row);

/* The job has ended: it depends on nobody any more, and its dependents are due. Called by job.c. */
void dependency_ended(struct core *core, struct job *job);
/* The job runs for the first time. */
void dependency_started(struct core *core, struct job *job);

/* Works off what is due: jobs become ready, or end because they never can be; and so do their
 * dependents. */
void dependency_pass(struct core *core);

/* Frees all edges. */
void dependency_clear(struct core *core);

#endif
