/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of a page of metrics through the tracking store, on whose thread the run is read. It promises
 * that a cursor goes on behind the last point, and that nothing which the job's own streams hold is shown
 * again. An attempt without a run here has no such points. */
#include "daemon/http/metric_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/worker.h"
#include "daemon/http/metric_line.h"
#include "daemon/http/mlflow.h"
#include "daemon/http/parts.h"
#include "daemon/http/rank_token.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/members.h"

#define CURSOR_BYTES 160
#define CURSOR       "run-%" PRId64 "-%" PRId64 ":%" PRId64 ":%" PRId64 ":%" PRIx64 ":%" PRId64
#define CURSOR_READ  "run-%" SCNd64 "-%" SCNd64 ":%" SCNd64 ":%" SCNd64 ":%" SCNx64 ":%" SCNd64 "%n"

/* A page on its way to the store. It outlives its request when that goes away. */
struct reading {
    struct task task;        /* first */
    struct request *request; /* NULL: gone */
    struct tracking *tracking;
    char run_id[TRACKING_RUN_ID_BYTES];
    char *name; /* owned, or NULL */
    struct metric_rest rest;
    bool working; /* on the worker's thread */
    bool ok, more;
    struct text out;
    struct tracking_error error;
};

static void reading_free(struct reading *reading)
{
    free(reading->name);
    text_finish(&reading->out);
    free(reading);
}

static void request_gone(void *state)
{
    struct reading *reading = state;
    reading->request = NULL;
    if (!reading->working) {
        reading_free(reading);
    }
}

/* --- cursors
 * ------------------------------------------------------------------------------------------------------ */

bool metric_run_cursor(const char *cursor, int64_t attempt, struct metric_rest *rest)
{
    struct tracking_place *place = &rest->place;
    uint64_t bits;
    int read = 0;
    if (cursor == NULL ||
        sscanf(cursor, CURSOR_READ, &rest->attempt, &place->metric, &place->at_ms, &place->step, &bits,
               &place->is_nan, &read) != 6 ||
        cursor[read] != '\0' || rest->attempt < 1 || (attempt > 0 && attempt != rest->attempt)) {
        return false;
    }
    memcpy(&place->value, &bits, sizeof bits);
    rest->resumed = true;
    return true;
}

static void append_end(struct reading *reading)
{
    const struct tracking_place *place = &reading->rest.place;
    char cursor[CURSOR_BYTES] = "";
    uint64_t bits;
    memcpy(&bits, &place->value, sizeof bits);
    if (reading->more) {
        snprintf(cursor, sizeof cursor, CURSOR, reading->rest.attempt, place->metric, place->at_ms,
                 place->step, bits, place->is_nan);
    }
    text_append(&reading->out, "],");
    member_write_text(&reading->out, "\"next\":", reading->more ? cursor : NULL);
    text_append(&reading->out, "}");
}

/* --- points
 * ------------------------------------------------------------------------------------------------------- */

static json_t *value_of(double value)
{
    return isnan(value)   ? json_string("NaN")
           : isinf(value) ? json_string(value > 0 ? "Infinity" : "-Infinity")
                          : json_real(value);
}

static void append_point(const struct tracking_logged *point, void *closure)
{
    struct reading *reading = closure;
    autojson json_t *value = value_of(point->value);
    const struct metric_line line = {.kind = METRIC_POINT,
                                     .rank = -1,
                                     .at_ms = point->at_ms,
                                     .name = point->name,
                                     .value = value,
                                     .step = point->step,
                                     .has_step = true};
    text_append(&reading->out, reading->rest.comma ? "," : "");
    metric_line_encode(&line, &reading->out);
    reading->rest.comma = true;
}

static void reading_work(struct task *task)
{
    struct reading *reading = (struct reading *)task;
    struct metric_rest *rest = &reading->rest;
    const struct tracking_listing listing = {.run_id = reading->run_id,
                                             .name = reading->name,
                                             .limit = rest->limit,
                                             .visit = append_point,
                                             .closure = reading};
    reading->ok =
        tracking_job_points(reading->tracking, &listing, &rest->place, &reading->more, &reading->error);
    if (!reading->ok && reading->error.code == TRACKING_RESOURCE_DOES_NOT_EXIST) {
        reading->ok = true;
        reading->more = false;
    }
    append_end(reading);
}

static void reading_done(struct task *task)
{
    struct reading *reading = (struct reading *)task;
    reading->working = false;
    if (reading->request == NULL) {
        reading_free(reading);
    } else if (reading->ok) {
        request_reply_json(reading->request, 200, &reading->out);
    } else {
        request_fail_with(reading->request, ERR_UNAVAILABLE, "%s", reading->error.message);
    }
}

/* --- the page
 * ----------------------------------------------------------------------------------------------------- */

struct search {
    int64_t number;
    uint64_t epoch; /* 0: not found */
};

static bool see_attempt(const struct attempt_row *row, void *closure)
{
    struct search *search = closure;
    search->epoch = row->number == search->number ? row->epoch : search->epoch;
    return search->epoch == 0;
}

void metric_run_page(struct request *request, const struct metric_rest *rest, struct text *json)
{
    struct server *server = request->server;
    struct err err;
    struct search search = {.number = rest->attempt};
    struct reading *reading = xzalloc(sizeof *reading);
    reading->rest = *rest;
    reading->rest.place = rest->resumed ? rest->place : TRACKING_PLACE_FIRST;
    reading->out = *json;
    *json = (struct text){0};
    if (!reader_attempts(server->reader, rest->job.key, see_attempt, &search, &err)) {
        reading_free(reading);
        request_fail(request, &err);
        return;
    }
    if (search.epoch == 0) {
        append_end(reading);
        request_reply_json(request, 200, &reading->out);
        reading_free(reading);
        return;
    }
    rank_run_id(server->rank_key, search.epoch, reading->run_id);
    reading->task = (struct task){.work = reading_work, .done = reading_done};
    reading->request = request;
    reading->tracking = server->mlflow->tracking;
    reading->name = rest->name != NULL ? xstrdup(rest->name) : NULL;
    reading->working = true;
    request->state = reading;
    request->state_finish = request_gone;
    request_wait(request);
    worker_give(server->mlflow->worker, &reading->task);
}
