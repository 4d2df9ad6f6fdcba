/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the priority and the time limit of a live job, and holds and releases jobs. A change based on an
 * outdated view of the job is refused, and the history records old and new values. A new limit counts from
 * the start of the attempt: a limit that is over already ends it. The look into a kept attempt moves with it.
 * A held job takes part in nothing but keeps its place, because jobs are ordered by submission. A job that
 * has GPUs is never held. */
#include "daemon/core/inputs/amend.h"

#include <string.h>
#include <utlist.h>

#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/availability.h"
#include "daemon/core/lifecycle/expiry.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/queue/history.h"
#include "daemon/core/queue/queue.h"

static bool check(const struct job *job, const struct input *input, struct err *err)
{
    int64_t seq = input->change.if_seq;
    if (seq >= 0 && seq != job->seq) {
        err_field(err, ERR_PRECONDITION, "If-Match", NULL, "job %s has changed: its seq is %lld, not %lld",
                  job->id, (long long)job->seq, (long long)seq);
        return err_hint(err, "look at the job again, and send If-Match: \"%lld\"", (long long)job->seq);
    }
    return true;
}

static void write_limit(struct text *out, int64_t limit_ms)
{
    if (limit_ms == 0) {
        text_append(out, "null");
    } else {
        text_printf(out, "%.15g", (double)limit_ms / 1000);
    }
}

/* {"by":"ann","priority":{"from":0,"to":5},"time_limit_s":{"from":null,"to":60}} */
static const char *detail_of(struct core *core, const struct job *job, const struct input *input,
                             bool priority, bool limit)
{
    autotext struct text json = {0};
    text_append(&json, "{\"by\":");
    text_json_string(&json, input->change.by, strlen(input->change.by));
    if (priority) {
        text_printf(&json, ",\"priority\":{\"from\":%d,\"to\":%lld}", job->priority,
                    (long long)input->change.priority);
    }
    if (limit) {
        text_append(&json, ",\"time_limit_s\":{\"from\":");
        write_limit(&json, job->time_limit_ms);
        text_append(&json, ",\"to\":");
        write_limit(&json, input->change.time_limit_ms);
        text_append(&json, "}");
    }
    text_append(&json, "}");
    return record_text(core, "%s", json.bytes);
}

/* Queues the job again, because its place may have changed. */
static void requeue(struct core *core, struct job *job, const struct input *input)
{
    bool waits = job->batch != NULL;
    if (waits) {
        queue_take(core, job);
    }
    if (input->change.sets_priority) {
        job->priority = (int32_t)input->change.priority;
    }
    if (input->change.sets_time_limit) {
        job->time_limit_ms = input->change.time_limit_ms;
    }
    if (waits) {
        queue_put(core, job);
    }
}

bool amend_job(struct core *core, const struct input *input, struct err *err)
{
    struct job *job = job_live(core, input->change.id, err);
    if (job == NULL || !check(job, input, err)) {
        return false;
    }
    core->change_set.answer = job;
    bool priority = input->change.sets_priority && input->change.priority != job->priority;
    bool limit = input->change.sets_time_limit && input->change.time_limit_ms != job->time_limit_ms;
    if (!priority && !limit) {
        return true;
    }
    int64_t old_limit_ms = job->time_limit_ms;
    const char *detail = detail_of(core, job, input, priority, limit);
    trace_line(core, "job %s is changed: %s", job->id, detail);
    record_event(core, job, EVENT_CHANGED, detail);
    requeue(core, job, input);
    if (limit && job->attempt != NULL && attempt_is_live(job->attempt)) {
        availability_remove(core, job->attempt);
        job->attempt->estimate_ms = history_estimate_ms(core, job->pattern, job->time_limit_ms);
        availability_add(core, job->attempt);
        core->place_wanted = true;
        if (job->attempt->state == ATTEMPT_KEPT) {
            attempt_move_look(core, job->attempt, old_limit_ms);
        }
        expiry_renew(core, job->attempt);
    }
    return true;
}

/* --- hold and release ---------------------------------------------------------------------------------- */

bool amend_hold(struct core *core, const struct input *input, struct err *err)
{
    struct job *job = job_live(core, input->hold.id, err);
    if (job == NULL) {
        return false;
    }
    const char *by = input->hold.by;
    if (array_is_whole(job) && job->array->counts.running > 0) {
        return err_field(err, ERR_CONFLICT, "id", "hold its tasks, or cancel it",
                         "array %s has %lld tasks under way", job->id, (long long)job->array->counts.running);
    }
    if (job->state != JOB_HELD && !job_fire(core, job, JOB_EVENT_HOLD, record_detail(core, "by", by),
                                            record_text(core, " by %s", by))) {
        return err_field(err, ERR_CONFLICT, "id", "cancel it, and submit it again with hold",
                         "job %s has GPUs already, it is %s: only a waiting job can be held", job->id,
                         job_state_text(job->state));
    }
    core->change_set.answer = job;
    return true;
}

/* Ends the time in which attempts of an array's tasks are kept. */
static void release_tasks(struct core *core, const struct array *array, const char *why)
{
    struct attempt *attempt, *next;
    DL_FOREACH_SAFE (core->attempts, attempt, next) {
        const struct job *job = attempt->job;
        if (array_is_task(job) && job->array == array && job->kept_until_ms != 0) {
            attempt_end_look(core, attempt, why);
        }
    }
}

bool amend_release(struct core *core, const struct input *input, struct err *err)
{
    struct job *job = job_live(core, input->hold.id, err);
    if (job == NULL) {
        return false;
    }
    const char *by = input->hold.by, *why = record_text(core, "released by %s", by);
    core->change_set.answer = job;
    if (job->state == JOB_HELD) {
        enum job_event event = job_waits_to_be_ready(job) ? JOB_EVENT_BLOCK : JOB_EVENT_RELEASE;
        job_fire(core, job, event, record_detail(core, "by", by), record_text(core, ": %s", why));
    } else if (array_is_whole(job)) {
        release_tasks(core, job->array, why);
    } else if (job->kept_until_ms != 0) {
        attempt_end_look(core, job->attempt, why);
    }
    return true;
}
