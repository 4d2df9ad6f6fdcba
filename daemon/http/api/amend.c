/* SPDX-License-Identifier: Apache-2.0 */
/* Changes a live job for a person: POST /v1/jobs/{id}/cancel, /hold and /release, PATCH /v1/jobs/{id}. The
 * answer is the job after the change. A job of somebody else looks like one that does not exist, and a job
 * that has ended says so. A canceled job may be canceled again. A PATCH with If-Match changes the job only as
 * its sender saw it. The core carries the changes out. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/wire/views.h"

/* How a kind of change is answered. */
struct amendment {
    int status; /* of the answer */
    enum job_state
        achieved; /* a job that has ended in this state has the change already; JOB_STATE_COUNT: none */
};

static const struct amendment change = {.status = 200, .achieved = JOB_STATE_COUNT};
static const struct amendment cancel = {.status = 202, .achieved = JOB_CANCELED};

/* --- asking the writer ---------------------------------------------------------------------------------- */

struct amending {
    struct ask ask;
    const struct amendment *amendment;
    struct text texts; /* the rows below borrow from it */
    struct job_birth birth;
    struct job_life life; /* before the change */
    struct array_row array;
};

/* Copies the job with the strings that its view shows. */
static void copy_job(struct amending *amending, const struct job_record *job)
{
    struct job_birth *birth = &amending->birth;
    struct job_life *life = &amending->life;
    const char **const strings[] = {&birth->id,       &birth->owner,    &birth->name,       &birth->project,
                                    &birth->gpu_type, &birth->array_id, &birth->program,    &birth->labels,
                                    &birth->retry_of, &life->pool,      &life->failed_node, &life->reason};
    const size_t count = sizeof strings / sizeof *strings;
    size_t room = 1;
    *birth = job->birth;
    *life = job->life;
    amending->array = job->array;
    birth->spec = NULL;
    for (size_t i = 0; i < count; i++) {
        room += *strings[i] != NULL ? strlen(*strings[i]) + 1 : 0;
    }
    text_reserve(&amending->texts, room); /* so that no string moves when the next one is appended */
    for (size_t i = 0; i < count; i++) {
        if (*strings[i] != NULL) {
            const char *kept = amending->texts.bytes + amending->texts.length;
            text_append_bytes(&amending->texts, *strings[i], strlen(*strings[i]) + 1);
            *strings[i] = kept;
        }
    }
}

/* The life that the request read is old if others have changed the job since. */
static const struct job_life *life_after(const struct amending *amending, const struct step *step)
{
    const struct job_life *life = job_newest_life(step);
    if (life != NULL) {
        return life;
    }
    return amending->life.seq == step->job.seq ? &amending->life : step->life;
}

static int render(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct amending *amending = writer->asker;
    const struct array_row *array = step->counts != NULL ? step->counts : &amending->array;
    struct job_view view;
    job_view_fill(&view, &amending->birth, life_after(amending, step), array);
    view.state = step->job.state;
    view.seq = step->job.seq;
    job_view_encode(&view, out);
    return amending->amendment->status;
}

static void finish(struct ask *ask)
{
    text_finish(&((struct amending *)ask)->texts);
}

static bool may_have_priority(const struct amending *amending, const struct job_record *job, struct err *err)
{
    const struct request *request = amending->ask.request;
    const struct input *input = &amending->ask.writer.input;
    return input->kind != INPUT_CHANGE || !input->change.sets_priority ||
           authorize_priority(request->server->projects, request->who, job->birth.project,
                              input->change.priority, job->life.priority, err);
}

static bool read_job(struct amending *amending, struct err *err)
{
    const struct request *request = amending->ask.request;
    autorows struct rows rows = reader_job(request->server->reader, request->argument, err);
    struct job_record job;
    text_clear(&amending->texts);
    if (rows_job(&rows, &job) && request_may_see(request, job.birth.owner, job.birth.project)) {
        copy_job(amending, &job);
        return request_may_change(request, job.birth.owner, job.birth.project, err) &&
               may_have_priority(amending, &job, err);
    }
    rows_close(&rows);
    return !rows.failed && job_missing(request, err);
}

