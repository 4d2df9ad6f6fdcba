/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels a job: POST /v1/jobs/{id}/cancel. It promises that a job of somebody else is not told apart from
 * none, and that one that has ended says so, or that it was canceled already. How a gang is stopped is the
 * core's part. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/ask.h"
#include "daemon/http/job_lookup.h"
#include "daemon/http/parts.h"
#include "daemon/http/resources.h"
#include "proto/views.h"

struct cancel {
    struct ask ask;
    bool seen;
    struct text texts; /* what the rows below borrow */
    struct job_birth birth;
    struct job_life life; /* before the cancel */
};

/* Appends a string to a block that has room for it, so that what was kept before stays where it is. */
static char *keep(struct text *texts, const char *string)
{
    if (string == NULL) {
        return NULL;
    }
    size_t at = texts->length;
    text_append_bytes(texts, string, strlen(string) + 1);
    return texts->bytes + at;
}

static size_t room_for(const char *string)
{
    return string != NULL ? strlen(string) + 1 : 0;
}

static void copy_job(const struct job_record *job, void *closure)
{
    struct cancel *cancel = closure;
    const struct job_birth *birth = &job->birth;
    const struct job_life *life = &job->life;
    struct text *texts = &cancel->texts;
    cancel->seen = request_may_see(cancel->ask.request, birth->owner);
    text_reserve(texts, room_for(birth->id) + room_for(birth->owner) + room_for(birth->name) +
                            room_for(birth->project) + room_for(birth->gpu_type) + room_for(life->pool) +
                            room_for(life->failed_node) + room_for(life->reason) + 1);
    cancel->birth = *birth;
    cancel->life = *life;
    cancel->birth.id = keep(texts, birth->id);
    cancel->birth.owner = keep(texts, birth->owner);
    cancel->birth.name = keep(texts, birth->name);
    cancel->birth.project = keep(texts, birth->project);
    cancel->birth.gpu_type = keep(texts, birth->gpu_type);
    cancel->birth.spec = NULL;
    cancel->life.pool = keep(texts, life->pool);
    cancel->life.failed_node = keep(texts, life->failed_node);
    cancel->life.reason = keep(texts, life->reason);
}

static int render_cancel(const struct door_request *door, const struct step *step, struct text *out)
{
    const struct cancel *cancel = door->asker;
    const struct job_life *life = job_newest_life(step);
    struct job_view view;
    job_view_fill(&view, &cancel->birth, life != NULL ? life : &cancel->life);
    view.state = step->job.state;
    view.seq = step->job.seq;
    job_view_encode(&view, out);
    return 202;
}

static void cancel_finish(struct ask *ask)
{
    text_finish(&((struct cancel *)ask)->texts);
}

static bool read_job(struct cancel *cancel, struct err *err)
{
    const struct request *request = cancel->ask.request;
    bool found = false;
    text_clear(&cancel->texts);
    if (!reader_job(request->server->reader, request->argument, copy_job, cancel, &found, err)) {
        return false;
    }
    return cancel->seen || job_missing(request, err);
}

/* A job that was canceled may be canceled again; one that ended otherwise may not. */
static void reply_ended(const struct cancel *cancel)
{
    struct request *request = cancel->ask.request;
    if (cancel->life.state != JOB_CANCELED) {
        request_fail_with(request, ERR_CONFLICT, "job %s has ended: it is %s", request->argument,
                          job_state_text(cancel->life.state));
        return;
    }
    struct text json = {0};
    struct job_view view;
    job_view_fill(&view, &cancel->birth, &cancel->life);
    job_view_encode(&view, &json);
    request_reply_json(request, 202, &json);
}

/* The core knows live jobs only, and the job may have ended since it was read. */
static bool cancel_refused(struct ask *ask)
{
    struct cancel *cancel = (struct cancel *)ask;
    struct err err;
    if (ask->door.error.code != ERR_NOT_FOUND || !read_job(cancel, &err) ||
        !job_state_terminal(cancel->life.state)) {
        return false;
    }
    reply_ended(cancel);
    return true;
}

static void fill_input(struct cancel *cancel)
{
    const struct request *request = cancel->ask.request;
    struct input *input = &cancel->ask.door.input;
    input->kind = INPUT_CANCEL;
    input->cancel.id = request->argument;
    input->cancel.by = identity_owner(request->who);
    cancel->ask.refused = cancel_refused;
}

void cancel_job(struct request *request)
{
    struct err err;
    struct cancel *cancel = ask_create(request, sizeof *cancel, render_cancel);
    cancel->ask.finish = cancel_finish;
    fill_input(cancel);
    if (!request_only_fields(request->json, "", &err) || !read_job(cancel, &err)) {
        request_fail(request, &err);
        ask_destroy(&cancel->ask);
    } else if (job_state_terminal(cancel->life.state)) {
        reply_ended(cancel);
        ask_destroy(&cancel->ask);
    } else {
        ask_door(&cancel->ask);
    }
}
