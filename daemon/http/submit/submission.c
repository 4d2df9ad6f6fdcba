/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the spec of one job and makes the input of it. It promises that every field is checked before the
 * writer is asked, and that what the input borrows lives as long as the submission. The core has the rules of
 * jobs. */
#include "daemon/http/submit/submission.h"

#include <stdlib.h>

#include "daemon/http/api/dependencies.h"
#include "daemon/http/api/uploads.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/submitter.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/request/request.h"
#include "daemon/http/secrets/secrets.h"
#include "daemon/http/submit/images.h"
#include "daemon/store/store.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"
#include "proto/members.h"
#include "proto/trace_context.h"
#include "proto/wire/staging.h"
#include "proto/wire/views.h"

bool submission_allowed(const struct request *request, struct err *err)
{
    if (request->server->refusing) {
        return err_set(err, ERR_UNAVAILABLE, "the controller is ending");
    }
    return space_allows(request->server->space, (int64_t)request->body_length, err);
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* A search for blobs that are not there for the sender: neither they nor a job of theirs has brought them. */
struct blob_search {
    const struct submitter *submitter;
    int64_t created_ms; /* one that nothing uses and that was sent before this counts as gone */
    struct err *err;
};

static bool blob_exists(void *closure, const char *hash, const char *field)
{
    const struct blob_search *search = closure;
    const struct submitter *submitter = search->submitter;
    const struct server *server = submitter->server;
    uint8_t digest[32];
    if (text_from_hex(hash, digest, sizeof digest)) {
        const char *scope = authorize_sees_all(submitter->who) ? NULL : identity_owner(submitter->who);
        const char *owner = uploads_limit(server->uploads, scope, digest);
        autorows struct rows rows =
            reader_blob_that_stays(server->reader, digest, search->created_ms, owner, search->err);
        struct blob_row row;
        if (rows_blob(&rows, &row) || rows.failed) {
            return !rows.failed;
        }
    }
    return err_field(search->err, ERR_FIELD, field, "send it first with PUT /v1/blobs/{sha256}",
                     "%s names a blob that you have not sent", field);
}

/* Requirements that stand in the spec are stored as the blob that nodes fetch. */
static void store_requirements(struct submission *submission, int64_t wall_ms, struct input *input)
{
    if (submission->spec.environment.requirements == NULL) {
        return;
    }
    struct text *text = &submission->requirements_text;
    text_append(text, ""); /* of none, too, there are bytes */
    staging_requirements_text(&submission->spec, text);
    submission->requirements =
        (struct blob_row){.size = (int64_t)text->length, .bytes = text->bytes, .created_ms = wall_ms};
    hash_bytes(text->bytes, text->length, submission->requirements.hash);
    input->submit.requirements = &submission->requirements;
}

/* Gives the core the environment spec of the job. */
static void say_need(struct submission *submission, struct input *input)
{
    if (spec_environment_of(&submission->spec, input->submit.owner, &submission->environment)) {
        input->submit.environment = &submission->environment.core;
    }
}

static void draw_id(struct server *server, char out[ID_LENGTH + 1])
{
    uint8_t random[10];
    server_random(server, random, sizeof random);
    text_id_from_bytes(random, out);
}

/* The headers of the request say to which trace the job belongs, unless its spec does. What is malformed is
 * ignored, as the recommendation has it. The text gets the members, too, because it is what is stored. */
static void take_trace(const struct headers *headers, json_t *spec, const char *text, size_t *length,
                       struct text *out)
{
    struct trace_parent parent;
    if (headers == NULL || headers->traceparent == NULL ||
        !trace_parent_read(headers->traceparent, &parent) || json_object_get(spec, "traceparent") != NULL ||
        json_object_get(spec, "tracestate") != NULL) {
        return;
    }
    char written[TRACE_PARENT_BYTES];
    trace_parent_write(&parent, written);
    member_put_text(spec, "traceparent", written);
    size_t end = *length; /* of the members: an object ends with its last brace */
    while (end > 0 && text[end - 1] != '}') {
        end--;
    }
    text_append_bytes(out, text, end > 0 ? end - 1 : 0);
    member_separate(out);
    member_write_text(out, "\"traceparent\":", written);
    if (headers->tracestate != NULL && trace_state_is_sound(headers->tracestate)) {
        member_put_text(spec, "tracestate", headers->tracestate);
        member_write_text(out, ",\"tracestate\":", headers->tracestate);
    }
    text_append(out, "}");
    *length = out->length;
}

/* Only POST /v1/jobs waits for a registry. */
static bool check_image(const struct job_spec *spec, struct err *err)
{
    const char *field = images_tag_field(spec);
    return field == NULL ||
           err_field(err, ERR_FIELD, field, "write name@sha256:<64 hex digits>, or submit the job by itself",
                     "in a batch of jobs and in a schedule an image is named with its digest");
}

/* On a volume ranks write into the folder with which they begin. A node cannot check it: its spec does not
 * say which tasks run. */
static bool check_checkpoint(const struct job_spec *spec, struct err *err)
{
    int64_t tasks = spec->only != NULL ? task_list_count(spec->only) : spec->tasks;
    return spec->checkpoint_of == NULL || spec->checkpoint_volume == NULL || tasks <= 1 ||
           err_field(err, ERR_FIELD, "checkpoint_of", "leave it out, or submit one task (array.only)",
                     "checkpoint_of would give %lld tasks one folder on volume %s", (long long)tasks,
                     spec->checkpoint_volume);
}

bool submission_read(const struct submitter *submitter, json_t *spec, const char *text, size_t length,
                     struct submission *submission, struct input *ret_input, struct err *err)
{
    struct server *server = submitter->server;
    struct blob_search search = {submitter, server->wall_ms - LIMIT_BLOB_UNUSED_MS, err};
    take_trace(submitter->headers, spec, text, &length, &submission->body);
    if (!job_spec_decode(spec, server->config.lease_min_ms, &submission->spec, err) ||
        !check_image(&submission->spec, err) || !check_checkpoint(&submission->spec, err) ||
        !images_check(server, &submission->spec, err) ||
        !authorize_submit(server->projects, submitter->who, &submission->spec, err) ||
        !secrets_check(submitter, &submission->spec, err) ||
        !job_spec_each_blob(&submission->spec, blob_exists, &search) ||
        !dependencies_read(submitter, &submission->spec, &submission->dependencies, err)) {
        return false;
    }
    submission->shown = job_spec_shown(&submission->spec);
    submission->labels =
        json_object_size(submission->spec.labels) > 0 ? json_text(submission->spec.labels) : NULL;
    submission->length = length;
    draw_id(server, submission->id);
    *ret_input =
        (struct input){.kind = INPUT_SUBMIT,
                       .wall_ms = server->wall_ms,
                       .submit = {.id = submission->id,
                                  .owner = identity_owner(submitter->who),
                                  .spec = &submission->spec,
                                  .body = submission->body.length > 0 ? submission->body.bytes : text,
                                  .body_length = length,
                                  .shown = submission->shown,
                                  .labels = submission->labels,
                                  .dependencies = submission->dependencies,
                                  .dependency_count = submission->spec.dependency_count}};
    say_need(submission, ret_input);
    store_requirements(submission, server->wall_ms, ret_input);
    return true;
}

void submission_finish(struct submission *submission)
{
    spec_environment_finish(&submission->environment);
    text_finish(&submission->requirements_text);
    text_finish(&submission->body);
    job_spec_finish(&submission->spec);
    free(submission->shown);
    free(submission->labels);
    free(submission->dependencies);
}

/* --- made ----------------------------------------------------------------------------------------------- */

void submission_made(struct submission *submission, const struct step *step, struct text *out)
{
    bool placed = step->job.state == JOB_PLACED;
    submission->job_key = placed || submission->spec.tasks > 0 ? step->job.key : 0;
    job_receipt_encode(step->job.id, step->job.state, step->job.seq, out);
}

static bool upload_is_named(void *closure, const char *hash, const char *field)
{
    const struct submitter *submitter = closure;
    uint8_t digest[HASH_BYTES];
    if (text_from_hex(hash, digest, sizeof digest)) {
        uploads_remove(submitter->server->uploads, identity_owner(submitter->who), digest);
    }
    return true;
}

void submission_committed(struct submission *submission, const struct submitter *submitter)
{
    job_spec_each_blob(&submission->spec, upload_is_named, (void *)(uintptr_t)submitter);
    if (submission->job_key != 0) {
        specs_keep(submitter->server->specs, submission->job_key, submission->spec.json, submission->length);
    }
}
