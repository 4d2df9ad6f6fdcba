/* SPDX-License-Identifier: Apache-2.0 */
/* Serves a job's metrics: pages of points here, and a stream of points and progress by metric_follow.c. A
 * cursor stays in its own attempt. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/http/base/state.h"
#include "daemon/http/logs/log_cursor.h"
#include "daemon/http/logs/metric_feed.h"
#include "daemon/http/logs/metric_follow.h"
#include "daemon/http/logs/metric_run.h"
#include "daemon/http/objects/recalls.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
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
    wanted->filter.ranks = ranks_of_gpus(log->job.gpus);
    return name_allowed(wanted->filter.name, err) &&
           query_int(query, "attempt", 1, attempts, &log->attempt, err) &&
           query_int(query, "rank", 0, ranks_of_gpus(log->job.gpus) - 1, &wanted->filter.rank, err) &&
           query_int(query, "limit", 1, LIMIT_METRIC_ROWS, &wanted->limit, err);
}

/* --- pages ---------------------------------------------------------------------------------------------- */

/* A cursor goes on in its own attempt, also when there is a newer one by now. */
static struct log_reader *open_reader(const struct request *request, const struct log_query *log,
                                      int64_t *ret_attempt, struct err *err)
{
    *ret_attempt = log->attempt > 0 ? log->attempt : log->job.attempt;
    if (log->after != NULL && log->attempt <= 0) {
        log_id_attempt(log->after, ret_attempt); /* the reader refuses other texts */
    }
    struct log_reader *reader = log_reader_open(request->server->config.logs, log->job.id, *ret_attempt, -1,
                                                STREAM_METRICS, log->after, err);
    if (reader == NULL) {
        err_field(err, ERR_FIELD, "cursor", "send `next` of a page of this job and attempt, or none",
                  "the cursor \"%.64s\" is not of these metrics", log->after);
    }
    return reader;
}

/* Begins a page with points of the streams. *limit becomes the number of points that still fit, next the
 * cursor behind the page, "" when nothing more is stored. */
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

static bool reply(struct request *request, struct text *json, const char *next)
{
    member_write_text(json, "],\"next\":", next);
    text_append(json, "}");
    return request_reply_json(request, 200, json);
}

static void append_points(struct text *json, const struct text *points)
{
    const char *line = points->length > 0 ? points->bytes : "";
    while (*line != '\0') {
        line = strchr(line, ' ') + 1; /* behind the number */
        size_t length = strcspn(line, "\n");
        member_separate(json);
        text_append_bytes(json, line, length);
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
    append_points(&rest->json, answer->points);
    if (answer->more) {
        text_printf(&next, METRIC_RUN_ID, rest->attempt, answer->after);
    }
    reply(rest->request, &rest->json, answer->more ? next.bytes : NULL);
}

/* Ends the page with points of the run: these have no rank. */
static bool add_run(struct request *request, const struct metric_query *wanted,
                    const struct metric_place *place, struct text *json, struct err *err)
{
    autofree char *run_id = NULL;
    if (!metric_run_of(request->server, &wanted->log.job, place->attempt, &run_id, err)) {
        return false;
    }
    if (run_id == NULL) {
        return reply(request, json, NULL);
    }
    struct rest *rest = xzalloc(sizeof *rest);
    const struct metric_question question = {
        .run_id = run_id, .name = wanted->filter.name, .after = place->number, .limit = wanted->limit};
    *rest = (struct rest){.request = request, .json = *json, .attempt = place->attempt};
    *json = (struct text){0};
    request->state = rest;
    request->state_finish = request_gone;
    rest->reading = metric_run_read(request->server, &question, take_answer, rest);
    return request_wait(request);
}

/* A page goes from the streams on to the run of the attempt. */
static bool show_page(struct request *request, struct metric_query *wanted, struct err *err)
{
    autotext struct text json = {0};
    char next[LOG_ID_BYTES];
    struct metric_place place = {0};
    if (metric_place_read(wanted->log.after, &place) &&
        (wanted->log.attempt <= 0 || wanted->log.attempt == place.attempt)) {
        text_printf(&json, "{\"attempt\":%lld,\"metrics\":[", (long long)place.attempt);
        return add_run(request, wanted, &place, &json, err);
    }
    place.number = 0;
    if (!begin_page(request, wanted, &place.attempt, &wanted->limit, &json, next, err)) {
        return false;
    }
    if (next[0] == '\0' && wanted->filter.rank < 0) {
        return add_run(request, wanted, &place, &json, err);
    }
    return reply(request, &json, next[0] != '\0' ? next : NULL);
}

/* A stream goes on behind Last-Event-ID, which counts more than the query that a client repeats. */
bool metrics_show(struct request *request, struct err *err)
{
    struct metric_query wanted;
    if (!read_query(request, &wanted, err)) {
        return false;
    }
    if (recall_needs(request->server, wanted.log.job.id, JOB_OUTPUT)) {
        return recall_job(request, wanted.log.job.id, JOB_OUTPUT, metrics_show, err);
    }
    if (!request_wants_events(request)) {
        return show_page(request, &wanted, err);
    }
    if (request->headers.last_event_id != NULL) {
        wanted.log.after = request->headers.last_event_id;
    }
    return metric_follow(request, &wanted.log, &wanted.filter, err);
}
