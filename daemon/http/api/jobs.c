/* SPDX-License-Identifier: Apache-2.0 */
/* Serves jobs: submit, list, show, wait. A person sees only its own jobs. A list pages without gaps or
 * repetitions while jobs come in. A wait misses no change. The core has the rules of jobs. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/api/dependencies.h"
#include "daemon/http/api/uploads.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/waiters.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/spec_environment.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"
#include "proto/members.h"
#include "proto/wire/staging.h"
#include "proto/wire/views.h"

/* --- submit --------------------------------------------------------------------------------------------- */

struct submit {
    struct ask ask;
    struct job_spec spec;
    char *shown;                          /* or NULL */
    struct core_dependency *dependencies; /* or NULL */
    struct spec_environment environment;
    struct text requirements_text; /* those that stand in the spec */
    struct blob_row requirements;  /* the same as it is stored */
    char id[ID_LENGTH + 1];
    int64_t job_key; /* of a job that was placed at once, or may have tasks that were: its spec is wanted in a
                        moment; 0: of none */
};

static int render_submit(const struct writer_request *writer, const struct step *step, struct text *out)
{
    struct submit *submit = writer->asker;
    bool placed = step->job.state == JOB_PLACED;
    submit->job_key = placed || submit->spec.tasks > 0 ? step->job.key : 0;
    job_receipt_encode(step->job.id, step->job.state, step->job.seq, out);
    return 201;
}

static bool upload_is_named(void *closure, const char *hash, const char *field)
{
    const struct request *request = closure;
    uint8_t digest[HASH_BYTES];
    if (text_from_hex(hash, digest, sizeof digest)) {
        uploads_remove(request->server->uploads, identity_owner(request->who), digest);
    }
    return true;
}

static void submit_committed(struct ask *ask)
{
    struct submit *submit = (struct submit *)ask;
    job_spec_each_blob(&submit->spec, upload_is_named, ask->request);
    if (submit->job_key != 0) {
        specs_keep(ask->request->server->specs, submit->job_key, submit->spec.json,
                   ask->request->body_length);
    }
}

static void submit_finish(struct ask *ask)
{
    struct submit *submit = (struct submit *)ask;
    ask->request->server->submits--;
    spec_environment_finish(&submit->environment);
    text_finish(&submit->requirements_text);
    job_spec_finish(&submit->spec);
    free(submit->shown);
    free(submit->dependencies);
}

/* A search for blobs that are not there for the sender: neither they nor a job of theirs has brought them. */
struct blob_search {
    const struct request *request;
    int64_t created_ms; /* one that nothing uses and that was sent before this counts as gone */
    struct err *err;
};

