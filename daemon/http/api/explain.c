/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about jobs that wait, and the preemption of one that runs: GET /v1/jobs/{id}/explanation, POST
 * /v1/plan, GET and POST /v1/jobs/{id}/preemption. It promises that a job of somebody else is not told apart
 * from none. Questions go to the writer, so that what decides answers them, in a copy of it. What the answers
 * say is the core's. */
#include "daemon/http/api/ask.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "daemon/writer/spec_environment.h"
#include "proto/base/cleanup.h"
#include "proto/spec/jobspec.h"
#include "proto/wire/views.h"

/* The job that the path names; what has ended waits for nothing. */
static bool is_live(const struct request *request, const struct job_facts *facts, struct err *err)
{
    return !job_state_terminal(facts->state) || err_set(err, ERR_CONFLICT, "job %s has ended: it is %s",
                                                        request->argument, job_state_text(facts->state));
}

bool explain_job(struct request *request, struct err *err)
{
    struct job_facts facts;
    if (!job_find(request, &facts, err) || !is_live(request, &facts, err)) {
        return false;
    }
    struct ask *ask = ask_create(request, sizeof *ask, NULL);
    ask->writer.input.kind = INPUT_ASK;
    ask->writer.input.ask.kind = (enum ask_kind)request->route->what;
    ask->writer.input.ask.id = request->argument;
    ask->writer.input.ask.sees_all = authorize_sees_all(request->who);
    return ask_writer(ask, err);
}

/* --- plans ---------------------------------------------------------------------------------------------- */

struct plan {
    struct ask ask;
    struct job_spec spec;
    struct spec_environment environment;
};

static void plan_finish(struct ask *ask)
{
    struct plan *plan = (struct plan *)ask;
    spec_environment_finish(&plan->environment);
    job_spec_finish(&plan->spec);
}

bool explain_plan(struct request *request, struct err *err)
{
    autoask struct plan *plan = ask_create(request, sizeof *plan, NULL);
    plan->ask.finish = plan_finish;
    if (!job_spec_decode(give(request->json), request->server->config.lease_min_ms, &plan->spec, err) ||
        !authorize_submit(request->server->projects, request->who, &plan->spec, err)) {
        return false;
    }
    struct input *input = &plan->ask.writer.input;
    input->kind = INPUT_ASK;
    input->ask.kind = ASK_PLAN;
    input->ask.owner = identity_owner(request->who);
    input->ask.sees_all = authorize_sees_all(request->who);
    input->ask.spec = &plan->spec;
    if (spec_environment_of(&plan->spec, input->ask.owner, &plan->environment)) {
        input->ask.environment = &plan->environment.core;
    }
    return ask_writer(give(plan), err);
}

/* --- preemption ----------------------------------------------------------------------------------------- */

static int render_preempted(const struct writer_request *writer, const struct step *step, struct text *out)
{
    job_receipt_encode(step->job.id, step->job.state, step->job.seq, out);
    return 202;
}

bool preempt_job(struct request *request, struct err *err)
{
    struct job_facts facts;
    if (!request_only_fields(request->json, "", err) || !job_find_to_change(request, &facts, err) ||
        !is_live(request, &facts, err)) {
        return false;
    }
    struct ask *ask = ask_create(request, sizeof *ask, render_preempted);
    ask->writer.input.kind = INPUT_PREEMPT;
    ask->writer.input.preempt.id = request->argument;
    ask->writer.input.preempt.by = identity_owner(request->who);
    return ask_writer(ask, err);
}
