/* SPDX-License-Identifier: Apache-2.0 */
/* Holds and releases jobs. A held job takes part in nothing but keeps its place, because jobs are ordered by
 * submission. A job that has GPUs is never held. */
#include "daemon/core/inputs/hold.h"

#include "daemon/core/lifecycle/job.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"

bool hold_job(struct core *core, const struct input *input, struct err *err)
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

bool hold_release(struct core *core, const struct input *input, struct err *err)
{
    struct job *job = job_live(core, input->hold.id, err);
    if (job == NULL) {
        return false;
    }
    core->change_set.answer = job;
    if (job->state == JOB_HELD) {
        enum job_event event = dependency_is_open(job) ? JOB_EVENT_BLOCK : JOB_EVENT_RELEASE;
        const char *by = input->hold.by;
        job_fire(core, job, event, record_detail(core, "by", by), record_text(core, ": released by %s", by));
    }
    return true;
}
