/* SPDX-License-Identifier: Apache-2.0 */
/* Answers questions: why a job waits, how a job would fare if it were submitted now, which attempts would
 * have to be preempted for a job, and who is next. A question changes no state, and its answer is made from
 * the same state as decisions. reason.c gives the reason, node_filter.c the nodes, forecast.c the start,
 * advice.c the change, and queue_list.c the queue. */
#include "daemon/core/explain/explain.h"

#include <string.h>

#include "daemon/core/explain/advice.h"
#include "daemon/core/explain/ahead.h"
#include "daemon/core/explain/field.h"
#include "daemon/core/explain/forecast.h"
#include "daemon/core/explain/node_filter.h"
#include "daemon/core/explain/queue_list.h"
#include "daemon/core/explain/reason.h"
#include "daemon/core/explain/rehearse.h"
#include "daemon/core/explain/trial.h"
#include "daemon/core/fleet/constraint.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/history.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/scheduler/admission.h"
#include "daemon/core/scheduler/place.h"

/* The inputs of an answer. */
struct question {
    struct core *core;
    struct job *job; /* live, or made for the question */
    bool admitted;   /* false: a submission would be refused */
    struct outlook outlook;
    struct ahead ahead;
    struct text *out;
};

/* --- members -------------------------------------------------------------------------------------------- */

static void write_entry(const struct question *question)
{
    struct core *core = question->core;
    const struct job *job = question->job;
    struct text *out = question->out;
    const struct queue_entry entry = queue_entry_of(core, job);
    const struct history_trust trust = history_trust(job->pattern);
    int64_t due_ms = queue_due_ms(core, &entry);
    text_printf(out, "{\"priority\":%d", (int)job->priority);
    field_write_wall(out, ",\"submitted_at\":", job->submitted_ms);
    if (due_ms != 0) {
        field_write_wall(out, ",\"due_at\":", due_ms);
    } else {
        text_append(out, ",\"due_at\":null");
    }
    field_write_seconds(out, ",\"estimate_s\":", entry.estimate_ms);
    text_printf(out, ",\"estimate_from\":{\"runs\":%lld,\"error_percent\":%lld}", (long long)trust.runs,
                (long long)trust.error_percent);
    text_printf(out, ",\"ahead\":%zu,\"ahead_more\":%s}", question->ahead.count,
                question->ahead.more ? "true" : "false");
}

static void write_start(const struct question *question)
{
    struct core *core = question->core;
    const struct forecast forecast = outlook_starts_now(&question->outlook)
                                         ? forecast_now(core)
                                         : forecast_start(core, question->job, &question->ahead);
    forecast_write(core, &forecast, question->out);
}

static void write_reason(const struct question *question)
{
    autotext struct text sentence = {0};
    enum wait_reason reason =
        reason_of(question->core, question->job, &question->outlook, &question->ahead, &sentence);
    text_printf(question->out, "{\"code\":\"%s\"", wait_reason_text(reason));
    field_write_text(question->out, ",\"text\":", sentence.bytes);
    text_append(question->out, "}");
}

/* --- explanations --------------------------------------------------------------------------------------- */

/* Explains a job that waits for GPUs. */
static void write_waiting(struct question *question)
{
    struct core *core = question->core;
    struct job *job = question->job;
    struct text *out = question->out;
    bool none = !question->admitted || (job->trial && outlook_starts_now(&question->outlook));
    text_append(out, ",\"reason\":");
    if (none) {
        text_append(out, "null");
    } else {
        write_reason(question);
    }
    text_append(out, ",\"turn\":");
    write_entry(question);
    text_append(out, ",\"nodes\":");
    node_filter_write(core, job, &question->outlook.reservations, out);
    text_append(out, ",\"start\":");
    if (question->admitted) {
        write_start(question);
    } else {
        text_append(out, "null");
    }
    text_append(out, ",\"smallest_change\":");
    if (outlook_starts_now(&question->outlook)) {
        text_append(out, "null");
    } else {
        advice_write(core, job, &question->outlook, &question->ahead, out);
    }
}

/* Explains a job that waits for something else, or has its GPUs. */
static void write_other(struct question *question)
{
    bool waits = question->job->state == JOB_HELD || question->job->state == JOB_BLOCKED;
    text_append(question->out, ",\"reason\":");
    if (waits) {
        write_reason(question);
        text_append(question->out, ",\"turn\":");
        write_entry(question);
        text_append(question->out, ",\"nodes\":");
        node_filter_write(question->core, question->job, NULL, question->out);
    } else {
        text_append(question->out, "null,\"turn\":null,\"nodes\":null");
    }
    text_append(question->out, ",\"start\":null,\"smallest_change\":null");
    if (question->job->kept_until_ms != 0) {
        autotext struct text kept = {0};
        record_kept(question->job, &kept);
        field_write_text(question->out, ",\"kept\":", kept.bytes);
    }
}

