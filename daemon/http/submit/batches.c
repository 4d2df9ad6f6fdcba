/* SPDX-License-Identifier: Apache-2.0 */
/* Serves POST /v1/jobs:batch: many specs, one transaction, one answer with a part for each spec. A spec that
 * is refused does not stop the others. Reading 1,000 specs takes 10 ms and more, which nobody else shall wait
 * for: so one batch at a time is read, for BATCH_TURN_US in a turn of the loop, and owners take turns. As
 * soon as it is read, the whole of it goes to the writer, while the next one is read. */
#include "daemon/http/submit/batches.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/fair_queue.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/submitter.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/request/senders.h"
#include "daemon/http/submit/spec_list.h"
#include "daemon/http/submit/submission.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"
#include "proto/members.h"
#include "proto/wire/views.h"

struct batches {
    struct fair_queue queue; /* those that are not read yet; the one that is read is served */
    size_t written;          /* those that are with the writer */
};

/* One spec: a job or a refusal. */
struct item {
    struct submission *submission; /* NULL: refused before the writer was asked */
    struct err *refusal;           /* NULL: not refused by then */
    bool made;
};

struct batch {
    struct ask ask;
    struct fair_entry entry;
    struct spec_list list;
    struct item *items;
    size_t count, room;
    struct input *inputs; /* of those that are not refused */
    size_t input_count, input_room;
    size_t rendered; /* items; of the writer's thread */
    char detail[32]; /* for the audit */
    bool with_writer;
};

struct batches *batches_create(void)
{
    struct batches *batches = xzalloc(sizeof *batches);
    batches->queue.limit = LIMIT_BATCHES;
    batches->queue.owner_limit = LIMIT_BATCHES_OWNER;
    return batches;
}

void batches_destroy(struct batches *batches)
{
    assert(batches == NULL || (batches->queue.waiting == NULL && batches->queue.served == NULL));
    free(batches);
}

static struct batch *batch_of(const struct fair_entry *entry)
{
    return (struct batch *)((uintptr_t)entry - offsetof(struct batch, entry));
}

/* --- the answer ----------------------------------------------------------------------------------------- */

static void render_refusal(const struct err *refusal, struct text *out)
{
    int status = err_http(refusal->code);
    member_write_int(out, "{\"status\":", status != 0 ? status : err_http(ERR_INTERNAL));
    text_append(out, ",\"error\":");
    problem_encode(refusal, out);
    text_append(out, "}");
}

/* Up to the next item that the writer was asked for. */
static void render_refused(struct batch *batch, struct text *out)
{
    if (batch->rendered == 0) {
        text_append(out, "{\"jobs\":[");
    }
    for (; batch->rendered < batch->count && batch->items[batch->rendered].refusal != NULL;
         batch->rendered++) {
        member_separate(out);
        render_refusal(batch->items[batch->rendered].refusal, out);
    }
}

static void render_item(const struct writer_request *writer, size_t index, const struct step *step,
                        struct text *out)
{
    struct batch *batch = writer->asker;
    render_refused(batch, out);
    struct item *item = &batch->items[batch->rendered++];
    member_separate(out);
    item->made = step->ok;
    if (step->ok) {
        text_append(out, "{\"status\":201,\"job\":");
        submission_made(item->submission, step, out);
        text_append(out, "}");
    } else {
        render_refusal(&step->err, out);
    }
}

static int render_end(const struct writer_request *writer, const struct step *step, struct text *out)
{
    struct batch *batch = writer->asker;
    render_refused(batch, out);
    text_append(out, "]}");
    return 200;
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void batch_committed(struct ask *ask)
{
    struct batch *batch = (struct batch *)ask;
    const struct submitter submitter = request_submitter(ask->request);
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->items[i].made) {
            submission_committed(batch->items[i].submission, &submitter);
        }
    }
}

static void batch_finish(struct ask *ask)
{
    struct batch *batch = (struct batch *)ask;
    struct server *server = ask->request->server;
    fair_queue_remove(&server->batches->queue, &batch->entry);
    server->batches->written -= batch->with_writer;
    server->submits--;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->items[i].submission != NULL) {
            submission_finish(batch->items[i].submission);
            free(batch->items[i].submission);
        }
        free(batch->items[i].refusal);
    }
    free(batch->items);
    free(batch->inputs);
}

