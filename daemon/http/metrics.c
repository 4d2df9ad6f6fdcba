/* SPDX-License-Identifier: Apache-2.0 */
/* The resource of a job's metrics: pages of points, or a stream of points and progress, which is
 * metric_follow.c's part. It promises that a cursor goes on in its own attempt. What becomes of the lines is
 * left to metric_feed.c, what MLflow's clients have logged to metric_run.c. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/job_lookup.h"
#include "daemon/http/metric_feed.h"
#include "daemon/http/metric_follow.h"
#include "daemon/http/metric_run.h"
#include "daemon/http/parts.h"
#include "daemon/http/resources.h"
#include "daemon/http/log_cursor.h"
#include "proto/limits.h"
#include "proto/base/cleanup.h"
#include "proto/members.h"

struct metric_query {
    struct log_query log; /* its rank stays -1: that is the node's first, not the one in a line */
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

static bool read_query(struct request *request, struct metric_query *wanted, struct err *err)
{
    struct log_query *log = &wanted->log;
    const struct query *query = request->query;
    *wanted = (struct metric_query){
        .log = {.attempt = -1, .rank = -1, .stream = STREAM_METRICS, .follow = true},
        .filter = {.rank = -1, .name = query_text(query, "name")},
        .limit = LIMIT_METRIC_DEFAULT_ROWS,
    };
    if (!job_find(request, &log->job, err)) {
        return false;
    }
    int64_t attempts = log->job.attempt > 0 ? log->job.attempt : 1;
    log->after = query_text(query, "cursor");
    wanted->filter.ranks = log->job.gpus;
    return name_allowed(wanted->filter.name, err) &&
           query_int(query, "attempt", 1, attempts, &log->attempt, err) &&
           query_int(query, "rank", 0, log->job.gpus - 1, &wanted->filter.rank, err) &&
           query_int(query, "limit", 1, LIMIT_METRIC_ROWS, &wanted->limit, err);
}

/* --- pages ---------------------------------------------------------------------------------------------- */

/* A cursor goes on in its own attempt, also when there is a newer one by now. */
static struct log_reader *open_reader(const struct request *request, const struct log_query *log,
                                      int64_t *ret_attempt, struct err *err)
{
    *ret_attempt = log->attempt > 0 ? log->attempt : log->job.attempt;
    if (log->after != NULL && log->attempt <= 0) {
        log_id_attempt(log->after, ret_attempt); /* what is no cursor is refused by the reader */
    }
    struct log_reader *reader = log_reader_open(request->server->config.logs, log->job.id, *ret_attempt, -1,
                                                STREAM_METRICS, log->after, err);
    if (reader == NULL) {
        err_field(err, ERR_FIELD, "cursor", "send `next` of a page of this job and attempt, or none",
                  "the cursor \"%.64s\" is not of these metrics", log->after);
    }
    return reader;
}

/* Begins a page with what is in the streams. *limit becomes what it has room for, next the cursor behind it,
 * "" when nothing more is there. */
static bool begin_page(const struct request *request, const struct metric_query *wanted, int64_t *ret_attempt,
                       int64_t *limit, struct text *json, char next[LOG_ID_BYTES], struct err *err)
{
    struct log_reader *reader = open_reader(request, &wanted->log, ret_attempt, err);
    if (reader == NULL) {
        return false;
    }
    text_printf(json, "{\"attempt\":%lld,\"metrics\":[", (long long)*ret_attempt);
    bool good = metric_page(reader, &wanted->filter, limit, json, next, err);
    log_reader_close(reader);
    return good;
}

/* The rest of a page, which waits for the run of the attempt. */
struct rest {
    struct request *request;
    struct metric_reading *reading; /* NULL: done */
    struct text json;               /* as far as it is */
    int64_t attempt;
    bool comma; /* points stand before those of the run */
};

static void rest_free(struct rest *rest)
{
    text_finish(&rest->json);
    free(rest);
}

static void request_gone(void *state)
{
    struct rest *rest = state;
    metric_run_leave(rest->reading);
    rest_free(rest);
}

