/* SPDX-License-Identifier: Apache-2.0 */
/* Serves POST /v1/jobs/{id}/retry: the spec of a job that has ended becomes a new job of who asks, which says
 * in `retry_of` which job it repeats. It promises that the new job is checked and stored as a submission is,
 * with the blobs that the old one keeps. clone.c changes the spec first. */
#include "daemon/http/submit/retry.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/blob/checkpoints/checkpoints.h"
#include "daemon/http/api/ask.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/submitter.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/submit/submission.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/spec/jobspec.h"
#include "proto/spec/tasks.h"

struct retry {
    struct ask ask;
    struct submission job;
    char *text; /* of the spec; the input borrows it */
};

static int render(const struct writer_request *writer, const struct step *step, struct text *out)
{
    struct retry *retry = writer->asker;
    submission_made(&retry->job, step, out);
    return 201;
}

static void committed(struct ask *ask)
{
    const struct submitter submitter = request_submitter(ask->request);
    submission_committed(&((struct retry *)ask)->job, &submitter);
}

static void finish(struct ask *ask)
{
    struct retry *retry = (struct retry *)ask;
    ask->request->server->submits--;
    submission_finish(&retry->job);
    free(retry->text);
}

/* Whether the new job may begin with a checkpoint that the old one has, or has begun with: they are of one
 * owner. Each task of an array has a checkpoint of its own: one alone begins with it, an array without any.
 */
static bool may_go_on(const struct request *request, const struct job_facts *job)
{
    struct job_record old;
    struct err err;
    autorows struct rows rows = reader_job(request->server->reader, job->id, &err);
    return job->tasks == 0 && rows_job(&rows, &old) &&
           strcmp(old.birth.owner, identity_owner(request->who)) == 0;
}

/* The job whose checkpoint the old one would begin its next attempt with; NULL: there is none. On a volume
 * the folder stays that of the first job, and nobody looks whether it holds anything. */
static const char *checkpoint_source(const struct request *request, const struct job_facts *job,
                                     const json_t *stored)
{
    const struct checkpoints *checkpoints = request->server->config.checkpoints;
    const char *before = json_string_of(stored, "checkpoint_of");
    if (!may_go_on(request, job)) {
        return NULL;
    }
    if (json_string_of(stored, "checkpoint_volume") != NULL) {
        return job_spec_checkpoint_key(stored, job->id);
    }
    return checkpoints_has(checkpoints, job->id)                    ? job->id
           : before != NULL && checkpoints_has(checkpoints, before) ? before
                                                                    : NULL;
}

/* A field that is refused now was good when the job was submitted: what it names has gone since. */
static bool explain_refusal(const struct job_facts *job, struct err *err)
{
    if (err->code == ERR_FIELD || err->code == ERR_UNKNOWN_FIELD) {
        err_hint(err, "what job %s named is gone or not yours: submit it again with its files", job->id);
    }
    return false;
}

bool retry_allowed(struct request *request, const json_t *stored, struct err *err)
{
    struct job_spec spec;
    struct job_facts job;
    struct err ignored;
    if (!job_spec_decode(json_deep_copy(stored), request->server->config.lease_min_ms, &spec, &ignored)) {
        return true; /* then it is refused as a submission */
    }
    bool hides = job_spec_hides(&spec);
    job_spec_finish(&spec);
    if (!hides || job_find_to_change(request, &job, err)) {
        return true;
    }
    return err->code == ERR_FORBIDDEN &&
           err_hint(err, "it has values that are not shown: only who may change the job may have another one "
                         "with them");
}

