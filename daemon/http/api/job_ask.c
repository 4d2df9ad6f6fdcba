/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what all changes of one live job by a person share: finding the job, asking the writer, answering with
 * the job as it then is. It promises that a job of somebody else is not told apart from none, and that one
 * that has ended says so. What is changed is the core's part. */
#include "daemon/http/api/job_ask.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/wire/views.h"

struct job_asking {
    struct ask ask;
    const struct job_ask_kind *kind;
    struct text texts; /* what the rows below borrow */
    struct job_birth birth;
    struct job_life life; /* before the change */
    struct array_row array;
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

static void copy_job(struct job_asking *asking, const struct job_record *job)
{
    const struct job_birth *birth = &job->birth;
    const struct job_life *life = &job->life;
    struct text *texts = &asking->texts;
    text_reserve(texts, room_for(birth->id) + room_for(birth->owner) + room_for(birth->name) +
                            room_for(birth->project) + room_for(birth->gpu_type) + room_for(life->pool) +
                            room_for(life->failed_node) + room_for(life->reason) + room_for(birth->array_id) +
                            1);
    asking->birth = *birth;
    asking->life = *life;
    asking->array = job->array;
    asking->birth.array_id = keep(texts, birth->array_id);
    asking->birth.id = keep(texts, birth->id);
    asking->birth.owner = keep(texts, birth->owner);
    asking->birth.name = keep(texts, birth->name);
    asking->birth.project = keep(texts, birth->project);
    asking->birth.gpu_type = keep(texts, birth->gpu_type);
    asking->birth.spec = NULL;
    asking->life.pool = keep(texts, life->pool);
    asking->life.failed_node = keep(texts, life->failed_node);
    asking->life.reason = keep(texts, life->reason);
}

/* What the request found when it was read is old when others changed the job before its turn came. */
static const struct job_life *life_after(const struct job_asking *asking, const struct step *step)
{
    const struct job_life *life = job_newest_life(step);
    if (life != NULL) {
        return life;
    }
    return asking->life.seq == step->job.seq ? &asking->life : step->life;
}

static int render(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct job_asking *asking = writer->asker;
    const struct array_row *array = step->counts != NULL ? step->counts : &asking->array;
    struct job_view view;
    job_view_fill(&view, &asking->birth, life_after(asking, step), array);
    view.state = step->job.state;
    view.seq = step->job.seq;
    job_view_encode(&view, out);
    return asking->kind->status;
}

static void finish(struct ask *ask)
{
    text_finish(&((struct job_asking *)ask)->texts);
}

static bool read_job(struct job_asking *asking, struct err *err)
{
    const struct request *request = asking->ask.request;
    autorows struct rows rows = reader_job(request->server->reader, request->argument, err);
    struct job_record job;
    text_clear(&asking->texts);
    if (rows_job(&rows, &job) && request_may_see(request, job.birth.owner)) {
        copy_job(asking, &job);
        return true;
    }
    rows_close(&rows);
    return !rows.failed && job_missing(request, err);
}

static bool reply_ended(const struct job_asking *asking, struct err *err)
{
    struct request *request = asking->ask.request;
    if (asking->life.state != asking->kind->achieved) {
        return err_set(err, ERR_CONFLICT, "job %s has ended: it is %s", request->argument,
                       job_state_text(asking->life.state));
    }
    struct text json = {0};
    struct job_view view;
    job_view_fill(&view, &asking->birth, &asking->life, &asking->array);
    job_view_encode(&view, &json);
    return request_reply_json(request, (unsigned)asking->kind->status, &json);
}

/* The core knows live jobs only, and the job may have ended since it was read. */
static bool refused(struct ask *ask)
{
    struct job_asking *asking = (struct job_asking *)ask;
    struct err err;
    if (ask->writer.error.code != ERR_NOT_FOUND || !read_job(asking, &err) ||
        !job_state_terminal(asking->life.state)) {
        return false;
    }
    if (!reply_ended(asking, &err)) {
        request_fail(ask->request, &err);
    }
    return true;
}

bool job_ask(struct request *request, const struct input *input, const struct job_ask_kind *kind,
             struct err *err)
{
    autoask struct job_asking *asking = ask_create(request, sizeof *asking, render);
    struct ask *ask = &asking->ask;
    int64_t wall_ms = ask->writer.input.wall_ms;
    ask->writer.input = *input;
    ask->writer.input.wall_ms = wall_ms;
    ask->finish = finish;
    ask->refused = refused;
    asking->kind = kind;
    if (!read_job(asking, err)) {
        return false;
    }
    if (job_state_terminal(asking->life.state) && request->headers.idempotency_key == NULL) {
        return reply_ended(asking, err);
    } /* with a key, it may have been answered when the job still lived */
    return ask_writer(give(asking), err);
}
