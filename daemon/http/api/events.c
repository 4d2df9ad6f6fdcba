/* SPDX-License-Identifier: Apache-2.0 */
/* Serves a job's history as pages, or as a stream that follows it. Each event comes once, in order and
 * without a gap. A stream resumes behind the seq of the last event that the client saw. */
#include <stdlib.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/request/sse.h"
#include "daemon/store/store.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/members.h"
#include "proto/wire/views.h"

static void write_event(const struct event_row *row, const char *job_id, struct text *out)
{
    const struct event_view view = {.job_id = job_id,
                                    .seq = row->seq,
                                    .at_ms = row->at_ms,
                                    .kind = row->kind,
                                    .attempt = row->attempt,
                                    .detail = row->detail};
    event_view_encode(&view, out);
}

/* --- pages ---------------------------------------------------------------------------------------------- */

static bool reply_page(struct request *request, const struct job_facts *job, int64_t after, int64_t limit,
                       struct err *err)
{
    autotext struct text json = {0};
    autorows struct rows rows = reader_events(request->server->reader, job->key, after, limit, err);
    struct event_row row;
    int64_t count = 0;
    text_append(&json, "{\"events\":[");
    while (rows_event(&rows, &row)) {
        member_separate(&json);
        write_event(&row, job->id, &json);
        after = row.seq;
        count++;
    }
    member_write_int_or_null(&json, "],\"next\":", count == limit && after < job->seq ? after : -1, -1);
    text_append(&json, "}");
    return !rows.failed && request_reply_json(request, 200, &json);
}

/* --- streams -------------------------------------------------------------------------------------------- */

struct following {
    struct request *request;
    struct job_facts job; /* as of the last look */
    int64_t seq;          /* of the last event that was handed out */
};

static bool add_to_stream(struct following *following, struct text *out, struct err *err)
{
    autorows struct rows rows = reader_events(following->request->server->reader, following->job.key,
                                              following->seq, LIMIT_LIST_ROWS, err);
    struct event_row row;
    while (rows_event(&rows, &row)) {
        autotext struct text data = {0};
        char id[24];
        snprintf(id, sizeof id, "%lld", (long long)row.seq);
        write_event(&row, following->job.id, &data);
        sse_append(out, id, event_kind_text(row.kind), data.bytes, data.length);
        following->seq = row.seq;
    }
    return !rows.failed;
}

static void add_end(const struct following *following, struct text *out)
{
    autotext struct text data = {0};
    text_printf(&data, "{\"state\":\"%s\",\"exit_code\":%lld}", job_state_text(following->job.state),
                (long long)following->job.exit_code);
    sse_append(out, NULL, "end", data.bytes, data.length);
}

/* The job is read before its events: a job that has ended then has no later event. */
static enum sse_more fill(void *closure, struct text *out)
{
    struct following *following = closure;
    struct err err;
    if (!job_find(following->request, &following->job, &err) || !add_to_stream(following, out, &err)) {
        log_error("events unreadable", "job=%s text=\"%s\"", following->job.id, err.text);
        return SSE_END;
    }
    if (following->seq < following->job.seq) {
        return SSE_MORE;
    }
    if (!job_state_terminal(following->job.state)) {
        return SSE_WAIT;
    }
    add_end(following, out);
    return SSE_END;
}

static bool follow(struct request *request, const struct job_facts *job, int64_t after)
{
    struct following *following = xzalloc(sizeof *following);
    following->request = request;
    following->job = *job;
    following->seq = after;
    const struct sse_source source = {
        .fill = fill, .finish = free, .closure = following, .may_see = job_is_seen, .job_key = job->key};
    return sse_reply(request, &source);
}

/* A client that comes back sends Last-Event-ID, which counts more than the query that it repeats. */
static bool read_position(const struct request *request, int64_t *ret_after, int64_t *ret_limit,
                          struct err *err)
{
    const char *last = request->headers.last_event_id;
    if (!query_int(request->query, "after", 0, INT64_MAX, ret_after, err) ||
        !query_int(request->query, "limit", 1, LIMIT_LIST_ROWS, ret_limit, err)) {
        return false;
    }
    if (last != NULL && request_wants_events(request) && !text_to_int(last, 0, INT64_MAX, ret_after)) {
        return err_field(err, ERR_FIELD, "Last-Event-ID", NULL, "the Last-Event-ID is not one of ours");
    }
    return true;
}

bool events_show(struct request *request, struct err *err)
{
    struct job_facts job;
    int64_t after = 0;
    int64_t limit = LIMIT_LIST_DEFAULT_ROWS;
    if (!read_position(request, &after, &limit, err) || !job_find(request, &job, err)) {
        return false;
    }
    return request_wants_events(request) ? follow(request, &job, after)
                                         : reply_page(request, &job, after, limit, err);
}
