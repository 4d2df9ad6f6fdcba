/* SPDX-License-Identifier: Apache-2.0 */
/* Serves POST /v1/jobs: one spec becomes one job, which is on disk before the answer leaves. */
#include "daemon/http/api/ask.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/submit/submission.h"
#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"

struct submit {
    struct ask ask;
    struct submission job;
};

static int render_submit(const struct writer_request *writer, const struct step *step, struct text *out)
{
    struct submit *submit = writer->asker;
    submission_made(&submit->job, step, out);
    return 201;
}

static void submit_committed(struct ask *ask)
{
    submission_committed(&((struct submit *)ask)->job, ask->request);
}

static void submit_finish(struct ask *ask)
{
    ask->request->server->submits--;
    submission_finish(&((struct submit *)ask)->job);
}

bool jobs_submit(struct request *request, struct err *err)
{
    if (!submission_allowed(request, err)) {
        return false;
    }
    autoask struct submit *submit = ask_create(request, sizeof *submit, render_submit);
    submit->ask.committed = submit_committed;
    submit->ask.finish = submit_finish;
    request->server->submits++;
    if (!submission_read(request, give(request->json), request->body, request->body_length, &submit->job,
                         &submit->ask.writer.input, err)) {
        return false;
    }
    submit->ask.subject = submit->job.id;
    text_reserve(&submit->ask.writer.answer,
                 RECEIPT_BYTES); /* here, so that one thread allocates and frees it */
    return ask_writer(give(submit), err);
}