static bool reply_ended(const struct amending *amending, struct err *err)
{
    struct request *request = amending->ask.request;
    if (amending->life.state != amending->amendment->achieved) {
        return err_set(err, ERR_CONFLICT, "job %s has ended: it is %s", request->argument,
                       job_state_text(amending->life.state));
    }
    struct text json = {0};
    struct job_view view;
    job_view_fill(&view, &amending->birth, &amending->life, &amending->array);
    job_view_encode(&view, &json);
    return request_reply_json(request, (unsigned)amending->amendment->status, &json);
}

/* The core knows live jobs only, and the job may have ended since it was read. */
static bool refused(struct ask *ask)
{
    struct amending *amending = (struct amending *)ask;
    struct err err;
    if (ask->writer.error.code != ERR_NOT_FOUND) {
        return false;
    }
    bool read = read_job(amending, &err);
    if (read && !job_state_terminal(amending->life.state)) {
        request_fail_with(ask->request, ERR_UNAVAILABLE, "job %s is about to end", ask->request->argument);
    } else if (!read || !reply_ended(amending, &err)) {
        request_fail(ask->request, &err);
    }
    return true;
}

/* Strings of the input live as long as the request. */
static bool amend(struct request *request, const struct input *input, const struct amendment *amendment,
                  struct err *err)
{
    autoask struct amending *amending = ask_create(request, sizeof *amending, render);
    struct ask *ask = &amending->ask;
    int64_t wall_ms = ask->writer.input.wall_ms;
    ask->writer.input = *input;
    ask->writer.input.wall_ms = wall_ms;
    ask->finish = finish;
    ask->refused = refused;
    amending->amendment = amendment;
    if (!read_job(amending, err)) {
        return false;
    }
    if (job_state_terminal(amending->life.state) && request->headers.idempotency_key == NULL) {
        return reply_ended(amending, err);
    } /* with a key, it may have been answered when the job still lived */
    return ask_writer(give(amending), err);
}

/* --- routes --------------------------------------------------------------------------------------------- */

bool amend_ask(struct request *request, struct err *err)
{
    const char *by = identity_owner(request->who);
    struct input input = {.kind = (enum input_kind)request->route->what};
    if (input.kind == INPUT_CANCEL) {
        input.cancel.id = request->argument;
        input.cancel.by = by;
    } else {
        input.hold.id = request->argument;
        input.hold.by = by;
    }
    return request_only_fields(request->json, "", err) &&
           amend(request, &input, input.kind == INPUT_CANCEL ? &cancel : &change, err);
}

/* The seq that an If-Match header names; -1: any, or there is no header. */
static bool read_match(const char *header, int64_t *ret_seq, struct err *err)
{
    *ret_seq = -1;
    size_t length = header != NULL ? strlen(header) : 0;
    if (header == NULL || strcmp(header, "*") == 0) {
        return true;
    }
    autofree char *number = length > 2 ? xstrndup(header + 1, length - 2) : xstrdup("");
    return (header[0] == '"' && header[length - 1] == '"' && text_to_int(number, 0, INT64_MAX, ret_seq)) ||
           err_field(err, ERR_FIELD, "If-Match",
                     "take it from the ETag of GET /v1/jobs/{id}, quotes included",
                     "If-Match must be one ETag of the job");
}

static bool read_change(const struct request *request, struct input *input, struct err *err)
{
    const json_t *json = request->json;
    if (!request_only_fields(json, "priority time_limit_s", err) ||
        !read_match(request->headers.if_match, &input->change.if_seq, err) ||
        !json_read_int(json, "priority", -LIMIT_PRIORITY, LIMIT_PRIORITY, &input->change.priority, err) ||
        !json_read_seconds(json, "time_limit_s", 0, LIMIT_TIME_MS, &input->change.time_limit_ms, err)) {
        return false;
    }
    input->change.sets_priority = json_is_number(json_object_get(json, "priority"));
    input->change.sets_time_limit = json_object_get(json, "time_limit_s") != NULL;
    return input->change.sets_priority || input->change.sets_time_limit ||
           err_field(err, ERR_FIELD, NULL, "give priority, time_limit_s, or both; null takes a limit away",
                     "nothing is to be changed");
}

bool amend_change(struct request *request, struct err *err)
{
    struct input input = {.kind = INPUT_CHANGE,
                          .change = {.id = request->argument, .by = identity_owner(request->who)}};
    return read_change(request, &input, err) && amend(request, &input, &change, err);
}