static void write_job(struct question *question)
{
    ahead_find(question->core, question->job, &question->ahead);
    if (question->job->batch != NULL) {
        place_consider(question->core, question->job, &question->outlook);
        write_waiting(question);
        outlook_finish(&question->outlook);
    } else {
        write_other(question);
    }
    ahead_finish(&question->ahead);
}

static void explain(struct core *core, struct job *job, struct text *out)
{
    struct question question = {.core = core, .job = job, .admitted = true, .out = out};
    field_write_wall(out, "{\"as_of\":", core->wall_ms);
    text_printf(out, ",\"id\":\"%s\",\"state\":\"%s\"", job->id, job_state_text(job->state));
    write_job(&question);
    text_append(out, "}");
}

/* --- plans ---------------------------------------------------------------------------------------------- */

static void write_refusal(const struct err *err, struct text *out)
{
    field_write_text(out, "{\"code\":", err_slug(err->code));
    field_write_text(out, ",\"field\":", err->field);
    field_write_text(out, ",\"detail\":", err->text);
    field_write_text(out, ",\"hint\":", err->hint);
    text_append(out, "}");
}

/* Whether a submission of the draft would be accepted. */
static bool admits(struct core *core, const struct draft *draft, struct err *err)
{
    struct resource_request request = draft->request;
    struct constraints *constraints = constraints_create(request.terms);
    request.constraints = constraints;
    bool sound = admission_check(core, &request, err) &&
                 account_admits(core, draft->project, draft->owner, &request, err);
    constraints_destroy(constraints);
    return sound;
}

static void plan(struct core *core, const struct input *input, struct text *out)
{
    struct err err;
    struct trial trial;
    const struct draft draft = draft_join(core, input->ask.spec, input->ask.owner, input->ask.environment);
    struct question question = {.core = core, .out = out};
    question.admitted = admits(core, &draft, &err);
    field_write_wall(out, "{\"as_of\":", core->wall_ms);
    text_printf(out, ",\"admitted\":%s,\"refusal\":", question.admitted ? "true" : "false");
    if (question.admitted) {
        text_append(out, "null");
    } else {
        write_refusal(&err, out);
    }
    trial_begin(core, &draft, NULL, &trial);
    question.job = trial.job;
    write_job(&question);
    trial_end(&trial);
    draft_leave(core, &draft);
    text_append(out, "}");
}

/* --- rehearsals ----------------------------------------------------------------------------------------- */

static bool rehearse(struct core *core, const struct job *job, struct text *out, struct err *err)
{
    if (job->batch == NULL) {
        return err_field(err, ERR_CONFLICT, "id", "name a job that is QUEUED or STAGING",
                         "job %s is %s, and waits for no GPUs", job->id, job_state_text(job->state));
    }
    struct ahead ahead;
    ahead_find(core, job, &ahead);
    field_write_wall(out, "{\"as_of\":", core->wall_ms);
    text_printf(out, ",\"id\":\"%s\",", job->id);
    rehearse_write(core, job, &ahead, out);
    text_append(out, "}");
    ahead_finish(&ahead);
    return true;
}

/* --- the input ------------------------------------------------------------------------------------------ */

static bool answer(struct core *core, const struct input *input, struct job *job, struct text *out,
                   struct err *err)
{
    switch (input->ask.kind) {
    case ASK_EXPLAIN:
        explain(core, job, out);
        return true;
    case ASK_PLAN:
        plan(core, input, out);
        return true;
    case ASK_REHEARSE:
        return rehearse(core, job, out, err);
    case ASK_QUEUE:
        queue_list_write(core, input, out);
        return true;
    }
    abort();
}

bool explain_take(struct core *core, const struct input *input, struct err *err)
{
    autotext struct text out = {0};
    bool of_job = input->ask.kind == ASK_EXPLAIN || input->ask.kind == ASK_REHEARSE;
    struct job *job = of_job ? job_live(core, input->ask.id, err) : NULL;
    core->asker_sees_all = input->ask.sees_all;
    if ((of_job && job == NULL) || !answer(core, input, job, &out, err)) {
        core->asker_sees_all = false;
        return false;
    }
    core->asker_sees_all = false;
    record_response(core, &out);
    return true;
}
