/* SPDX-License-Identifier: Apache-2.0 */
/* Serves POST /v1/jobs: one spec becomes one job, which is on disk before the answer leaves. An image that is
 * named by a tag gets its digest before. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/submitter.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/submit/images.h"
#include "daemon/http/submit/submission.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"

struct submit {
    struct ask ask;
    struct submission job;
    char *text; /* of a spec whose image got its digest; NULL: the body is it */
};

static int render_submit(const struct writer_request *writer, const struct step *step, struct text *out)
{
    struct submit *submit = writer->asker;
    submission_made(&submit->job, step, out);
    return 201;
}

static void submit_committed(struct ask *ask)
{
    const struct submitter submitter = request_submitter(ask->request);
    submission_committed(&((struct submit *)ask)->job, &submitter);
}

static void submit_finish(struct ask *ask)
{
    ask->request->server->submits--;
    submission_finish(&((struct submit *)ask)->job);
    free(((struct submit *)ask)->text);
}

/* pinned: the spec is no longer that of the body. */
static bool submit_spec(struct request *request, bool pinned, struct err *err)
{
    autoask struct submit *submit = ask_create(request, sizeof *submit, render_submit);
    submit->ask.committed = submit_committed;
    submit->ask.finish = submit_finish;
    request->server->submits++;
    submit->text = pinned ? json_text(request->json) : NULL;
    const char *text = pinned ? submit->text : request->body;
    size_t length = pinned ? strlen(text) : request->body_length;
    const struct submitter submitter = request_submitter(request);
    if (!submission_read(&submitter, give(request->json), text, length, &submit->job,
                         &submit->ask.writer.input, err)) {
        return false;
    }
    submit->ask.subject = submit->job.id;
    text_reserve(&submit->ask.writer.answer,
                 RECEIPT_BYTES); /* here, so that one thread allocates and frees it */
    return ask_writer(give(submit), err);
}

static bool submit_pinned(struct request *request, struct err *err)
{
    return submit_spec(request, true, err);
}

bool jobs_submit(struct request *request, struct err *err)
{
    if (!submission_allowed(request, err)) {
        return false;
    }
    return images_need(request->json) ? images_pin(request, submit_pinned, err)
                                      : submit_spec(request, false, err);
}
