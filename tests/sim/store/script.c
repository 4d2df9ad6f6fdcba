/* SPDX-License-Identifier: Apache-2.0 */
/* Builds scripts. Each batch changes rows, so that no two successive states of the database are equal. A
 * batch changes only rows that an earlier one made. */
#include "tests/sim/store/script.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "tests/trace/harness/chance.h"

enum {
    MOST_CHANGES = 32,
    MOST_JOBS = 4096,
    LARGE_SPEC_BYTES = 1400 * 1024,
    BLOB_BYTES = 60 * 1024,
    WINDOW_BYTES = 20 * 1024
};

struct script_job {
    enum job_state state;
    int64_t seq, attempts;
    uint64_t attempt_id;
};

/* The state of the script so far. */
struct writer {
    struct script *script;
    struct batch *batch;
    struct chance chance;
    struct script_job jobs[MOST_JOBS]; /* by key */
    int64_t last_key, last_attempt_id, last_token, last_window;
};

static char *keep(struct writer *writer, char *text)
{
    struct script *script = writer->script;
    script->texts = xrealloc(script->texts, (script->text_count + 1) * sizeof *script->texts);
    return script->texts[script->text_count++] = text;
}

static struct change *add(struct writer *writer, enum change_kind kind)
{
    struct batch *batch = writer->batch;
    assert(batch->count < MOST_CHANGES);
    batch->changes[batch->count] = (struct change){.kind = kind};
    return &batch->changes[batch->count++];
}

static void add_event(struct writer *writer, int64_t key, enum event_kind kind)
{
    struct script_job *job = &writer->jobs[key];
    add(writer, CHANGE_EVENT_INSERT)->event = (struct event_row){.job_key = key,
                                                                 .seq = ++job->seq,
                                                                 .at_ms = 1000 + writer->last_key,
                                                                 .kind = kind,
                                                                 .attempt = job->attempts,
                                                                 .detail = "{\"by\": \"script\"}"};
}

static struct job_life life_of(const struct writer *writer, int64_t key)
{
    const struct script_job *job = &writer->jobs[key];
    return (struct job_life){.key = key,
                             .state = job->state,
                             .seq = job->seq,
                             .attempt = job->attempts,
                             .pool = job->attempts > 0 ? "default" : NULL,
                             .exit_code = job->state == JOB_SUCCEEDED ? 0 : -1,
                             .failed_rank = -1,
                             .cause = CAUSE_NONE};
}

/* A hash that is unique for each name, for blobs and first answers. */
static void mark_hash(uint8_t hash[32], int64_t number, uint8_t kind)
{
    memset(hash, kind, 32);
    memcpy(hash, &number, sizeof number);
}

/* --- submissions ---------------------------------------------------------------------------------------- */

static char *filled(struct writer *writer, const char *form, size_t size)
{
    char *text = xalloc(size + 1);
    size_t at = (size_t)snprintf(text, size, "%s%" PRId64 " ", form, writer->last_key);
    memset(text + at, ' ', size - at);
    text[size - 2] = '"';
    text[size - 1] = '}';
    text[size] = '\0';
    return keep(writer, text);
}

static void add_job(struct writer *writer, size_t spec_bytes)
{
    int64_t key = ++writer->last_key;
    assert(key < MOST_JOBS);
    add_event(writer, key, EVENT_SUBMITTED);
    struct change *job = add(writer, CHANGE_JOB_INSERT);
    job->job.birth = (struct job_birth){.key = key,
                                        .id = keep(writer, xprintf("job%013" PRId64, key * 7919 % 100003)),
                                        .owner = "alice",
                                        .name = "train",
                                        .project = "vision",
                                        .spec = filled(writer, "{\"name\": \"", spec_bytes),
                                        .spec_length = spec_bytes,
                                        .gpus = 1,
                                        .created_ms = 1000 + key,
                                        .task = -1};
    job->job.life = life_of(writer, key);
    struct change *reply = add(writer, CHANGE_REPLY_INSERT);
    reply->reply = (struct reply_row){.job_key = key, .status = 201, .at_ms = 1000 + key};
    mark_hash(reply->reply.scope, key, 1);
    mark_hash(reply->reply.body, key, 2);
    reply->reply.answer = keep(writer, xprintf("{\"seq\": %" PRId64 "}", key));
    reply->reply.answer_length = strlen(reply->reply.answer);
}

