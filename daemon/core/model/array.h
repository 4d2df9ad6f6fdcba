/* SPDX-License-Identifier: Apache-2.0 */
/* An array: one job that stands for many tasks. */
#ifndef CORE_MODEL_ARRAY_H
#define CORE_MODEL_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/model/job.h"
#include "daemon/core/model/rows.h"
#include "proto/task_list.h"
#include "proto/spec/tasks.h"

/* An array: many tasks of one spec. */
struct array {
    struct job *whole; /* the job that stands for the tasks; it owns this */
    struct array_row counts;
    int64_t of;             /* how many tasks its spec makes: more than counts.tasks where it has only some */
    struct task_list *only; /* these, in the order of their placement; owned; NULL: all */
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

/* The number of the task that is placed after so many others. */
static inline int64_t array_number(const struct array *array, int64_t placed)
{
    return array->only != NULL ? task_list_at(array->only, placed) : placed;
}

/* How many tasks are placed before that one; -1: it is none of them. */
static inline int64_t array_place(const struct array *array, int64_t task)
{
    return array->only != NULL ? task_list_place(array->only, task) : task;
}

/* Whether one more task may be live, and one is left: then the array waits in the queue. */
static inline bool array_is_open(const struct array *array)
{
    const struct array_row *counts = &array->counts;
    return array_left(array) > 0 && (counts->parallel == 0 || counts->running < counts->parallel);
}

#endif
