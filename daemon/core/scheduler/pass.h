/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling passes. */
#ifndef CORE_SCHEDULER_PASS_H
#define CORE_SCHEDULER_PASS_H

struct core;

/* Runs scheduling passes: places every job that fits, as the policy allows. What is more than LIMIT_PASS_WORK
 * is done in later steps; what happens meanwhile is looked at by the pass after that. */
void pass_run(struct core *core);
/* Ends a pass that is not through. */
void pass_drop(struct core *core);

#endif
