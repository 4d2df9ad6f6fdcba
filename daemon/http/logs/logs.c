/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the logs: uploads of agents of all streams, metrics included; one stream of output as bytes with
 * ranges; and the output followed in order of arrival. New bytes wake the clients that follow the job.
 * log_cursor.c goes through the attempts; metrics.c serves metrics. */
#include "daemon/http/logs/logs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/blob/logs.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/logs/log_cursor.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/objects/recalls.h"
#include "daemon/http/kept/range.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/request/sse.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/members.h"
#include "proto/wire/views.h"

/* --- uploads -------------------------------------------------------------------------------------------- */

static bool epoch_known(struct server *server, uint64_t attempt_id, struct attempt_record *ret_record,
                        struct err *err)
{
    bool found;
    if (!reader_attempt_record(server->reader, attempt_id, &found, ret_record, err)) {
        return false;
    }
    return found || err_field(err, ERR_FENCED, "epoch", NULL, "no attempt has the id %llu",
                              (unsigned long long)attempt_id);
}

/* A node may send only the output of its own ranks of the attempt. */
static bool check_part(struct server *server, uint64_t attempt_id, const char *node, int64_t rank,
                       struct err *err)
{
    autorows struct rows rows = reader_members(server->reader, attempt_id, err);
    struct member_row row;
    bool is_member = false;
    while (rows_member(&rows, &row)) {
        bool own = strcmp(row.node, node) == 0;
        is_member = is_member || own;
        if (own && rank >= row.first_rank && rank < row.first_rank + row.local_ranks) {
            return true;
        }
    }
    if (rows.failed) {
        return false;
    }
    if (!is_member) {
        return err_field(err, ERR_FORBIDDEN, "node", NULL, "node %.64s has no part in attempt %llu", node,
                         (unsigned long long)attempt_id);
    }
    return err_field(err, ERR_FIELD, "rank", NULL, "rank %lld of attempt %llu is not one of node %.64s",
                     (long long)rank, (unsigned long long)attempt_id, node);
}

/* Bytes that come after all others have gone to the object store wait on the node for their return. */
static bool are_here(struct server *server, const struct log_name *name, struct err *err)
{
    enum job_files what = name->stream == STREAM_FILES ? JOB_KEPT : JOB_OUTPUT;
    return !recall_needs(server, name->job_id, what) || recall_job_soon(server, name->job_id, what, err);
}

bool logs_store_tails(struct server *server, const struct report_message *report,
                      const struct attempt_record *attempt_id, struct err *err)
{
    for (size_t i = 0; i < report->tail_count; i++) {
        const struct log_tail *tail = &report->tails[i];
        const struct log_name name = {attempt_id->job_id, attempt_id->number, tail->rank, tail->stream};
        autofree uint8_t *bytes = NULL;
        size_t length = 0;
        int64_t received, durable;
        if (!check_part(server, report->attempt_id, report->node, tail->rank, err)) {
            return false;
        }
        if (!text_from_base64(tail->base64, strlen(tail->base64), &bytes, &length)) {
            return err_field(err, ERR_FIELD, "tails", NULL, "a log tail is not base64");
        }
        if (!are_here(server, &name, err)) {
            return false;
        }
        if (!logs_append(server->config.logs, &name, tail->offset, bytes, length, &received, &durable, err) &&
            err->code != ERR_TOO_LARGE) { /* an end is taken in, whatever its logs */
            return false;
        }
        if (tail->stream == STREAM_METRICS) {
            job_runs_metrics(server->mlflow->runs, report->attempt_id, attempt_id, tail->rank);
        }
    }
    if (report->tail_count > 0) {
        server_wake(server, attempt_id->job_key);
    }
    return true;
}

/* The problem with one member more, from which the agent goes on. */
static bool fail_with_received(struct request *request, const struct err *err, int64_t received)
{
    struct text problem = {0};
    problem_encode(err, &problem);
    problem.length--; /* the closing brace */
    text_printf(&problem, ", \"received\": %lld}", (long long)received);
    request_reply_problem(request, (unsigned)err_http(err->code), &problem);
    return true;
}

static bool read_stream(const struct query *query, const char *remedy, enum stream *ret_stream,
                        struct err *err)
{
    const char *text = query_text(query, "stream");
    if (text == NULL || stream_from_text(text, ret_stream)) {
        return true;
    }
    return err_field(err, ERR_FIELD, "stream", remedy, "\"%.32s\" is not a stream", text);
}

/* Agents name their node in each upload; a token that is bound to one needs it. */
static bool may_upload(const struct request *request, struct err *err)
{
    const char *node = query_text(request->query, "node");
    return identity_acts_for(request->who, node != NULL ? node : "", err);
}

