/* SPDX-License-Identifier: Apache-2.0 */
/* Serves jobs: list, show, wait. A person sees only its own jobs. A list pages without gaps or
 * repetitions while jobs come in. A wait misses no change. The core has the rules of jobs. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/waiters.h"
#include "daemon/http/request/pieces.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"
#include "proto/wire/views.h"

#define PIECE_JOBS 25 /* rows of a list that are read together: some 60 us */

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

/* "phase=2"; the text is cut at its first '='. */
static bool read_label(const struct query *query, struct job_filter *filter, struct err *err)
{
    char *text = (char *)(uintptr_t)query_text(query, "label"); /* lies in the request's own buffer */
    char *equals = text != NULL ? strchr(text, '=') : NULL;
    if (text == NULL) {
        return true;
    }
    if (equals == NULL || equals == text) {
        return err_field(err, ERR_FIELD, "label", "phase=2 for instance", "label must be KEY=VALUE");
    }
    *equals = '\0';
    filter->label = text;
    filter->label_value = equals + 1;
    return true;
}

static bool read_filter(struct request *request, struct job_filter *filter, struct err *err)
{
    const struct query *query = request->query;
    filter->id_prefix = query_text(query, "id_prefix");
    filter->limit = LIMIT_LIST_DEFAULT_ROWS;
    bool named = query_owner(query, &filter->owner, err) && query_name(query, "name", &filter->name, err) &&
                 query_name(query, "project", &filter->project, err) &&
                 query_name(query, "node", &filter->node, err);
    const char *scope = named ? request_scope_in(request, filter->project) : NULL;
    filter->owner = scope != NULL ? scope : filter->owner;
    if (named && filter->id_prefix != NULL && strlen(filter->id_prefix) > ID_LENGTH) {
        return err_field(err, ERR_FIELD, "id_prefix", NULL, "id_prefix is longer than an id, %d characters",
                         ID_LENGTH);
    }
    return named && read_label(query, filter, err) && read_array(request, filter, err) &&
           read_states(query, &filter->states, err) && query_moment(query, "since", &filter->since_ms, err) &&
           query_int(query, "limit", 1, LIMIT_LIST_ROWS, &filter->limit, err) &&
           read_cursor(query_text(query, "cursor"), &filter->before_key, err);
}

/* A user who asks for somebody else's jobs, and may not see them, gets none. */
static bool asks_for_others(const struct request *request, const struct job_filter *filter)
{
    const char *owner = query_text(request->query, "owner");
    return owner != NULL && strcmp(owner, filter->owner) != 0;
}

#define TAG_BYTES 80

/* A page that is being made. The rows of each piece are those behind the piece before. */
struct listing {
    struct pieces pieces;
    struct job_filter filter;
    int64_t left, others;
    bool bounded; /* it is known where the search ends */
    bool over;    /* and that there is nothing behind */
    char tag[TAG_BYTES];
    struct text json;
};

/* Of what a list shows to this person now. What is read may be newer than its tag, never older: then the same
 * comes once more. */
static void write_tag(const struct request *request, char tag[TAG_BYTES])
{
    const struct server *server = request->server;
    snprintf(tag, TAG_BYTES, "\"%u-%llu-%.16s\"", server->config.incarnation,
             (unsigned long long)server->jobs_version, identity_id(request->who));
}

static bool reply_unchanged(struct request *request, const char *tag)
{
    request_reply(request, 304, "application/json", xstrdup(""), 0);
    request_header(request, "ETag", tag);
    return true;
}

static void listing_free(struct pieces *pieces)
{
    struct listing *listing = (struct listing *)pieces;
    text_finish(&listing->json);
    free(listing);
}

/* Adds to the view of a job the attempt that the node had last of it. One that is removed just now has none.
 */
