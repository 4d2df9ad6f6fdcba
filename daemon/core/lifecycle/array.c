/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps arrays. A waiting array costs the same for any number of tasks. Tasks are placed in the order of
 * their numbers, each exactly once. At most `parallel` of them are live at a time. An array ends when its
 * last task has ended. queue.c orders arrays; job.c runs single tasks. */
#include "daemon/core/lifecycle/array.h"

#include <string.h>

#include "daemon/core/lifecycle/job.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/queue/queue.h"
#include "proto/spec/tasks.h"

/* --- creation and removal ------------------------------------------------------------------------------- */

void array_create(struct core *core, struct job *whole, const struct job_spec *spec)
{
    assert(whole->array == NULL && spec->tasks > 0);
    struct array *array = xzalloc(sizeof *array);
    array->whole = whole;
    array->of = spec->tasks;
    array->only = task_list_copy(spec->only);
    array->counts =
        (struct array_row){.whole = whole->key,
                           .tasks = spec->only != NULL ? task_list_count(spec->only) : spec->tasks,
                           .parallel = spec->parallel};
    whole->array = array;
}

void array_free(struct array *array)
{
    free(array->only);
    free(array->text);
    free(array);
}

/* --- the end -------------------------------------------------------------------------------------------- */

static const char *were(int64_t count)
{
    return count == 1 ? "was" : "were";
}

/* "3 of 100 tasks failed, first task 17: rank 0 on node a exited with 1" */
static const char *summary(struct core *core, const struct array *array)
{
    const struct array_row *counts = &array->counts;
    struct text text = {0};
    if (counts->failed > 0) {
        text_printf(&text, "%lld of %lld tasks failed", (long long)counts->failed, (long long)counts->tasks);
    }
    if (counts->canceled > 0 && counts->failed > 0) {
        text_printf(&text, " and %lld %s canceled", (long long)counts->canceled, were(counts->canceled));
    } else if (counts->canceled > 0) {
        text_printf(&text, "%lld of %lld tasks %s canceled", (long long)counts->canceled,
                    (long long)counts->tasks, were(counts->canceled));
    }
    text_printf(&text, ", first %s", array->text);
    const char *copy = record_text(core, "%s", text.bytes);
    text_finish(&text);
    return copy;
}

static void finish(struct core *core, struct array *array)
{
    struct job *whole = array->whole;
    const struct array_row *counts = &array->counts;
    const char *text = array->text != NULL ? record_text(core, "%s", array->text) : NULL;
    if (whole->cause == CAUSE_CANCELED) {
        job_finish(core, whole, JOB_EVENT_CANCEL, EXIT_CANCELED, CAUSE_CANCELED, text);
    } else if (counts->succeeded == counts->tasks) {
        job_finish(core, whole, JOB_EVENT_SUCCEED, 0, CAUSE_NONE, NULL);
    } else if (counts->placed < counts->tasks) {
        job_finish(core, whole, JOB_EVENT_FAIL, counts->worst_code, CAUSE_STAGE_FAILED, text);
    } else {
        job_finish(core, whole, JOB_EVENT_FAIL, counts->worst_code, CAUSE_TASK_FAILED, summary(core, array));
    }
}

void array_settle(struct core *core, struct array *array)
{
    if (array->counts.running == 0 && array_left(array) == 0 && !job_state_terminal(array->whole->state)) {
        finish(core, array);
    }
}

/* --- placing -------------------------------------------------------------------------------------------- */

struct job *array_send(struct core *core, struct job *job)
{
    if (!array_is_whole(job)) {
        return job;
    }
    struct array *array = job->array;
    assert(array_is_open(array));
    char id[ID_LENGTH + 1];
    int64_t number = array_number(array, array->counts.placed++);
    array->counts.running++;
    task_id(job->id, number, id);
    struct job *task = job_create_task(core, core->next_job_key++, id, job, number);
    trace_line(core, "job %s is task %lld of %s", id, (long long)number, job->id);
    record_task_birth(core, task);
    record_event(core, task, EVENT_SUBMITTED, NULL);
    record_array(core, array);
    return task;
}

/* The array now waits for GPUs, not for staging; the promised start was for this task. */
void array_sent(struct core *core, struct job *job)
{
    if (!array_is_task(job) || job->array->whole->batch == NULL) {
        return;
    }
    struct job *whole = job->array->whole;
    if (whole->state == JOB_STAGING) {
        job_fire(core, whole, JOB_EVENT_STAGED, NULL, NULL);
    }
    if (whole->job_class->promised_key == whole->key) {
        whole->job_class->promised_key = 0;
    }
    if (!array_is_open(whole->array)) {
        queue_take(core, whole);
    }
}

void array_queue_due(struct core *core)
{
    while (core->due_arrays != NULL) {
        struct array *array = core->due_arrays;
        LL_DELETE(core->due_arrays, array);
        array->due = false;
        assert(array_is_open(array) && array->whole->batch == NULL); /* no other function queues it again */
        queue_put(core, array->whole);
    }
}