bool logs_upload(struct request *request, struct err *err)
{
    struct server *server = request->server;
    struct attempt_record attempt_id;
    int64_t number = -1, rank = -1, offset = -1, received = 0, durable = 0;
    enum stream stream = STREAM_STDOUT;
    if (!may_upload(request, err) || !query_int(request->query, "epoch", 0, INT64_MAX, &number, err) ||
        !query_int(request->query, "rank", 0, LIMIT_GPUS - 1, &rank, err) ||
        !query_int(request->query, "offset", 0, INT64_MAX / 2, &offset, err) ||
        !read_stream(request->query, "name stdout, stderr, metrics or files", &stream, err)) {
        return false;
    }
    if (number < 0 || rank < 0 || offset < 0) {
        return err_set(err, ERR_FIELD, "epoch, rank and offset are needed");
    }
    const char *node = query_text(request->query, "node"); /* agents before the first release left it out */
    bool grows = request->body_length > 0;
    if (!epoch_known(server, (uint64_t)number, &attempt_id, err) ||
        (node != NULL && !check_part(server, (uint64_t)number, node, rank, err)) ||
        (grows && !space_allows_output(server->space, (int64_t)request->body_length, err))) {
        return false;
    }
    const struct log_name name = {attempt_id.job_id, attempt_id.number, rank, stream};
    if (!are_here(server, &name, err)) {
        return false;
    }
    if (!logs_append(server->config.logs, &name, offset, request->body, request->body_length, &received,
                     &durable, err)) {
        return fail_with_received(request, err, received);
    }
    if (grows) {
        server_wake(server, attempt_id.job_key);
    }
    if (grows && stream == STREAM_METRICS) {
        job_runs_metrics(server->mlflow->runs, (uint64_t)number, &attempt_id, rank);
    }
    struct text reply = {0};
    text_printf(&reply, "{\"received\": %lld, \"durable\": %lld}", (long long)received, (long long)durable);
    return request_reply_json(request, 200, &reply);
}

/* --- queries -------------------------------------------------------------------------------------------- */

struct output_query {
    struct log_query log; /* rank -1 and stream STREAM_COUNT: not said */
    int64_t tail;         /* bytes; -1: all */
};

/* Output only: the bytes of a metrics stream are lines between node and controller. */
static bool read_output(const struct query *query, const char *job_id, enum stream *ret_stream,
                        struct err *err)
{
    if (!read_stream(query, "name stdout or stderr", ret_stream, err)) {
        return false;
    }
    if (*ret_stream == STREAM_COUNT || stream_is_output(*ret_stream)) {
        return true;
    }
    err_field(err, ERR_FIELD, "stream", NULL, "\"%s\" is not a stream of output", stream_text(*ret_stream));
    return err_hint(err, "GET /v1/jobs/%s/metrics shows metrics", job_id);
}

bool logs_refuse_array(const struct job_facts *job, struct err *err)
{
    if (job->tasks == 0) {
        return true;
    }
    err_field(err, ERR_FIELD, "id", NULL, "job %s is an array of %lld tasks, and each has output of its own",
              job->id, (long long)job->tasks);
    return err_hint(err, "name a task: %s.0 for instance", job->id);
}

static bool read_streams(struct request *request, struct log_query *log, struct err *err)
{
    *log = (struct log_query){.attempt = -1, .rank = -1, .stream = STREAM_COUNT};
    if (!job_find(request, &log->job, err) || !logs_refuse_array(&log->job, err)) {
        return false;
    }
    const struct query *query = request->query;
    int64_t attempts = log->job.attempt > 0 ? log->job.attempt : 1;
    log->after = request->headers.last_event_id;
    return query_int(query, "attempt", 1, attempts, &log->attempt, err) &&
           query_int(query, "rank", 0, ranks_of_gpus(log->job.gpus) - 1, &log->rank, err) &&
           query_moment(query, "since", &log->since_ms, err) &&
           read_output(query, log->job.id, &log->stream, err);
}

static bool read_query(struct request *request, struct output_query *wanted, struct err *err)
{
    int64_t follow = 1;
    wanted->tail = -1;
    bool ok = read_streams(request, &wanted->log, err) &&
              query_int(request->query, "tail", 0, INT64_MAX, &wanted->tail, err) &&
              query_int(request->query, "follow", 0, 1, &follow, err);
    wanted->log.follow = follow != 0;
    return ok;
}

/* The ranks of the attempt have written something. */
static bool had_output(const struct request *request, const struct log_query *log, bool *ret_had,
                       struct err *err)
{
    struct reader *reader = request->server->reader;
    uint64_t attempt_id;
    *ret_had = false;
    if (!job_attempt_id(reader, log->job.key, log->attempt > 0 ? log->attempt : log->job.attempt, &attempt_id,
                        err)) {
        return false;
    }
    autorows struct rows rows = reader_ranks(reader, attempt_id, err);
    struct rank_row rank;
    while (!*ret_had && rows_rank(&rows, &rank)) {
        *ret_had = rank.out_bytes + rank.err_bytes > 0;
    }
    return !rows.failed;
}