bool retry_submit(struct request *request, const struct job_facts *job, json_t *spec, struct err *err)
{
    autoask struct retry *retry = ask_create(request, sizeof *retry, render);
    retry->ask.committed = committed;
    retry->ask.finish = finish;
    retry->ask.subject = retry->job.id;
    request->server->submits++;
    retry->text = json_text(spec);
    size_t length = strlen(retry->text);
    if (length > LIMIT_SUBMIT_BYTES) {
        json_decref(spec);
        return err_set(err, ERR_TOO_LARGE, "the spec of job %s is longer than %lld bytes", job->id,
                       (long long)LIMIT_SUBMIT_BYTES);
    }
    const struct submitter submitter = request_submitter(request);
    if (!submission_read(&submitter, spec, retry->text, length, &retry->job, &retry->ask.writer.input, err)) {
        return explain_refusal(job, err);
    }
    text_reserve(&retry->ask.writer.answer, RECEIPT_BYTES);
    return ask_writer(give(retry), err);
}

/* --- tasks ---------------------------------------------------------------------------------------------- */

void retry_only(json_t *spec, const char *tasks)
{
    json_t *array = json_object_get(spec, "array");
    if (!json_is_object(array)) {
        json_object_set_new(spec, "array", json_object());
        array = json_object_get(spec, "array");
    }
    json_object_set_new(array, "only", json_string(tasks));
}

/* How many tasks the spec makes; 0: it is none of an array. */
static int64_t tasks_of(const json_t *spec)
{
    const json_t *sweep = json_object_get(spec, "sweep");
    return json_is_object(sweep)
               ? task_values_count(sweep)
               : json_integer_value(json_object_get(json_object_get(spec, "array"), "tasks"));
}

/* A task runs again as an array of itself alone, with its number and its values. */
static bool choose_tasks(const json_t *body, const struct job_facts *job, json_t *spec, struct err *err)
{
    const char *wanted = NULL;
    char own[24];
    if (!json_read_text(body, "tasks", &wanted, err)) {
        return false;
    }
    if (job->task >= 0 && wanted == NULL) {
        snprintf(own, sizeof own, "%lld", (long long)job->task);
        retry_only(spec, own);
        return true;
    }
    if (wanted == NULL) {
        return true;
    }
    if (job->tasks == 0) {
        return err_field(err, ERR_FIELD, "tasks", "leave it out", "job %s is no array", job->id);
    }
    int64_t tasks = tasks_of(spec);
    autofree struct task_list *list = task_list_read(wanted, tasks);
    if (list == NULL) {
        autofree char *hint = xprintf("\"3,7,10-20\" for instance: at most %d parts, from 0 to %lld",
                                      LIMIT_TASK_RANGES, (long long)tasks - 1);
        return err_field(err, ERR_FIELD, "tasks", hint, "tasks must be a list of tasks of the array");
    }
    retry_only(spec, wanted);
    return true;
}

/* --- the route ------------------------------------------------------------------------------------------ */

static bool find_ended(struct request *request, struct job_facts *job, struct err *err)
{
    if (!job_find(request, job, err)) {
        return false;
    }
    if (!job_state_terminal(job->state)) {
        err_set(err, ERR_CONFLICT, "job %s has not ended: it is %s", job->id, job_state_text(job->state));
        return err_hint(err, "wait for its end, or cancel it first");
    }
    return true;
}

bool jobs_retry(struct request *request, struct err *err)
{
    struct job_facts job;
    bool fresh = false;
    if (!request_only_fields(request->json, "fresh tasks", err) ||
        !json_read_bool(request->json, "fresh", &fresh, err) || !submission_allowed(request, err) ||
        !find_ended(request, &job, err)) {
        return false;
    }
    autojson json_t *stored = specs_get(request->server->specs, job.key, err);
    autojson json_t *spec = stored != NULL ? json_deep_copy(stored) : NULL;
    if (spec == NULL || !retry_allowed(request, stored, err) ||
        !choose_tasks(request->json, &job, spec, err)) {
        return false;
    }
    json_object_set_new(spec, "retry_of", json_string(job.id));
    json_object_del(spec, "checkpoint_of");
    const char *source = fresh ? NULL : checkpoint_source(request, &job, stored);
    if (source != NULL) {
        json_object_set_new(spec, "checkpoint_of", json_string(source));
    }
    return retry_submit(request, &job, give(spec), err);
}
