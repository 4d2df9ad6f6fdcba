/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a job's own metrics into the runs of its attempts, a stream of a node at a time, on the thread of
 * the tracking store. Each whole line is copied once, also when the controller was killed in between. A turn
 * on that thread has a bound, and a stream has one turn at a time. An attempt without a run has nothing
 * copied; mlflow_jobs.c says which attempts have one. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/blob/logs.h"
#include "daemon/blob/metric_line.h"
#include "daemon/blob/worker.h"
#include "daemon/http/base/state.h"
#include "daemon/blob/metric_line.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text/table.h"
#include "proto/limits_tracking.h"

struct copy_key {
    uint64_t attempt_id;
    int64_t stream; /* the first rank of its node */
};

/* A stream that is being copied. */
struct copy {
    struct store_task task; /* first */
    struct metric_copies *copies;
    struct copy_key key;
    const struct logs *logs;
    char run_id[TRACKING_RUN_ID_BYTES];
    char job_id[ID_LENGTH + 1];
    int64_t attempt;
    bool more;  /* the turn has not read all */
    bool again; /* more has come since the turn began */
    UT_hash_handle hh;
};

struct metric_copies {
    struct server *server;
    struct copy *items; /* by key */
};

struct metric_copies *metric_copies_create(struct server *server)
{
    struct metric_copies *copies = xzalloc(sizeof *copies);
    copies->server = server;
    return copies;
}

void metric_copies_destroy(struct metric_copies *copies)
{
    assert(copies == NULL || copies->items == NULL);
    free(copies);
}

/* --- a turn --------------------------------------------------------------------------------------------- */

/* The part of a stream that a turn reads, and its points, which borrow from the lines. */
struct turn {
    char *bytes; /* owned, of LIMIT_TRACKING_TURN_BYTES */
    size_t length;
    struct metric_line *lines;     /* owned */
    struct tracking_point *points; /* owned */
    size_t count, room;
};

static void turn_finish(struct turn *turn)
{
    for (size_t i = 0; i < turn->count; i++) {
        metric_line_finish(&turn->lines[i]);
    }
    free(turn->lines);
    free(turn->points);
    free(turn->bytes);
}

/* metric_line_read lets pass numbers, NaN and infinities; the latter are texts that strtod reads. */
static double number_of(const json_t *value)
{
    return json_is_string(value) ? strtod(json_string_value(value), NULL) : json_number_value(value);
}

static void add_line(struct turn *turn, const char *bytes, size_t length)
{
    struct metric_line line;
    if (!metric_line_read(bytes, length, &line)) {
        return;
    }
    if (line.kind != METRIC_POINT) {
        metric_line_finish(&line);
        return;
    }
    if (turn->count == turn->room) {
        turn->room = turn->room > 0 ? 2 * turn->room : 64;
        turn->lines = xrealloc(turn->lines, turn->room * sizeof *turn->lines);
        turn->points = xrealloc(turn->points, turn->room * sizeof *turn->points);
    }
    turn->points[turn->count] = (struct tracking_point){.name = line.name,
                                                        .rank = line.rank,
                                                        .value = number_of(line.value),
                                                        .step = line.step,
                                                        .at_ms = line.at_ms};
    turn->lines[turn->count++] = line;
}

/* Takes the whole lines; returns how many bytes they are. A line that fills the whole turn is skipped: no
 * node lets such a line pass. */
static size_t take_lines(struct turn *turn)
{
    size_t at = 0;
    for (const char *end; (end = memchr(turn->bytes + at, '\n', turn->length - at)) != NULL;) {
        size_t length = (size_t)(end - (turn->bytes + at));
        add_line(turn, turn->bytes + at, length);
        at += length + 1;
    }
    return at == 0 && turn->length == LIMIT_TRACKING_TURN_BYTES ? turn->length : at;
}