/* Output goes before its job does: nothing of it is left, and its ranks' rows say that there was some. Soon
 * after the end of the job it may still be on its way, as after a full disk, and retention leaves it alone.
 */
static bool check_stays(const struct request *request, const struct log_query *log, struct err *err)
{
    int64_t kept_ms = request->server->config.ages.logs_ms;
    int64_t fresh_ms = kept_ms > 0 && kept_ms < LIMIT_LOGS_FRESH_MS ? kept_ms : LIMIT_LOGS_FRESH_MS;
    bool fresh = request->server->wall_ms - log->job.ended_ms < fresh_ms;
    bool had;
    if (!job_state_terminal(log->job.state) || fresh || logs_has(request->server->config.logs, log->job.id)) {
        return true;
    }
    if (!had_output(request, log, &had, err)) {
        return false;
    }
    if (had) {
        err_set(err, ERR_GONE, "the output of job %s was removed (retention)", request->argument);
        err_hint(err,
                 "gpuctld --keep-logs says how long output stays; gpuctl results and gpuctl events go on");
    }
    return !had;
}

bool logs_read_query(struct request *request, struct log_query *ret_query, struct err *err)
{
    return read_streams(request, ret_query, err) && check_stays(request, ret_query, err);
}

/* --- one stream as bytes -------------------------------------------------------------------------------- */

static bool show_bytes(struct request *request, const struct output_query *wanted, struct err *err)
{
    const struct log_query *log = &wanted->log;
    const struct log_name name = {log->job.id, log->attempt > 0 ? log->attempt : log->job.attempt,
                                  log->rank >= 0 ? log->rank : 0,
                                  log->stream == STREAM_COUNT ? STREAM_STDOUT : log->stream};
    static const char type[] = "text/plain; charset=utf-8";
    int64_t size;
    err->code = ERR_NONE;
    int fd = logs_open_stream(request->server->config.logs, &name, &size, err);
    if (fd < 0) {
        return err->code == ERR_NONE && request_reply(request, 200, type, xstrdup(""), 0);
    }
    int64_t first = wanted->tail >= 0 && wanted->tail < size ? size - wanted->tail : 0;
    return range_reply(request, type, fd, 0, size) ||
           request_reply_file(request, 200, type, fd, (uint64_t)first, (uint64_t)(size - first));
}

/* --- following ------------------------------------------------------------------------------------------ */

static void append_piece(const struct log_piece *piece, struct text *out)
{
    autotext struct text data = {0};
    char id[LOG_ID_BYTES];
    text_printf(&data, "{\"rank\": %lld, \"stream\": \"%s\", \"attempt\": %lld, \"offset\": %lld, \"text\": ",
                (long long)piece->rank, stream_text(piece->stream), (long long)piece->attempt,
                (long long)piece->offset);
    text_json_string(&data, piece->bytes, piece->length);
    member_write_time(&data, ",\"at\":", piece->at_ms);
    text_append(&data, "}");
    log_piece_id(piece, piece->length, id);
    sse_append(out, id, NULL, data.bytes, data.length);
}

static enum sse_more fill(void *closure, struct text *out)
{
    struct log_cursor *cursor = closure;
    struct log_piece piece;
    enum log_cursor_step step;
    while ((step = log_cursor_next(cursor, &piece)) == LOG_CURSOR_TURN) {
        log_cursor_turn(cursor);
    }
    switch (step) {
    case LOG_CURSOR_PIECE:
        if (piece.length == 0) {
            return SSE_PAUSE;
        }
        append_piece(&piece, out);
        return SSE_MORE;
    case LOG_CURSOR_WAIT:
        return SSE_WAIT;
    case LOG_CURSOR_OVER:
        log_cursor_append_end(cursor, out);
        break;
    case LOG_CURSOR_TURN:
    case LOG_CURSOR_LOST:
        break;
    }
    return SSE_END;
}

static void finish(void *closure)
{
    log_cursor_close(closure);
}

bool logs_show(struct request *request, struct err *err)
{
    struct output_query wanted;
    if (!read_query(request, &wanted, err) || !check_stays(request, &wanted.log, err)) {
        return false;
    }
    if (recall_needs(request->server, wanted.log.job.id, JOB_OUTPUT)) {
        return recall_job(request, wanted.log.job.id, JOB_OUTPUT, logs_show, err);
    }
    if (!request_wants_events(request)) {
        return show_bytes(request, &wanted, err);
    }
    struct log_cursor *cursor = log_cursor_open(request->server, &wanted.log, err);
    const struct sse_source source = {.fill = fill,
                                      .finish = finish,
                                      .closure = cursor,
                                      .may_see = job_is_seen,
                                      .job_key = wanted.log.job.key};
    return cursor != NULL && sse_reply(request, &source);
}