static bool blob_exists(void *closure, const char *hash, const char *field)
{
    const struct blob_search *search = closure;
    const struct server *server = search->request->server;
    uint8_t digest[32];
    if (text_from_hex(hash, digest, sizeof digest)) {
        const char *owner = uploads_limit(server->uploads, request_owner_scope(search->request), digest);
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

static bool submit_allowed(struct server *server, const struct request *request, struct err *err)
{
    if (server->refusing) {
        return err_set(err, ERR_UNAVAILABLE, "the controller is ending");
    }
    return space_allows(server->space, (int64_t)request->body_length, err);
}

/* Requirements that stand in the spec are stored as the blob that nodes fetch. */
static void store_requirements(struct submit *submit, int64_t wall_ms)
{
    if (submit->spec.environment.requirements == NULL) {
        return;
    }
    struct text *text = &submit->requirements_text;
    text_append(text, ""); /* of none, too, there are bytes */
    staging_requirements_text(&submit->spec, text);
    submit->requirements =
        (struct blob_row){.size = (int64_t)text->length, .bytes = text->bytes, .created_ms = wall_ms};
    hash_bytes(text->bytes, text->length, submit->requirements.hash);
    submit->ask.writer.input.submit.requirements = &submit->requirements;
}

/* Gives the core the environment spec of the job. */
static void say_need(struct submit *submit)
{
    if (spec_environment_of(&submit->spec, &submit->environment)) {
        submit->ask.writer.input.submit.environment = &submit->environment.core;
    }
}

bool jobs_submit(struct request *request, struct err *err)
{
    struct server *server = request->server;
    if (!submit_allowed(server, request, err)) {
        return false;
    }
    autoask struct submit *submit = ask_create(request, sizeof *submit, render_submit);
    submit->ask.committed = submit_committed;
    submit->ask.finish = submit_finish;
    server->submits++;
    struct blob_search search = {request, server->wall_ms - LIMIT_BLOB_UNUSED_MS, err};
    if (!job_spec_decode(give(request->json), server->config.lease_min_ms, &submit->spec, err) ||
        !job_spec_each_blob(&submit->spec, blob_exists, &search) ||
        !dependencies_read(request, &submit->spec, &submit->dependencies, err)) {
        return false;
    }
    submit->shown = job_spec_shown(&submit->spec);
    uint8_t random[10];
    server_random(server, random, sizeof random);
    text_id_from_bytes(random, submit->id);
    struct input *input = &submit->ask.writer.input;
    input->kind = INPUT_SUBMIT;
    input->submit.id = submit->id;
    input->submit.owner = identity_owner(request->who);
    input->submit.spec = &submit->spec;
    input->submit.body = request->body;
    input->submit.body_length = request->body_length;
    input->submit.shown = submit->shown;
    input->submit.dependencies = submit->dependencies;
    input->submit.dependency_count = submit->spec.dependency_count;
    say_need(submit);
    store_requirements(submit, server->wall_ms);
    text_reserve(&submit->ask.writer.answer,
                 RECEIPT_BYTES); /* here, so that one thread allocates and frees it */
    return ask_writer(give(submit), err);
}

/* --- list ----------------------------------------------------------------------------------------------- */

static bool refuse_state(const char *word, struct err *err)
{
    autotext struct text states = {0};
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        text_printf(&states, " %s", job_state_text((enum job_state)state));
    }
    err_field(err, ERR_FIELD, "state", NULL, "there is no job state \"%s\"", word);
    return err_hint(err, "states:%s", states.bytes);
}

/* One "state" parameter: a state, or several separated by commas. */
static bool add_states(const char *list, uint32_t *states, struct err *err)
{
    autofree char *copy = xstrdup(list);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        enum job_state state;
        if (!job_state_from_text(word, &state)) {
            return refuse_state(word, err);
        }
        *states |= 1U << state;
    }
    return true;
}

static bool read_states(const struct query *query, uint32_t *ret_states, struct err *err)
{
    for (size_t i = 0; query != NULL && i < query->count; i++) {
        if (strcmp(query->items[i].name, "state") == 0 &&
            !add_states(query->items[i].value, ret_states, err)) {
            return false;
        }
    }
    return true;
}

/* A cursor is the key of the last job on the page, as text that invites nobody to count. */
static void write_cursor(int64_t key, char out[17])
{
    const uint64_t bytes = htole64((uint64_t)key);
    text_to_hex((const uint8_t *)&bytes, sizeof bytes, out);
}

static bool read_cursor(const char *text, int64_t *ret_key, struct err *err)
{
    uint64_t bytes = 0;
    if (text == NULL) {
        return true;
    }
    bool sound = text_from_hex(text, (uint8_t *)&bytes, sizeof bytes);
    *ret_key = (int64_t)le64toh(bytes);
    return (sound && *ret_key > 0) ||
           err_field(err, ERR_FIELD, "cursor", "take it from \"next\" of the page before",
                     "the cursor is not one of ours");
}

/* The array whose tasks are listed: whole ids only. */
static bool read_array(struct request *request, struct job_filter *filter, struct err *err)
{
    const char *array = query_text(request->query, "array");
    struct job_facts facts;
    if (array == NULL) {
        return true;
    }
    snprintf(request->argument, sizeof request->argument, "%s", array);
    if (!job_find(request, &facts, err)) {
        return false;
    }
    filter->array_key = facts.key;
    return facts.tasks > 0 ||
           err_field(err, ERR_FIELD, "array", "GET /v1/jobs/{id} shows it", "job %s is no array", array);
}

static bool read_filter(struct request *request, struct job_filter *filter, struct err *err)
{
    const struct query *query = request->query;
    const char *scope = request_owner_scope(request);
    filter->id_prefix = query_text(query, "id_prefix");
    filter->limit = LIMIT_LIST_DEFAULT_ROWS;
    bool named = query_name(query, "owner", &filter->owner, err) &&
                 query_name(query, "name", &filter->name, err) &&
                 query_name(query, "project", &filter->project, err);
    filter->owner = scope != NULL ? scope : filter->owner;
    if (named && filter->id_prefix != NULL && strlen(filter->id_prefix) > ID_LENGTH) {
        return err_field(err, ERR_FIELD, "id_prefix", NULL, "id_prefix is longer than an id, %d characters",
                         ID_LENGTH);
    }
    return named && read_array(request, filter, err) && read_states(query, &filter->states, err) &&
           query_moment(query, "since", &filter->since_ms, err) &&
           query_int(query, "limit", 1, LIMIT_LIST_ROWS, &filter->limit, err) &&
           read_cursor(query_text(query, "cursor"), &filter->before_key, err);
}