static bool read_stream(const struct copy *copy, int64_t from, struct turn *turn,
                        struct tracking_error *error)
{
    const struct log_name name = {copy->job_id, copy->attempt, copy->key.stream, STREAM_METRICS};
    struct err err;
    int64_t size;
    autoclose int fd = logs_open_stream(copy->logs, &name, &size, &err);
    if (fd < 0) {
        return err.code == ERR_NONE || tracking_fail(error, TRACKING_INTERNAL_ERROR, "%s", err.text);
    }
    turn->bytes = xalloc(LIMIT_TRACKING_TURN_BYTES);
    ssize_t got = pread(fd, turn->bytes, LIMIT_TRACKING_TURN_BYTES, from);
    turn->length = got > 0 ? (size_t)got : 0;
    return got >= 0 ||
           tracking_fail(error, TRACKING_INTERNAL_ERROR, "cannot read the metrics of job %s", copy->job_id);
}

static bool work_turn(struct copy *copy, struct tracking *tracking, struct turn *turn,
                      struct tracking_error *error)
{
    int64_t from;
    if (!tracking_job_copied(tracking, copy->run_id, copy->key.stream, &from, error) ||
        !read_stream(copy, from, turn, error)) {
        return false;
    }
    size_t taken = turn->length > 0 ? take_lines(turn) : 0;
    const struct tracking_copy points = {.run_id = copy->run_id,
                                         .stream = copy->key.stream,
                                         .points = turn->points,
                                         .point_count = turn->count,
                                         .bytes = from + (int64_t)taken};
    copy->more = turn->length == LIMIT_TRACKING_TURN_BYTES;
    return taken == 0 || tracking_job_copy(tracking, &points, error);
}

static bool copy_work(struct store_task *task, struct tracking *tracking, struct tracking_error *error)
{
    struct turn turn = {0};
    bool ok = work_turn((struct copy *)task, tracking, &turn, error);
    turn_finish(&turn);
    return ok;
}

/* --- copies --------------------------------------------------------------------------------------------- */

static void give_turn(struct copy *copy)
{
    copy->more = copy->again = false;
    store_task_give(&copy->task);
}

/* A stream that could not be copied is tried again when more comes, or when the attempt ends. */
static void copy_done(struct store_task *task, const struct tracking_error *error)
{
    struct copy *copy = (struct copy *)task;
    struct metric_copies *copies = copy->copies;
    const struct mlflow *mlflow = copies->server->mlflow;
    if (error != NULL && error->code != TRACKING_RESOURCE_DOES_NOT_EXIST &&
        error->code != TRACKING_TEMPORARILY_UNAVAILABLE) {
        log_warning("metrics left", "run=%s job=%s text=\"%s\"", copy->run_id, copy->job_id, error->message);
    }
    if (mlflow != NULL && error == NULL && (copy->more || copy->again)) {
        give_turn(copy);
        return;
    }
    uint64_t attempt_id = copy->key.attempt_id;
    HASH_DEL(copies->items, copy);
    free(copy);
    if (mlflow != NULL) {
        job_runs_copied(mlflow->runs, attempt_id);
    }
}

void metric_copies_begin(struct metric_copies *copies, uint64_t attempt_id, const char *job_id,
                         int64_t attempt, int64_t stream)
{
    struct server *server = copies->server;
    struct copy_key key = {attempt_id, stream};
    struct copy *copy;
    HASH_FIND(hh, copies->items, &key, sizeof key, copy);
    if (copy != NULL) {
        copy->again = true;
        return;
    }
    copy = xzalloc(sizeof *copy);
    copy->task = (struct store_task){.server = server, .work = copy_work, .done = copy_done};
    copy->copies = copies;
    copy->key = key;
    copy->logs = server->config.logs;
    copy->attempt = attempt;
    snprintf(copy->job_id, sizeof copy->job_id, "%s", job_id);
    rank_run_id(server->rank_key, attempt_id, copy->run_id);
    HASH_ADD(hh, copies->items, key, sizeof copy->key, copy);
    give_turn(copy);
}

bool metric_copies_busy(const struct metric_copies *copies, uint64_t attempt_id)
{
    struct copy *copy, *next;
    HASH_ITER (hh, copies->items, copy, next) {
        if (copy->key.attempt_id == attempt_id) {
            return true;
        }
    }
    return false;
}
