/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsals: which attempts would have to be preempted for a waiting job. */
#ifndef CORE_EXPLAIN_REHEARSE_H
#define CORE_EXPLAIN_REHEARSE_H

struct ahead;
struct core;
struct job;
struct text;

/* Appends {"possible", "automatic", "victims", "loss_gpu_s", "ahead", "start", "text"}. The job waits. */
void rehearse_write(struct core *core, const struct job *job, const struct ahead *ahead, struct text *out);

#endif
