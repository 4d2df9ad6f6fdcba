/* SPDX-License-Identifier: Apache-2.0 */
/* Serves POST /v1/jobs/{id}/retry: the spec of a job that has ended becomes a new job of who asks, which says
 * in `retry_of` which job it repeats. It promises that the new job is checked and stored as a submission is,
 * with the blobs that the old one keeps. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/base/state.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/submit/submission.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

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
    submission_committed(&((struct retry *)ask)->job, ask->request);
}

static void finish(struct ask *ask)
{
    struct retry *retry = (struct retry *)ask;
    ask->request->server->submits--;
    submission_finish(&retry->job);
    free(retry->text);
}

/* Finds the job; an array is repeated as a whole. */
static bool find_ended(struct request *request, struct job_facts *job, struct err *err)
{
    if (!job_find(request, job, err)) {
        return false;
    }
    if (job->task >= 0) {
        return err_field(err, ERR_FIELD, "id", "name the array: all its tasks run again",
                         "job %s is task %lld of an array, and cannot be submitted again alone", job->id,
                         (long long)job->task);
    }
    if (!job_state_terminal(job->state)) {
        err_set(err, ERR_CONFLICT, "job %s has not ended: it is %s", job->id, job_state_text(job->state));
        return err_hint(err, "wait for its end, or cancel it first");
    }
    return true;
}

/* The spec as it was received, with the job that it is of. New reference. */
static json_t *read_spec(const struct request *request, const struct job_facts *job, struct err *err)
{
    autojson json_t *spec = specs_get(request->server->specs, job->key, err);
    json_t *copy = spec != NULL ? json_deep_copy(spec) : NULL;
    if (copy != NULL) {
        json_object_set_new(copy, "retry_of", json_string(job->id));
    }
    return copy;
}

/* A field that is refused now was good when the job was submitted: what it names has gone since. */
static bool explain_refusal(const struct job_facts *job, struct err *err)
{
    if (err->code == ERR_FIELD || err->code == ERR_UNKNOWN_FIELD) {
        err_hint(err, "what job %s named is gone or not yours: submit it again with its files", job->id);
    }
    return false;
}

bool jobs_retry(struct request *request, struct err *err)
{
    struct job_facts job;
    if (!request_only_fields(request->json, "", err) || !submission_allowed(request, err) ||
        !find_ended(request, &job, err)) {
        return false;
    }
    autojson json_t *spec = read_spec(request, &job, err);
    if (spec == NULL) {
        return false;
    }
    autoask struct retry *retry = ask_create(request, sizeof *retry, render);
    retry->ask.committed = committed;
    retry->ask.finish = finish;
    request->server->submits++;
    retry->text = json_text(spec);
    size_t length = strlen(retry->text);
    if (length > LIMIT_SUBMIT_BYTES) {
        return err_set(err, ERR_TOO_LARGE, "the spec of job %s is longer than %lld bytes", job.id,
                       (long long)LIMIT_SUBMIT_BYTES);
    }
    if (!submission_read(request, give(spec), retry->text, length, &retry->job, &retry->ask.writer.input,
                         err)) {
        return explain_refusal(&job, err);
    }
    text_reserve(&retry->ask.writer.answer, RECEIPT_BYTES);
    return ask_writer(give(retry), err);
}
