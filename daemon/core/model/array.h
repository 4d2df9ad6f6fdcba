/* SPDX-License-Identifier: Apache-2.0 */
/* An array: one job that stands for many tasks. */
#ifndef CORE_MODEL_ARRAY_H
#define CORE_MODEL_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/model/job.h"
#include "daemon/core/model/rows.h"
#include "proto/spec/tasks.h"

/* An array: many tasks of one spec. */
struct array {
    struct job *whole; /* the job that stands for the tasks; it owns this */
    struct array_row counts;
    char *text; /* the message of the first task that failed, or why no more will come; owned, or NULL */
    bool due;   /* it is to be queued again, and is on the core's list of due arrays */
    struct array *next;
    int64_t seen; /* of the current check */
    uint32_t slot;
};

/* The job stands for tasks. */
static inline bool array_is_whole(const struct job *job)
{
    return job->array != NULL && job->task == TASK_NONE;
}

/* It is one of them. */
static inline bool array_is_task(const struct job *job)
{
    return job->task != TASK_NONE;
}

/* The number of tasks that are still to be placed: neither dropped nor jobs already. */
static inline int64_t array_left(const struct array *array)
{
    const struct array_row *counts = &array->counts;
    return counts->tasks - counts->running - counts->succeeded - counts->failed - counts->canceled;
}

/* Whether one more task may be live, and one is left: then the array waits in the queue. */
static inline bool array_is_open(const struct array *array)
{
    const struct array_row *counts = &array->counts;
    return array_left(array) > 0 && (counts->parallel == 0 || counts->running < counts->parallel);
}

#endif