/* The request ends before the batch was read: the controller ends. */
static void request_gone(void *state)
{
    ask_destroy(state);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static bool read_spec(const struct batch *batch, const char *text, size_t length,
                      struct submission *submission, struct input *ret_input, struct err *err)
{
    if (length > LIMIT_SUBMIT_BYTES) {
        return err_set(err, ERR_TOO_LARGE, "the spec is longer than %lld bytes",
                       (long long)LIMIT_SUBMIT_BYTES);
    }
    autojson json_t *json = json_parse(text, length, err);
    if (json == NULL) {
        return false;
    }
    if (!json_is_object(json)) {
        return err_set(err, ERR_MALFORMED, "the spec is JSON, but not an object");
    }
    const struct submitter submitter = request_submitter(batch->ask.request);
    return submission_read(&submitter, give(json), text, length, submission, ret_input, err);
}

static void add_spec(struct batch *batch, const char *text, size_t length)
{
    struct err err;
    struct item item = {.submission = xzalloc(sizeof *item.submission)};
    XGROW(batch->inputs, batch->input_count, batch->input_room, 64);
    if (read_spec(batch, text, length, item.submission, &batch->inputs[batch->input_count], &err)) {
        batch->input_count++;
    } else {
        submission_finish(item.submission);
        free(give(item.submission));
        item.refusal = xzalloc(sizeof *item.refusal);
        *item.refusal = err;
    }
    XGROW(batch->items, batch->count, batch->room, 64);
    batch->items[batch->count++] = item;
}

enum reading { READING_MORE, READING_DONE, READING_FAILED };

static enum reading read_next(struct batch *batch, struct err *err)
{
    const char *text;
    size_t length;
    if (!spec_list_next(&batch->list, &text, &length, err)) {
        return READING_FAILED;
    }
    if (text == NULL && batch->count == 0) {
        err_set(err, ERR_MALFORMED, "the batch has no job");
        err_hint(err, "send a list of job specs, or one a line as application/x-ndjson");
        return READING_FAILED;
    }
    if (text == NULL) {
        return READING_DONE;
    }
    if (batch->count == LIMIT_BATCH_JOBS) {
        err_set(err, ERR_TOO_LARGE, "the batch has more than %d jobs", LIMIT_BATCH_JOBS);
        err_hint(err, "send the others in another batch");
        return READING_FAILED;
    }
    add_spec(batch, text, length);
    return READING_MORE;
}

/* --- turns ---------------------------------------------------------------------------------------------- */

static void fail(struct batch *batch, const struct err *err)
{
    struct request *request = batch->ask.request;
    request->state_finish = NULL;
    senders_take_back(request, 0);
    ask_destroy(&batch->ask);
    request_fail(request, err);
}

static bool give_to_writer(struct batch *batch, struct err *err)
{
    struct request *request = batch->ask.request;
    struct batches *batches = request->server->batches;
    if (!submission_allowed(request, err)) {
        return false;
    }
    fair_queue_remove(&batches->queue, &batch->entry);
    batch->with_writer = true;
    batches->written++;
    batch->ask.writer.inputs = batch->inputs;
    batch->ask.writer.input_count = batch->input_count;
    snprintf(batch->detail, sizeof batch->detail, "{\"jobs\":%zu}", batch->input_count);
    batch->ask.detail = batch->detail;
    return true;
}

/* The batch is read: from here on it is the writer's. */
static void hand_over(struct batch *batch)
{
    struct err err;
    struct request *request = batch->ask.request;
    if (!give_to_writer(batch, &err)) {
        fail(batch, &err);
        return;
    }
    request->state_finish = NULL;
    if (!ask_writer(batch, &err)) {
        senders_take_back(request, 0);
        request_fail(request, &err);
    }
}

static void read_piece(struct batch *batch)
{
    struct err err;
    enum reading reading;
    int64_t begin_us = clock_boot_us(), took_us;
    do {
        reading = read_next(batch, &err);
        took_us = clock_boot_us() - begin_us;
    } while (reading == READING_MORE && took_us < BATCH_TURN_US);
    senders_charge(batch->ask.request, took_us);
    if (reading == READING_DONE) {
        hand_over(batch);
    } else if (reading == READING_FAILED) {
        fail(batch, &err);
    }
}

bool batches_wait(const struct batches *batches)
{
    return batches->written < LIMIT_BATCHES_WRITTEN &&
           (batches->queue.served != NULL || batches->queue.waiting != NULL);
}

void batches_turn(struct batches *batches)
{
    if (!batches_wait(batches)) {
        return;
    }
    fair_queue_serve(&batches->queue);
    read_piece(batch_of(batches->queue.served));
}

bool batches_submit(struct request *request, struct err *err)
{
    struct batches *batches = request->server->batches;
    if (!submission_allowed(request, err)) {
        return false;
    }
    autoask struct batch *batch = ask_create(request, sizeof *batch, render_end);
    batch->ask.committed = batch_committed;
    batch->ask.finish = batch_finish;
    batch->ask.writer.kind = WRITER_INPUTS;
    batch->ask.writer.render_each = render_item;
    request->server->submits++;
    if (!spec_list_open(&batch->list, request->body != NULL ? request->body : "", request->body_length,
                        headers_body_is_lines(&request->headers), err)) {
        return false;
    }
    if (!fair_queue_add(&batches->queue, &batch->entry, identity_owner(request->who))) {
        err_set(err, ERR_TOO_MANY, "too many batches of jobs wait to be read");
        return err_hint(err, "at most %d wait of one user, and %d in all", LIMIT_BATCHES_OWNER,
                        LIMIT_BATCHES);
    }
    request->state = give(batch);
    request->state_finish = request_gone;
    senders_hand_on(request);
    return request_wait(request);
}
