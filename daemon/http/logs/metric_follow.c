/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the metrics of a job. Each point comes once, and each attempt is complete before the next one.
 * An attempt is left when its streams are over and a look at its run that began after that found nothing
 * more. Points of a run have no rank, so a client that asks for one rank gets the streams alone. The run
 * is looked at METRIC_LOOK_MS after the last look, because clients log in batches. */
#include "daemon/http/logs/metric_follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/http/logs/metric_run.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/sse.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

#define METRIC_LOOK_MS 1000

struct follower {
    struct request *request;
    struct metric_filter filter;
    struct log_cursor *cursor;
    struct job_facts job;
    struct metric_lines lines;
    char log_id[LOG_ID_BYTES]; /* how far the streams of the attempt were read; "" nothing of them */
    bool lost;                 /* the run cannot be read */
    /* The run of the attempt. */
    char *run_id;       /* owned; NULL: none, or not known yet */
    int64_t number;     /* of the last point that was sent */
    struct text points; /* as metric_run.h has them, of which those before points_at were sent */
    size_t points_at;
    struct metric_reading *reading; /* under way, or NULL */
    bool closing;                   /* the streams are over; the reading that is under way began after that */
    bool closed;                    /* and found nothing more */
    struct deadline look;
};

/* --- points of the run ---------------------------------------------------------------------------------- */

static void take_answer(void *closure, const struct metric_answer *answer)
{
    struct follower *follower = closure;
    struct server *server = follower->request->server;
    follower->reading = NULL;
    follower->lost = !answer->ok;
    text_finish(&follower->points);
    follower->points = *answer->points;
    *answer->points = (struct text){0};
    follower->points_at = 0;
    follower->closed = follower->closing && !answer->more;
    if (answer->ok && !answer->more && follower->points.length == 0 && !follower->closing) {
        deadline_set(server->deadlines, &follower->look, server->now_ms + METRIC_LOOK_MS);
        return;
    }
    sse_wake(follower->request);
}

/* Where the attempt has no run yet there is nothing to read: it is looked for again. */
static bool know_run(struct follower *follower)
{
    struct server *server = follower->request->server;
    struct err err;
    if (follower->run_id == NULL &&
        !metric_run_of(server, &follower->job, log_cursor_attempt(follower->cursor), &follower->run_id,
                       &err)) {
        follower->lost = true;
    }
    return follower->run_id != NULL;
}

static void begin_reading(struct follower *follower)
{
    struct server *server = follower->request->server;
    if (!know_run(follower)) {
        follower->closed = follower->closing;
        deadline_set(server->deadlines, &follower->look, server->now_ms + METRIC_LOOK_MS);
        return;
    }
    const struct metric_question question = {.run_id = follower->run_id,
                                             .name = follower->filter.name,
                                             .after = follower->number,
                                             .limit = LIMIT_METRIC_DEFAULT_ROWS};
    deadline_clear(server->deadlines, &follower->look);
    follower->reading = metric_run_read(server, &question, take_answer, follower);
}

static void look_due(struct deadline *deadline)
{
    struct follower *follower = deadline->closure;
    if (!follower->request->server->ending && follower->reading == NULL) {
        begin_reading(follower);
    }
    if (follower->lost) {
        sse_wake(follower->request);
    }
}

/* Sends points that were read; false: none is left. */
static bool send_points(struct follower *follower, struct text *out)
{
    struct text *points = &follower->points;
    while (follower->points_at < points->length && out->length < LIMIT_SSE_FILL_BYTES) {
        autotext struct text id = {0};
        char *line;
        follower->number = strtoll(points->bytes + follower->points_at, &line, 10);
        line++;
        size_t length = strcspn(line, "\n");
        text_printf(&id, METRIC_RUN_ID "%s%s", log_cursor_attempt(follower->cursor), follower->number,
                    follower->log_id[0] != '\0' ? "/" : "", follower->log_id);
        sse_append(out, id.bytes, "metric", line, length);
        follower->points_at = (size_t)(line - points->bytes) + length + 1;
    }
    return follower->points_at < points->length;
}

/* All lines that are stored were sent: looks at the run, unless a look is under way or due. */
static void look_later(struct follower *follower)
{
    if (follower->filter.rank < 0 && follower->reading == NULL && follower->look.place == 0) {
        begin_reading(follower);
    }
}