/* Not at once, because a scheduling pass may be running. */
static void wait_again(struct core *core, struct array *array)
{
    assert(!job_is_kept_back(array->whole)); /* otherwise none of its tasks would be live */
    if (array_is_open(array) && array->whole->batch == NULL && !array->due) {
        array->due = true;
        LL_PREPEND(core->due_arrays, array);
        core->place_wanted = true;
    }
}

/* --- progress of tasks ---------------------------------------------------------------------------------- */

void array_note_running(struct core *core, struct job *task)
{
    struct job *whole = array_is_task(task) ? task->array->whole : NULL;
    if (whole != NULL && job_is_waiting(whole)) {
        job_fire(core, whole, JOB_EVENT_RUN, NULL, NULL);
    }
}

/* Keeps the message of the first task that failed. */
static void keep_text(struct core *core, struct array *array, const struct job *task)
{
    if (array->text == NULL) {
        assert(task->reason != NULL); /* only a successful task has no reason */
        array->text = xprintf("task %lld: %s", (long long)task->task, task->reason);
        record_job(core, array->whole);
    }
}

static void count_end(struct array *array, const struct job *task)
{
    struct array_row *counts = &array->counts;
    counts->running--;
    counts->succeeded += task->state == JOB_SUCCEEDED;
    counts->canceled += task->state == JOB_CANCELED;
    counts->failed += task->state == JOB_FAILED || task->state == JOB_TIMED_OUT;
    counts->worst_code = task->exit_code > counts->worst_code ? task->exit_code : counts->worst_code;
}

void array_note_end(struct core *core, struct job *task)
{
    if (!array_is_task(task)) {
        return;
    }
    struct array *array = task->array;
    count_end(array, task);
    if (task->state != JOB_SUCCEEDED) {
        keep_text(core, array, task);
    }
    record_array(core, array);
    wait_again(core, array);
    array_settle(core, array);
}

/* --- dropping tasks ------------------------------------------------------------------------------------- */

static void drop(struct core *core, struct array *array, int64_t *count, const char *reason)
{
    *count += array_left(array);
    free(array->text);
    array->text = xstrdup(reason);
    record_array(core, array);
    record_job(core, array->whole);
    if (array->whole->batch != NULL) {
        queue_take(core, array->whole);
    }
}

void array_drop(struct core *core, struct job *whole, const char *reason)
{
    assert(whole->array->counts.running == 0);
    drop(core, whole->array, &whole->array->counts.canceled, reason);
}

void array_give_up(struct core *core, struct job *whole, const char *reason)
{
    struct array *array = whole->array;
    array->counts.worst_code = EXIT_INFRA > array->counts.worst_code ? EXIT_INFRA : array->counts.worst_code;
    drop(core, array, &array->counts.failed, reason);
    array_settle(core, array);
}

void array_cancel_rest(struct core *core, struct job *whole, const char *reason)
{
    drop(core, whole->array, &whole->array->counts.canceled, reason);
}

/* --- invariants ----------------------------------------------------------------------------------------- */

void array_check(const struct array *array)
{
    const struct array_row *counts = &array->counts;
    const struct job *whole = array->whole;
    int64_t left = array_left(array);
    assert(whole->array == array && counts->whole == whole->key && whole->attempt == NULL);
    assert(counts->running >= 0 && counts->succeeded >= 0 && counts->failed >= 0 && counts->canceled >= 0);
    assert(counts->placed <= counts->tasks && (left == 0 || left == counts->tasks - counts->placed));
    assert(counts->parallel == 0 || counts->running <= counts->parallel);
    assert(counts->running > 0 || left > 0); /* otherwise it has ended */
    assert((whole->batch != NULL) == (array_is_open(array) && !job_is_kept_back(whole)));
    assert(counts->running == 0 || !job_is_kept_back(whole));
    assert(!array->due && array->slot == 0);
}

void array_check_all(struct core *core)
{
    for (const struct job *job = core->jobs_by_key; job != NULL; job = job->by_key.next) {
        if (array_is_whole(job)) {
            job->array->seen = 0;
        }
    }
    for (const struct job *job = core->jobs_by_key; job != NULL; job = job->by_key.next) {
        if (array_is_task(job)) {
            char id[ID_LENGTH + 1];
            task_id(job->array->whole->id, job->task, id);
            int64_t place = array_place(job->array, job->task);
            assert(strcmp(id, job->id) == 0 && place >= 0 && place < job->array->counts.placed);
            assert(job->place == job->array->whole->key && job->job_class == job->array->whole->job_class);
            job->array->seen++;
        }
    }
    for (const struct job *job = core->jobs_by_key; job != NULL; job = job->by_key.next) {
        assert(!array_is_whole(job) || job->array->seen == job->array->counts.running);
    }
}
