/* SPDX-License-Identifier: Apache-2.0 */
/* Answers questions: why a job waits, how a job would fare if it were submitted now, and which attempts would
 * have to be preempted for a job. A question changes no state, and its answer is made from the same state as
 * decisions. reason.c gives the reason, node_filter.c the nodes, forecast.c the start, and advice.c the
 * change. */
#include "daemon/core/explain/explain.h"

#include <string.h>

#include "daemon/core/explain/advice.h"
#include "daemon/core/explain/ahead.h"
#include "daemon/core/explain/forecast.h"
#include "daemon/core/explain/node_filter.h"
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
#include "proto/base/clock.h"

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

static void write_text(struct text *out, const char *key, const char *value)
{
    text_append(out, key);
    text_json_string(out, value, strlen(value));
}

static void write_wall(struct text *out, const char *key, int64_t wall_ms)
{
    char at[32];
    clock_format_wall(wall_ms, at, sizeof at);
    text_printf(out, "%s\"%s\"", key, at);
}

/* Writes a time of the core's clock. */
static void write_time(const struct core *core, struct text *out, const char *key, int64_t ms)
{
    write_wall(out, key, core->wall_ms + (ms - core->now_ms));
}

static void write_entry(const struct question *question)
{
    struct core *core = question->core;
    const struct job *job = question->job;
    struct text *out = question->out;
    const struct queue_entry entry = queue_entry_of(core, job);
    const struct history_trust trust = history_trust(job->pattern);
    int64_t due_ms = queue_due_ms(core, &entry);
    text_printf(out, "{\"priority\":%d", (int)job->priority);
    write_wall(out, ",\"submitted_at\":", job->submitted_ms);
    if (due_ms != 0) {
        write_wall(out, ",\"due_at\":", due_ms);
    } else {
        text_append(out, ",\"due_at\":null");
    }
    text_printf(out, ",\"estimate_s\":%lld.%03d", (long long)(entry.estimate_ms / 1000),
                (int)(entry.estimate_ms % 1000));
    text_printf(out, ",\"estimate_from\":{\"runs\":%lld,\"error_percent\":%lld}", (long long)trust.runs,
                (long long)trust.error_percent);
    text_printf(out, ",\"ahead\":%zu,\"ahead_more\":%s}", question->ahead.count,
                question->ahead.more ? "true" : "false");
}

static void write_window(const struct core *core, const struct forecast *forecast, struct text *out)
{
    if (forecast->beyond) {
        text_append(out, "{\"at\":null,\"earliest_at\":null,\"latest_at\":null");
        write_time(core, out, ",\"later_than\":", forecast->at_ms);
    } else {
        write_time(core, out, "{\"at\":", forecast->at_ms);
        write_time(core, out, ",\"earliest_at\":", forecast->earliest_ms);
        write_time(core, out, ",\"latest_at\":", forecast->latest_ms);
        text_append(out, ",\"later_than\":null");
    }
    text_printf(out, ",\"confidence\":\"%s\"}", confidence_text(forecast->confidence));
}

/* Whether the question's own step would place the job. */
static bool starts_now(const struct question *question)
{
    const struct outlook *outlook = &question->outlook;
    return outlook->reached && !outlook->unsettled && outlook->move == MOVE_PLACE;
}

static void write_start(const struct question *question)
{
    struct core *core = question->core;
    struct forecast forecast = {.known = true,
                                .at_ms = core->now_ms,
                                .earliest_ms = core->now_ms,
                                .latest_ms = core->now_ms,
                                .confidence = CONFIDENCE_HIGH};
    if (!starts_now(question)) {
        forecast = forecast_start(core, question->job, &question->ahead);
    }
    if (forecast.known) {
        write_window(core, &forecast, question->out);
    } else {
        text_append(question->out, "null");
    }
}

static void write_reason(const struct question *question)
{
    autotext struct text sentence = {0};
    enum wait_reason reason =
        reason_of(question->core, question->job, &question->outlook, &question->ahead, &sentence);
    text_printf(question->out, "{\"code\":\"%s\"", wait_reason_text(reason));
    write_text(question->out, ",\"text\":", sentence.bytes);
    text_append(question->out, "}");
}

/* --- explanations --------------------------------------------------------------------------------------- */

/* Explains a job that waits for GPUs. */
static void write_waiting(struct question *question)
{
    struct core *core = question->core;
    struct job *job = question->job;
    struct text *out = question->out;
    bool none = !question->admitted || (job->trial && starts_now(question));
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
    if (starts_now(question)) {
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
    write_wall(out, "{\"as_of\":", core->wall_ms);
    text_printf(out, ",\"id\":\"%s\",\"state\":\"%s\"", job->id, job_state_text(job->state));
    write_job(&question);
    text_append(out, "}");
}

/* --- plans ---------------------------------------------------------------------------------------------- */

static void write_refusal(const struct err *err, struct text *out)
{
    write_text(out, "{\"code\":", err_slug(err->code));
    write_text(out, ",\"field\":", err->field);
    write_text(out, ",\"detail\":", err->text);
    write_text(out, ",\"hint\":", err->hint);
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
    write_wall(out, "{\"as_of\":", core->wall_ms);
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
    write_wall(out, "{\"as_of\":", core->wall_ms);
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
    }
    abort();
}

bool explain_take(struct core *core, const struct input *input, struct err *err)
{
    autotext struct text out = {0};
    struct job *job = input->ask.kind != ASK_PLAN ? job_live(core, input->ask.id, err) : NULL;
    if ((input->ask.kind != ASK_PLAN && job == NULL) || !answer(core, input, job, &out, err)) {
        return false;
    }
    record_response(core, &out);
    return true;
}
