/* SPDX-License-Identifier: Apache-2.0 */
/* Removes jobs that have ended, all of them or none. A live job is never removed. The core has no state of
 * jobs that have ended but their outcomes, which it keeps: a submission that was read before may still name
 * them. */
#include "daemon/core/inputs/remove.h"

#include "daemon/core/model/input.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"

bool remove_jobs(struct core *core, const struct input *input, struct err *err)
{
    for (size_t i = 0; i < input->remove.count; i++) {
        const struct job *job = job_by_key(core, input->remove.keys[i]);
        if (job != NULL) {
            err_field(err, ERR_CONFLICT, "id", NULL, "job %s is %s", job->id, job_state_text(job->state));
            return err_hint(err, "cancel it first: gpuctl cancel %s", job->id);
        }
    }
    for (size_t i = 0; i < input->remove.count; i++) {
        record_job_gone(core, input->remove.keys[i]);
    }
    return true;
}
