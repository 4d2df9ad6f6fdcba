/* SPDX-License-Identifier: Apache-2.0 */
/* Takes submissions of jobs. A refused submission changes nothing. admission.c decides whether nodes could
 * ever run the job, place.c when it runs. */
#include "daemon/core/inputs/submit.h"

#include "daemon/core/fleet/constraint.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/lifecycle/array.h"
#include "daemon/core/lifecycle/dependency.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/lifecycle/start_time.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/lifecycle/timing.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/scheduler/admission.h"
#include "daemon/core/webhooks/webhook.h"

struct use {
    struct core *core;
    const struct job *job;
};

static bool note_use(void *closure, const char *hash, const char *field)
{
    const struct use *use = closure;
    record_use(use->core, use->job, hash);
    return true;
}

/* Requirements in the spec itself are stored as a blob, too. */
static void note_uses(struct core *core, const struct job *job, const struct input *input)
{
    struct use use = {core, job};
    job_spec_each_blob(input->submit.spec, note_use, &use);
    if (input->submit.requirements != NULL) {
        char hash[65];
        text_to_hex(input->submit.requirements->hash, 32, hash);
        record_use(core, job, record_text(core, "%s", hash));
    }
}

bool submit_job(struct core *core, const struct input *input, struct err *err)
{
    const struct job_spec *spec = input->submit.spec;
    struct resource_request request = job_request(spec, input->submit.environment);
    struct constraints *constraints = constraints_create(request.terms);
    request.constraints = constraints;
    bool sound = webhook_check_names(core, spec->notify, input->submit.owner, err) &&
                 admission_check(core, &request, err) && dependency_check(core, input, err) &&
                 account_admits(core, job_spec_project(spec), input->submit.owner, &request, err);
    constraints_destroy(constraints);
    if (!sound) {
        return false;
    }
    struct job *job = job_create(core, core->next_job_key++, input->submit.id, input->submit.owner, spec,
                                 input->submit.environment);
    staging_renew(core, job->job_class->environment);
    queue_stamp(core, job, core->steady_ms);
    timing_submit(core, job, input);
    account_join(core, job, job_spec_project(spec), input->submit.owner);
    core->change_set.answer = job;
    trace_line(core, "job %s is submitted: %lld of %s%s", job->id, (long long)spec->gpus,
               spec->gpu_type != NULL ? spec->gpu_type : "any type", spec->tasks > 0 ? ", an array" : "");
    if (input->submit.requirements != NULL) {
        record_blob(core, input->submit.requirements);
    }
    record_birth(core, job, input);
    note_uses(core, job, input);
    if (spec->tasks > 0) {
        array_create(core, job, spec);
        record_array(core, job->array);
    }
    record_event(core, job, EVENT_SUBMITTED, NULL);
    const char *never = dependency_join(core, job, input);
    start_time_set(core, job, spec->not_before_ms);
    job_begin(core, job, spec->hold ? input->submit.owner : NULL);
    if (never != NULL) {
        job_never(core, job, never);
    }
    return true;
}