static void reply(struct request *request, struct text *json, const char *next)
{
    text_append(json, "],");
    member_write_text(json, "\"next\":", next);
    text_append(json, "}");
    request_reply_json(request, 200, json);
}

static void append_points(struct rest *rest, const struct text *points)
{
    const char *line = points->length > 0 ? points->bytes : "";
    while (*line != '\0') {
        line = strchr(line, ' ') + 1; /* behind the number */
        size_t length = strcspn(line, "\n");
        text_append(&rest->json, rest->comma ? "," : "");
        text_append_bytes(&rest->json, line, length);
        rest->comma = true;
        line += length + 1;
    }
}

static void take_answer(void *closure, const struct metric_answer *answer)
{
    struct rest *rest = closure;
    autotext struct text next = {0};
    rest->reading = NULL;
    if (!answer->ok) {
        request_fail_with(rest->request, ERR_UNAVAILABLE, "%s", answer->why);
        return;
    }
    append_points(rest, answer->points);
    if (answer->more) {
        text_printf(&next, METRIC_RUN_ID, rest->attempt, answer->after);
    }
    reply(rest->request, &rest->json, answer->more ? next.bytes : NULL);
}

/* Ends the page, which is taken over, with points of the run: these have no rank. */
static void add_run(struct request *request, const struct metric_query *wanted,
                    const struct metric_place *place, struct text *json, bool comma)
{
    struct err err;
    autofree char *run_id = NULL;
    if (!metric_run_of(request->server, &wanted->log.job, place->attempt, &run_id, &err)) {
        text_finish(json);
        request_fail(request, &err);
        return;
    }
    if (run_id == NULL) {
        reply(request, json, NULL);
        return;
    }
    struct rest *rest = xzalloc(sizeof *rest);
    const struct metric_question question = {
        .run_id = run_id, .name = wanted->filter.name, .after = place->number, .limit = wanted->limit};
    *rest = (struct rest){.request = request, .json = *json, .attempt = place->attempt, .comma = comma};
    *json = (struct text){0};
    request->state = rest;
    request->state_finish = request_gone;
    request_wait(request);
    rest->reading = metric_run_read(request->server, &question, take_answer, rest);
}

/* A page goes from the streams on to the run of the attempt. */
static void show_page(struct request *request, struct metric_query *wanted)
{
    struct err err = {0};
    struct text json = {0};
    char next[LOG_ID_BYTES];
    struct metric_place place = {0};
    int64_t limit = wanted->limit;
    if (metric_place_read(wanted->log.after, &place) &&
        (wanted->log.attempt <= 0 || wanted->log.attempt == place.attempt)) {
        text_printf(&json, "{\"attempt\":%lld,\"metrics\":[", (long long)place.attempt);
        add_run(request, wanted, &place, &json, false);
        return;
    }
    place.number = 0;
    if (!begin_page(request, wanted, &place.attempt, &limit, &json, next, &err)) {
        text_finish(&json);
        request_fail(request, &err);
    } else if (next[0] == '\0' && wanted->filter.rank < 0) {
        bool comma = limit < wanted->limit;
        wanted->limit = limit;
        add_run(request, wanted, &place, &json, comma);
    } else {
        reply(request, &json, next[0] != '\0' ? next : NULL);
    }
}

/* --- streams -------------------------------------------------------------------------------------------- */

/* Last-Event-ID is what a client that comes back sends; it counts more than the query that it repeats. */
static void show_events(struct request *request, struct metric_query *wanted)
{
    if (request->headers.last_event_id != NULL) {
        wanted->log.after = request->headers.last_event_id;
    }
    metric_follow(request, &wanted->log, &wanted->filter);
}

void metrics_show(struct request *request)
{
    struct metric_query wanted;
    struct err err;
    if (!read_query(request, &wanted, &err)) {
        request_fail(request, &err);
    } else if (request_wants_events(request)) {
        show_events(request, &wanted);
    } else {
        show_page(request, &wanted);
    }
}