static bool write_on_node(const struct listing *listing, int64_t job_key, struct text *out, struct err *err)
{
    autorows struct rows rows =
        reader_on_node(listing->pieces.request->server->reader, job_key, listing->filter.node, err);
    struct attempt_row attempt;
    struct member_row member;
    if (rows_on_node(&rows, &attempt, &member)) {
        out->length--; /* the closing brace */
        member_write_int(out, ",\"on_node\":{\"attempt\":", attempt.number);
        member_write_text(out, ",\"state\":", attempt_state_text(attempt.state));
        member_write_text(out, ",\"cause\":", attempt.cause != CAUSE_NONE ? cause_text(attempt.cause) : NULL);
        member_write_text(out, ",\"reason\":", attempt.cause_text);
        member_write_text(out, ",\"devices\":", member.devices);
        member_write_time(out, ",\"created_at\":", attempt.created_ms);
        member_write_time(out, ",\"started_at\":", attempt.started_ms);
        member_write_time(out, ",\"ended_at\":", attempt.ended_ms);
        text_append(out, "}}");
    }
    return !rows.failed;
}

/* One row more than is wanted tells whether there are more. */
static bool write_rows(struct listing *listing, int64_t count, bool *ret_more, struct err *err)
{
    struct job_filter *filter = &listing->filter;
    const struct request *request = listing->pieces.request;
    filter->limit = count + 1;
    autorows struct rows rows = reader_jobs(request->server->reader, filter, err);
    struct job_record job;
    while ((*ret_more = rows_job(&rows, &job)) && count-- > 0) {
        struct job_view view;
        job_view_fill(&view, &job.birth, &job.life, &job.array);
        member_separate(&listing->json);
        job_view_encode(&view, &listing->json);
        if (filter->node != NULL && !write_on_node(listing, job.birth.key, &listing->json, err)) {
            return false;
        }
        filter->before_key = job.birth.key;
        listing->left--;
        listing->others += request_sees_by_role(request, job.birth.owner, job.birth.project);
    }
    return !rows.failed;
}

/* The cursor of the next page: behind the last job of a full page, else where the search was left off. */
static void end_page(struct listing *listing, bool more)
{
    char cursor[17];
    struct text *json = &listing->json;
    write_cursor(more ? listing->filter.before_key : listing->filter.behind_key + 1, cursor);
    member_write_text(json, "],\"next\":", more || !listing->over ? cursor : NULL);
    text_append(json, "}");
    request_shows_others(listing->pieces.request, listing->others);
    request_reply_json(listing->pieces.request, 200, json);
    request_header(listing->pieces.request, "ETag", listing->tag);
    request_header(listing->pieces.request, "Cache-Control", "private, no-cache");
}

static enum pieces_state list_piece(struct pieces *pieces, struct err *err)
{
    struct listing *listing = (struct listing *)pieces;
    bool more;
    if (!listing->bounded &&
        !reader_jobs_bound(pieces->request->server->reader, &listing->filter, &listing->over, err)) {
        return PIECES_FAILED;
    }
    listing->bounded = true;
    if (!write_rows(listing, listing->left < PIECE_JOBS ? listing->left : PIECE_JOBS, &more, err)) {
        return PIECES_FAILED;
    }
    if (more && listing->left > 0) {
        return PIECES_MORE;
    }
    end_page(listing, more);
    return PIECES_DONE;
}

bool jobs_list(struct request *request, struct err *err)
{
    struct job_filter filter = {0};
    if (!read_filter(request, &filter, err)) {
        return false;
    }
    if (asks_for_others(request, &filter)) {
        return request_reply_literal(request, 200, "{\"jobs\":[],\"next\":null}");
    }
    char tag[TAG_BYTES];
    write_tag(request, tag);
    if (request_has(request, tag)) {
        return reply_unchanged(request, tag);
    }
    struct listing *listing = xzalloc(sizeof *listing);
    memcpy(listing->tag, tag, sizeof tag);
    listing->pieces = (struct pieces){.work = list_piece, .free = listing_free};
    listing->filter = filter;
    listing->left = filter.limit;
    text_append(&listing->json, "{\"jobs\":[");
    return pieces_begin(request, &listing->pieces, err);
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
    if (!request_stands(request, &err) || !reply_view(request, &err)) {
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
