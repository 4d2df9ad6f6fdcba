/* SPDX-License-Identifier: Apache-2.0 */
/* What is ahead of a job: the jobs that wait for GPUs which it could use, and which come earlier in the
 * queue. */
#ifndef CORE_EXPLAIN_AHEAD_H
#define CORE_EXPLAIN_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;
struct job;

struct ahead {
    const struct job **jobs;   /* in queue order; owned */
    size_t count;              /* LIMIT_AHEAD at most */
    bool more;                 /* there are others, which are not listed */
    const struct job *before;  /* the last that gets GPUs before this one can; NULL: there is none */
    size_t before_count;       /* how many such there are */
    const struct job *nearest; /* the same, or else the last of them all; NULL: nobody is ahead */
};

void ahead_find(struct core *core, const struct job *job, struct ahead *ret_ahead);
void ahead_finish(struct ahead *ahead);

#endif