/* The streams of the attempt are over. true: its run is, too. */
static bool close_run(struct follower *follower)
{
    if (follower->filter.rank >= 0 || follower->closed) {
        return true;
    }
    if (follower->reading == NULL) {
        follower->closing = true;
        begin_reading(follower);
    }
    return follower->closed;
}

/* --- the stream ----------------------------------------------------------------------------------------- */

/* A run that the job itself names is that of all its attempts. */
static void turn(struct follower *follower)
{
    char *before = follower->run_id;
    struct err err;
    log_cursor_turn(follower->cursor);
    follower->run_id = NULL;
    follower->log_id[0] = '\0';
    follower->lines.piece = (struct log_piece){0};
    follower->lines.at = 0;
    follower->closing = follower->closed = false;
    if (!metric_run_of(follower->request->server, &follower->job, log_cursor_attempt(follower->cursor),
                       &follower->run_id, &err)) {
        follower->lost = true;
    }
    bool same = before != NULL && follower->run_id != NULL && strcmp(before, follower->run_id) == 0;
    follower->number = same ? follower->number : 0;
    free(before);
}

static bool append_lines(struct follower *follower, struct text *out)
{
    autotext struct text prefix = {0};
    if (follower->filter.rank < 0) {
        text_printf(&prefix, METRIC_RUN_ID "/", log_cursor_attempt(follower->cursor), follower->number);
    }
    bool on = metric_events(&follower->lines, &follower->filter, prefix.length > 0 ? prefix.bytes : "", out);
    if (follower->lines.piece.attempt > 0) {
        log_piece_id(&follower->lines.piece, follower->lines.at, follower->log_id);
    }
    return on;
}

/* Goes on when the piece is used up; after SSE_MORE at once. */
static enum sse_more next_piece(struct follower *follower, struct text *out)
{
    struct log_piece piece;
    switch (log_cursor_next(follower->cursor, &piece)) {
    case LOG_CURSOR_PIECE:
        follower->lines.piece = piece;
        follower->lines.at = 0;
        return SSE_MORE;
    case LOG_CURSOR_WAIT:
        look_later(follower);
        return SSE_WAIT;
    case LOG_CURSOR_TURN:
        if (!close_run(follower)) {
            return SSE_WAIT;
        }
        turn(follower);
        return SSE_MORE;
    case LOG_CURSOR_OVER:
        if (!close_run(follower)) {
            return SSE_WAIT;
        }
        log_cursor_append_end(follower->cursor, out);
        return SSE_END;
    case LOG_CURSOR_LOST:
        break;
    }
    return SSE_END;
}

static enum sse_more fill(void *closure, struct text *out)
{
    struct follower *follower = closure;
    enum sse_more more = SSE_MORE;
    follower->lines.budget = LIMIT_METRIC_TURN_BYTES;
    while (more == SSE_MORE && !follower->lost && !send_points(follower, out)) {
        if (!append_lines(follower, out)) {
            return SSE_PAUSE;
        }
        more = next_piece(follower, out);
    }
    return follower->lost ? SSE_END : more;
}

static void finish(void *closure)
{
    struct follower *follower = closure;
    deadline_clear(follower->request->server->deadlines, &follower->look);
    metric_run_leave(follower->reading);
    log_cursor_close(follower->cursor);
    text_finish(&follower->points);
    free(follower->run_id);
    free(follower);
}

bool metric_follow(struct request *request, struct log_query *wanted, const struct metric_filter *filter,
                   struct err *err)
{
    struct metric_place place = {0};
    if (metric_place_read(wanted->after, &place) &&
        (wanted->attempt <= 0 || wanted->attempt == place.attempt)) {
        wanted->after = place.log[0] != '\0' ? place.log : NULL;
        wanted->from = place.attempt;
    }
    struct log_cursor *cursor = log_cursor_open(request->server, wanted, err);
    if (cursor == NULL) {
        return false;
    }
    struct follower *follower = xzalloc(sizeof *follower);
    follower->request = request;
    follower->filter = *filter;
    follower->job = wanted->job;
    follower->cursor = cursor;
    follower->number = place.number;
    follower->look = (struct deadline){.due = look_due, .closure = follower};
    snprintf(follower->log_id, sizeof follower->log_id, "%s", wanted->after != NULL ? wanted->after : "");
    const struct sse_source source = {.fill = fill,
                                      .finish = finish,
                                      .closure = follower,
                                      .may_see = job_is_seen,
                                      .job_key = wanted->job.key};
    return sse_reply(request, &source);
}
