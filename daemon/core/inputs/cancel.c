/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels jobs. A waiting job ends at once. The gang of a job that has GPUs is stopped. An array is canceled
 * with all its tasks. A second cancel changes nothing. */
#include "daemon/core/inputs/cancel.h"

#include "daemon/core/lifecycle/array.h"
#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/queue/queue.h"

static void cancel(struct core *core, struct job *job, const char *by);

/* --- arrays --------------------------------------------------------------------------------------------- */

/* Live tasks by key: each is queued in the array's job class, has a live attempt, or is held. */
struct tasks {
    struct array *array;
    struct job **jobs;
    size_t count;
};

static void take_task(struct core *core, struct job *job, void *closure)
{
    struct tasks *tasks = closure;
    if (array_is_task(job) && job->array == tasks->array) {
        tasks->jobs[tasks->count++] = job;
    }
}

static int by_key(const void *a, const void *b)
{
    const struct job *const *left = a, *const *right = b;
    return ((*left)->key > (*right)->key) - ((*left)->key < (*right)->key);
}

static struct tasks live_tasks(struct core *core, struct array *array)
{
    struct tasks tasks = {.array = array,
                          .jobs = xalloc((size_t)(array->counts.running + 1) * sizeof(struct job *))};
    queue_each(core, array->whole->job_class, take_task, &tasks);
    for (const struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        take_task(core, attempt->job, &tasks);
    }
    for (struct job *job = core->jobs_by_key; (int64_t)tasks.count < array->counts.running;
         job = job->by_key.next) {
        assert(job != NULL);
        if (job_is_kept_back(job)) {
            take_task(core, job, &tasks);
        }
    }
    assert((int64_t)tasks.count == array->counts.running);
    if (tasks.count > 1) {
        qsort(tasks.jobs, tasks.count, sizeof(struct job *), by_key);
    }
    return tasks;
}

static void cancel_array(struct core *core, struct job *whole, const char *by)
{
    struct array *array = whole->array;
    array_cancel_rest(core, whole, record_text(core, "canceled by %s", by));
    struct tasks tasks = live_tasks(core, array);
    for (size_t i = 0; i < tasks.count; i++) {
        cancel(core, tasks.jobs[i], by);
    }
    free(tasks.jobs);
    array_settle(core, array);
}

/* --- jobs ----------------------------------------------------------------------------------------------- */

/* Nothing for one that was canceled before. */
static void cancel(struct core *core, struct job *job, const char *by)
{
    if (job->cause == CAUSE_CANCELED) {
        return;
    }
    job->cause = CAUSE_CANCELED;
    record_event(core, job, EVENT_CANCEL_ASKED, record_detail(core, "by", by));
    const char *reason = record_text(core, "canceled by %s", by);
    trace_line(core, "job %s is to be %s", job->id, reason);
    if (array_is_whole(job)) {
        cancel_array(core, job, by);
    } else if (job_is_waiting(job) || job_is_kept_back(job)) {
        job_finish(core, job, JOB_EVENT_CANCEL, EXIT_CANCELED, CAUSE_CANCELED, reason);
    } else {
        const struct fault fault = {.cause = CAUSE_CANCELED, .rank = -1, .text = reason};
        attempt_stop(core, job->attempt, &fault);
    }
}

bool cancel_take(struct core *core, const struct input *input, struct err *err)
{
    struct job *job = job_live(core, input->cancel.id, err);
    if (job == NULL) {
        return false;
    }
    core->change_set.answer = job;
    cancel(core, job, input->cancel.by);
    return true;
}
