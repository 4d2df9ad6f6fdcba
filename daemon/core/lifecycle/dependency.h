/* SPDX-License-Identifier: Apache-2.0 */
/* Dependencies between jobs, until each is met or can never be. */
#ifndef CORE_LIFECYCLE_DEPENDENCY_H
#define CORE_LIFECYCLE_DEPENDENCY_H

#include <stdbool.h>

#include "proto/base/err.h"

struct core;
struct input;
struct job;

/* Whether the core knows, from its state or from the input SUBMIT, the outcome of every job on which the
 * submission depends. */
bool dependency_check(const struct core *core, const struct input *input, struct err *err);

/* Records the dependencies of the new job: one edge for each job without the required outcome yet. Returns
 * why the job can never start, in the step's memory; NULL: it may. */
const char *dependency_join(struct core *core, struct job *job, const struct input *input);

/* A row of a dependency, after all jobs. */
struct dependency_row;
void dependency_load(struct core *core, const struct dependency_row *row);

/* Notes that the job has ended: removes its dependencies and marks its dependents as due. Called by job.c. */
void dependency_ended(struct core *core, struct job *job);
/* Notes that the job runs for the first time. */
void dependency_started(struct core *core, struct job *job);

/* Processes the due edges: jobs become ready, or end because a dependency can never be met; then their
 * dependents follow. */
void dependency_pass(struct core *core);

/* Frees all edges. */
void dependency_clear(struct core *core);

#endif