/* A user who asks for somebody else's jobs gets none. */
static bool asks_for_others(const struct request *request)
{
    const char *owner = query_text(request->query, "owner");
    return owner != NULL && !request_may_see(request, owner);
}

/* The cursor of the next page: behind the last job of a full page, else where the search was left off. One
 * row more than the page has tells whether it is full. */
static bool write_page(struct reader *reader, struct job_filter *filter, struct text *out, struct err *err)
{
    int64_t limit = filter->limit++, last_key = 0;
    bool over;
    if (!reader_jobs_bound(reader, filter, &over, err)) {
        return false;
    }
    autorows struct rows rows = reader_jobs(reader, filter, err);
    struct job_record job;
    bool more;
    while ((more = rows_job(&rows, &job)) && limit-- > 0) {
        struct job_view view;
        job_view_fill(&view, &job.birth, &job.life, &job.array);
        member_separate(out);
        job_view_encode(&view, out);
        last_key = job.birth.key;
    }
    char cursor[17];
    write_cursor(more ? last_key : filter->behind_key + 1, cursor);
    member_write_text(out, "],\"next\":", more || !over ? cursor : NULL);
    text_append(out, "}");
    return !rows.failed;
}

bool jobs_list(struct request *request, struct err *err)
{
    struct job_filter filter = {0};
    autotext struct text json = {0};
    if (!read_filter(request, &filter, err)) {
        return false;
    }
    if (asks_for_others(request)) {
        return request_reply_literal(request, 200, "{\"jobs\":[],\"next\":null}");
    }
    text_append(&json, "{\"jobs\":[");
    return write_page(request->server->reader, &filter, &json, err) &&
           request_reply_json(request, 200, &json);
}

/* --- show and wait -------------------------------------------------------------------------------------- */

static bool reply_view(struct request *request, struct err *err)
{
    autotext struct text view = {0};
    int64_t seq;
    if (!job_show(request, &seq, &view, err)) {
        return false;
    }
    autofree char *tag = xprintf("\"%lld\"", (long long)seq);
    request_reply_json(request, 200, &view);
    request_header(request, "ETag", tag);
    return true;
}

static void end_wait(struct request *request)
{
    struct err err;
    if (!reply_view(request, &err)) {
        request_fail(request, &err);
    }
}

/* The state of a request that waits. */
struct wait {
    int64_t seq; /* an event above this; -1: only the end */
};

static bool wait_is_over(const struct wait *wait, enum job_state state, int64_t seq)
{
    return job_state_terminal(state) || (wait->seq >= 0 && seq > wait->seq);
}

static void job_touched(struct waiter *waiter, const struct job_touch *touch)
{
    struct request *request = waiter->closure;
    if (touch != NULL && wait_is_over(request->state, touch->state, touch->seq)) {
        end_wait(request);
    }
}

static void wait_expired(struct deadline *deadline)
{
    end_wait(deadline->closure);
}

static bool start_wait(struct request *request, int64_t job_key, int64_t seq, int64_t wait_ms)
{
    struct server *server = request->server;
    struct wait *wait = xzalloc(sizeof *wait);
    wait->seq = seq;
    request->state = wait;
    request->state_finish = free;
    request->waiter.wake = job_touched;
    request->waiter.closure = request;
    waiters_add(server->waiters, &request->waiter, job_key);
    request->deadline.due = wait_expired;
    request->deadline.closure = request;
    deadline_set(server->deadlines, &request->deadline, server->now_ms + wait_ms);
    return request_wait(request);
}

bool jobs_show(struct request *request, struct err *err)
{
    struct job_facts facts;
    int64_t wait_ms = 0;
    int64_t seq = -1;
    if (!query_duration(request->query, "wait", LIMIT_WAIT_S * 1000, &wait_ms, err) ||
        !query_int(request->query, "seq", 0, INT64_MAX, &seq, err) ||
        (wait_ms > 0 && !job_find(request, &facts, err))) {
        return false;
    }
    const struct wait wait = {.seq = seq};
    if (wait_ms == 0 || request->server->ending || wait_is_over(&wait, facts.state, facts.seq)) {
        return reply_view(request, err);
    }
    return start_wait(request, facts.key, seq, wait_ms);
}