static void submit(struct writer *writer)
{
    for (uint64_t left = 1 + chance_below(&writer->chance, 4); left > 0; left--) {
        add_job(writer, 200 + (size_t)chance_below(&writer->chance, 6000));
    }
}

/* More than the cache holds, so pages reach the log before the commit. */
static void submit_large(struct writer *writer)
{
    for (int i = 0; i < 4; i++) {
        add_job(writer, LARGE_SPEC_BYTES);
    }
}

/* --- attempts ------------------------------------------------------------------------------------------- */

/* A job in that state; 0: none. */
static int64_t find(struct writer *writer, enum job_state state)
{
    if (writer->last_key == 0) {
        return 0;
    }
    int64_t first = 1 + (int64_t)chance_below(&writer->chance, (uint64_t)writer->last_key);
    for (int64_t i = 0; i < writer->last_key; i++) {
        int64_t key = 1 + (first + i) % writer->last_key;
        if (writer->jobs[key].state == state) {
            return key;
        }
    }
    return 0;
}

static void update_job(struct writer *writer, int64_t key, enum job_state state, enum event_kind kind)
{
    writer->jobs[key].state = state;
    add_event(writer, key, kind);
    add(writer, CHANGE_JOB_UPDATE)->job.life = life_of(writer, key);
}

static struct attempt_row attempt_of(const struct script_job *job, int64_t key, enum attempt_state state)
{
    return (struct attempt_row){.attempt_id = job->attempt_id,
                                .job_key = key,
                                .number = job->attempts,
                                .state = state,
                                .pool = "default",
                                .master_address = "10.0.0.1",
                                .master_port = 20000,
                                .created_ms = 5,
                                .failed_rank = -1};
}

static struct member_row member_of(const struct script_job *job, enum member_state state)
{
    return (struct member_row){
        .attempt_id = job->attempt_id, .node = "gpu-1", .local_ranks = 1, .devices = "0", .state = state};
}

static bool start(struct writer *writer)
{
    int64_t key = find(writer, JOB_QUEUED);
    if (key == 0) {
        return false;
    }
    struct script_job *job = &writer->jobs[key];
    job->attempts++;
    job->attempt_id = (uint64_t)1 << 32 | (uint64_t)++writer->last_attempt_id;
    add(writer, CHANGE_ATTEMPT_INSERT)->attempt = attempt_of(job, key, ATTEMPT_STARTED);
    add(writer, CHANGE_MEMBER_INSERT)->member = member_of(job, MEMBER_ORDERED);
    update_job(writer, key, JOB_RUNNING, EVENT_STARTED);
    return true;
}

static void add_result(struct writer *writer, uint64_t attempt_id)
{
    struct change *blob = add(writer, CHANGE_BLOB_PUT);
    blob->blob =
        (struct blob_row){.size = 1 + (int64_t)chance_below(&writer->chance, BLOB_BYTES), .created_ms = 6};
    mark_hash(blob->blob.hash, (int64_t)attempt_id, 3);
    blob->blob.bytes = filled(writer, "blob ", BLOB_BYTES + 16);
    add(writer, CHANGE_RANK_PUT)->rank =
        (struct rank_row){.attempt_id = attempt_id, .at_ms = 7, .out_bytes = 8};
    struct change *result = add(writer, CHANGE_RESULT_PUT);
    result->result = (struct result_row){.attempt_id = attempt_id,
                                         .kind = RESULT_VALUE,
                                         .size = blob->blob.size,
                                         .hash = blob->blob.hash,
                                         .json = "{\"accuracy\": 0.5}"};
}

static bool end(struct writer *writer)
{
    int64_t key = find(writer, JOB_RUNNING);
    if (key == 0) {
        return false;
    }
    const struct script_job *job = &writer->jobs[key];
    add_result(writer, job->attempt_id);
    add(writer, CHANGE_ATTEMPT_UPDATE)->attempt = attempt_of(job, key, ATTEMPT_ENDED);
    add(writer, CHANGE_MEMBER_UPDATE)->member = member_of(job, MEMBER_FLUSHED);
    update_job(writer, key, JOB_SUCCEEDED, EVENT_SUCCEEDED);
    add(writer, CHANGE_HISTORY_PUT)->history = (struct history_row){
        .project = "vision", .owner = "alice", .name = "train", .gpus = 1, .count = key, .ran_ms = 100 * key};
    add(writer, CHANGE_USAGE_PUT)->usage = (struct usage_row){.owner = "alice", .gpu_ms = 0.5 * (double)key};
    return true;
}

