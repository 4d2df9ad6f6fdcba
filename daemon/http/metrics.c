/* SPDX-License-Identifier: Apache-2.0 */
/* The resource of a job's metrics: pages of points, or a stream of points and progress that follows them. It
 * promises that a cursor goes on in its own attempt, and that a stream goes on to the next one. What becomes
 * of the lines is metric_feed.c's part, what MLflow's clients have logged metric_run.c's. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/job_lookup.h"
#include "daemon/http/metric_feed.h"
#include "daemon/http/metric_run.h"
#include "daemon/http/parts.h"
#include "daemon/http/resources.h"
#include "daemon/http/sse.h"
#include "daemon/http/trail.h"
#include "proto/limits.h"
#include "proto/members.h"

struct metric_wish {
    struct trail_wish trail; /* its rank stays -1: that is the node's first, not the one in a line */
    struct metric_filter filter;
    int64_t limit;
};

static bool name_allowed(const char *name, struct err *err)
{
    size_t length = name != NULL ? strlen(name) : 1;
    return (length > 0 && length <= LIMIT_METRIC_NAME) ||
           err_field(err, ERR_FIELD, "name", NULL, "the name of a metric has 1 to %d bytes",
                     LIMIT_METRIC_NAME);
}

static bool read_wish(struct request *request, struct metric_wish *wish, struct err *err)
{
    struct trail_wish *trail = &wish->trail;
    const struct query *query = request->query;
    *wish = (struct metric_wish){
        .trail = {.attempt = -1, .rank = -1, .stream = STREAM_METRICS, .follow = true},
        .filter = {.rank = -1, .name = query_text(query, "name")},
        .limit = LIMIT_METRIC_DEFAULT_ROWS,
    };
    if (!job_find(request, &trail->job, err)) {
        return false;
    }
    int64_t attempts = trail->job.attempt > 0 ? trail->job.attempt : 1;
    trail->after = query_text(query, "cursor");
    wish->filter.ranks = trail->job.gpus;
    return name_allowed(wish->filter.name, err) &&
           query_int(query, "attempt", 1, attempts, &trail->attempt, err) &&
           query_int(query, "rank", 0, trail->job.gpus - 1, &wish->filter.rank, err) &&
           query_int(query, "limit", 1, LIMIT_METRIC_ROWS, &wish->limit, err);
}

/* --- pages
 * -----------------------------------------------------------------------------------------------------------------
 */

/* A cursor goes on in its own attempt, also when there is a newer one by now. */
static struct log_reader *open_reader(const struct request *request, const struct trail_wish *trail,
                                      int64_t *ret_attempt, struct err *err)
{
    *ret_attempt = trail->attempt > 0 ? trail->attempt : trail->job.attempt;
    if (trail->after != NULL && trail->attempt <= 0) {
        log_id_attempt(trail->after, ret_attempt); /* what is no cursor is refused by the reader */
    }
    struct log_reader *reader = log_reader_open(request->server->config.logs, trail->job.id, *ret_attempt, -1,
                                                STREAM_METRICS, trail->after, err);
    if (reader == NULL) {
        err_field(err, ERR_FIELD, "cursor", "send `next` of a page of this job and attempt, or none",
                  "the cursor \"%.64s\" is not of these metrics", trail->after);
    }
    return reader;
}

/* Begins a page with what is in the streams. *limit becomes what it has room for, next the cursor behind it,
 * "" when nothing more is there. */
static bool begin_page(const struct request *request, const struct metric_wish *wish, int64_t *ret_attempt,
                       int64_t *limit, struct text *json, char next[LOG_ID_BYTES], struct err *err)
{
    struct log_reader *reader = open_reader(request, &wish->trail, ret_attempt, err);
    if (reader == NULL) {
        return false;
    }
    text_printf(json, "{\"attempt\":%lld,\"metrics\":[", (long long)*ret_attempt);
    bool good = metric_page(reader, &wish->filter, limit, json, next, err);
    log_reader_close(reader);
    return good;
}

/* A page goes from the streams on to the run of the attempt: points there have no rank. */
static void show_page(struct request *request, const struct metric_wish *wish)
{
    struct err err = {0};
    struct text json = {0};
    char next[LOG_ID_BYTES];
    struct metric_rest rest = {.job = wish->trail.job, .name = wish->filter.name, .limit = wish->limit};
    if (metric_run_cursor(wish->trail.after, wish->trail.attempt, &rest)) {
        text_printf(&json, "{\"attempt\":%lld,\"metrics\":[", (long long)rest.attempt);
        metric_run_page(request, &rest, &json);
    } else if (!begin_page(request, wish, &rest.attempt, &rest.limit, &json, next, &err)) {
        text_finish(&json);
        request_fail(request, &err);
    } else if (next[0] == '\0' && wish->filter.rank < 0) {
        rest.comma = rest.limit < wish->limit;
        metric_run_page(request, &rest, &json);
    } else {
        text_append(&json, "],");
        member_write_text(&json, "\"next\":", next[0] != '\0' ? next : NULL);
        text_append(&json, "}");
        request_reply_json(request, 200, &json);
    }
}

/* --- streams
 * ---------------------------------------------------------------------------------------------------------------
 */

struct metric_follower {
    struct metric_filter filter;
    struct trail *trail;
    struct metric_lines lines;
};

static enum sse_more fill(void *closure, struct text *out)
{
    struct metric_follower *follower = closure;
    struct metric_lines *lines = &follower->lines;
    lines->budget = LIMIT_METRIC_TURN_BYTES;
    while (metric_events(lines, &follower->filter, out)) {
        switch (trail_next(follower->trail, &lines->piece)) {
        case TRAIL_PIECE:
            lines->at = 0;
            break;
        case TRAIL_WAIT:
            return SSE_WAIT;
        case TRAIL_OVER:
            trail_append_end(follower->trail, out);
            return SSE_END;
        case TRAIL_LOST:
            return SSE_END;
        }
    }
    return SSE_PAUSE;
}

static void finish(void *closure)
{
    struct metric_follower *follower = closure;
    trail_close(follower->trail);
    free(follower);
}

/* Last-Event-ID is what a client that comes back sends; it counts more than the query that it repeats. */
static void show_events(struct request *request, struct metric_wish *wish)
{
    struct err err = {0};
    if (request->headers.last_event_id != NULL) {
        wish->trail.after = request->headers.last_event_id;
    }
    struct trail *trail = trail_open(request->server, &wish->trail, &err);
    if (trail == NULL) {
        request_fail(request, &err);
        return;
    }
    struct metric_follower *follower = xzalloc(sizeof *follower);
    follower->filter = wish->filter;
    follower->trail = trail;
    const struct sse_source source = {
        .fill = fill, .finish = finish, .closure = follower, .job_key = wish->trail.job.key};
    sse_reply(request, &source);
}

void metrics_show(struct request *request)
{
    struct metric_wish wish;
    struct err err;
    if (!read_wish(request, &wish, &err)) {
        request_fail(request, &err);
    } else if (request_wants_events(request)) {
        show_events(request, &wish);
    } else {
        show_page(request, &wish);
    }
}
