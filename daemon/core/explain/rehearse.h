/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsal: who would have to go for a job that waits. */
#ifndef CORE_EXPLAIN_REHEARSE_H
#define CORE_EXPLAIN_REHEARSE_H

struct ahead;
struct core;
struct job;
struct text;

/* Appends {"possible", "automatic", "victims", "loss_gpu_s", "ahead", "start", "text"}. The job waits. */
void rehearse_write(struct core *core, const struct job *job, const struct ahead *ahead, struct text *out);

#endif