/* --- what people and nodes say -------------------------------------------------------------------------- */

static void put_node(struct writer *writer)
{
    add(writer, CHANGE_NODE_PUT)->node = (struct node_row){
        .name = keep(writer, xprintf("gpu-%d", (int)chance_below(&writer->chance, 5))),
        .boot_id = keep(writer, xprintf("boot-%zu", writer->script->text_count)),
        .host_id = "host",
        .version = "0.1.0",
        .address = "10.0.0.2",
        .pool = "default",
        .devices = "[{\"index\":0,\"type\":\"A10\"}]",
        .registered_ms = 18,
    };
}

static void make_token(struct writer *writer)
{
    struct change *token = add(writer, CHANGE_TOKEN_INSERT);
    token->token = (struct token_row){.role = ROLE_USER, .owner = "bob", .created_ms = 9};
    token->token.id = keep(writer, xprintf("token%" PRId64, ++writer->last_token));
    mark_hash(token->token.secret, writer->last_token, 4);
    if (writer->last_token > 1) {
        add(writer, CHANGE_TOKEN_REVOKE)->token.id =
            keep(writer, xprintf("token%" PRId64, writer->last_token - 1));
    }
}

/* The nodes of a window that goes leave free pages, which the file gives back. */
static void make_window(struct writer *writer)
{
    if (writer->last_window > 0) {
        add(writer, CHANGE_WINDOW_DELETE)->window.id =
            keep(writer, xprintf("w%" PRId64, writer->last_window));
    }
    add(writer, CHANGE_WINDOW_INSERT)->window =
        (struct window_row){.id = keep(writer, xprintf("w%" PRId64, ++writer->last_window)),
                            .pool = "default",
                            .nodes = filled(writer, "{\"nodes\": \"", WINDOW_BYTES),
                            .from_ms = 1,
                            .until_ms = 2,
                            .owner = "admin"};
    add(writer, CHANGE_LIMITS_PUT)->limits =
        (struct limits_row){.kind = ACCOUNT_USER,
                            .name = "bob",
                            .limits = keep(writer, xprintf("{\"gpus\": %" PRId64 "}", writer->last_window))};
    add(writer, CHANGE_SHRINK)->pages = 1 + (int64_t)chance_below(&writer->chance, WINDOW_BYTES / 4096);
}

static void write_batch(struct writer *writer)
{
    uint64_t kind = chance_below(&writer->chance, 100);
    if ((kind < 25 && start(writer)) || (kind >= 25 && kind < 50 && end(writer))) {
        return;
    }
    if (kind < 60) {
        put_node(writer);
    } else if (kind < 65) {
        make_token(writer);
    } else if (kind < 75) {
        make_window(writer);
    } else {
        submit(writer);
    }
}

struct script *script_create(uint64_t seed, size_t batches, bool large)
{
    assert(batches <= 1000);
    struct script *script = xzalloc(sizeof *script);
    struct writer *writer = xzalloc(sizeof *writer);
    script->batches = xzalloc(batches * sizeof *script->batches);
    script->count = batches;
    writer->script = script;
    writer->chance.state = seed * 2 + 1;
    for (size_t i = 0; i < batches; i++) {
        writer->batch = &script->batches[i];
        writer->batch->changes = xzalloc(MOST_CHANGES * sizeof *writer->batch->changes);
        if (large && i == batches - 3) {
            submit_large(writer);
        } else {
            write_batch(writer);
        }
    }
    free(writer);
    return script;
}

void script_destroy(struct script *script)
{
    for (size_t i = 0; i < script->count; i++) {
        free(script->batches[i].changes);
    }
    for (size_t i = 0; i < script->text_count; i++) {
        free(script->texts[i]);
    }
    free(script->batches);
    free(script->texts);
    free(script);
}
