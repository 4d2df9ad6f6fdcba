/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs ahead of a job: they come earlier in the queue and wait for GPUs that it could use. */
#ifndef CORE_EXPLAIN_AHEAD_H
#define CORE_EXPLAIN_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;
struct job;

struct ahead {
    const struct job **jobs;   /* in queue order; owned */
    size_t count;              /* at most LIMIT_AHEAD */
    bool more;                 /* there are more than listed */
    const struct job *before;  /* the last that gets GPUs before this job can; NULL: none */
    size_t before_count;       /* how many get GPUs before this job can */
    const struct job *nearest; /* like before, else the last of all; NULL: no job is ahead */
};

void ahead_find(struct core *core, const struct job *job, struct ahead *ret_ahead);
/* The same without the list of jobs, from all jobs that come earlier in the queue, in its order. */
void ahead_count(struct core *core, const struct job *job, const struct job *const *earlier, size_t count,
                 struct ahead *ret_ahead);
void ahead_finish(struct ahead *ahead);

#endif
