/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the tracking store for the points that clients have logged into a job's run, and finds that run.
 * The asker may go away in the meantime. */
#include "daemon/http/logs/metric_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/metric_line.h"
#include "daemon/blob/worker.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/base/state.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/orders/specs.h"
#include "daemon/mlflow/tracking.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

/* --- ids ------------------------------------------------------------------------------------------------ */

bool metric_place_read(const char *id, struct metric_place *ret_place)
{
    int read = 0;
    if (id == NULL ||
        sscanf(id, "run-%" SCNd64 "-%" SCNd64 "%n", &ret_place->attempt, &ret_place->number, &read) != 2 ||
        (id[read] != '\0' && id[read] != '/') || ret_place->attempt < 1 || ret_place->number < 0) {
        return false;
    }
    ret_place->log = id[read] == '/' ? id + read + 1 : "";
    return true;
}

/* --- the run -------------------------------------------------------------------------------------------- */

static bool find_own(struct server *server, const struct job_facts *job, int64_t attempt, char **ret_run_id,
                     struct err *err)
{
    uint64_t attempt_id;
    char run_id[TRACKING_RUN_ID_BYTES];
    if (!job_attempt_id(server->reader, job->key, attempt, &attempt_id, err)) {
        return false;
    }
    if (attempt_id != 0) {
        rank_run_id(server->rank_key, attempt_id, run_id);
        *ret_run_id = xstrdup(run_id);
    }
    return true;
}

/* A job that names its run gets no other; one that names "" has its ranks make runs of their own. */
bool metric_run_of(struct server *server, const struct job_facts *job, int64_t attempt, char **ret_run_id,
                   struct err *err)
{
    *ret_run_id = NULL;
    autojson json_t *spec = specs_get(server->specs, job->key, err);
    if (spec == NULL) {
        return false;
    }
    const char *named = specs_variable(spec, "MLFLOW_RUN_ID");
    if (specs_variable(spec, "MLFLOW_TRACKING_URI") != NULL || (named != NULL && named[0] == '\0')) {
        return true;
    }
    if (named != NULL) {
        *ret_run_id = xstrdup(named);
        return true;
    }
    return find_own(server, job, attempt, ret_run_id, err);
}

/* --- reading -------------------------------------------------------------------------------------------- */

struct metric_reading {
    struct task task; /* first */
    struct tracking *tracking;
    char *run_id, *name; /* owned; name may be NULL */
    int64_t limit;
    void (*tell)(void *closure, const struct metric_answer *answer); /* NULL: nobody wants it */
    void *closure;
    struct text points;
    struct metric_answer answer;
    struct tracking_error error;
};

static json_t *value_of(double value)
{
    return isnan(value)   ? json_string("NaN")
           : isinf(value) ? json_string(value > 0 ? "Infinity" : "-Infinity")
                          : json_real(value);
}

static void append_point(const struct tracking_logged *point, void *closure)
{
    struct text *points = closure;
    autojson json_t *value = value_of(point->value);
    const struct metric_line line = {.kind = METRIC_POINT,
                                     .rank = -1,
                                     .at_ms = point->at_ms,
                                     .name = point->name,
                                     .value = value,
                                     .step = point->step,
                                     .has_step = true};
    text_printf(points, "%" PRId64 " ", point->number);
    metric_line_encode(&line, points);
    text_append(points, "\n");
}

static void reading_work(struct task *task)
{
    struct metric_reading *reading = (struct metric_reading *)task;
    struct metric_answer *answer = &reading->answer;
    const struct tracking_listing listing = {.run_id = reading->run_id,
                                             .name = reading->name,
                                             .limit = reading->limit,
                                             .visit = append_point,
                                             .closure = &reading->points};
    answer->ok =
        tracking_job_points(reading->tracking, &listing, &answer->after, &answer->more, &reading->error);
    if (!answer->ok && reading->error.code == TRACKING_RESOURCE_DOES_NOT_EXIST) {
        answer->ok = true;
        answer->more = false;
    }
}

static void reading_done(struct task *task)
{
    struct metric_reading *reading = (struct metric_reading *)task;
    reading->answer.why = reading->error.message;
    reading->answer.points = &reading->points;
    if (reading->tell != NULL) {
        reading->tell(reading->closure, &reading->answer);
    }
    text_finish(&reading->points);
    free(reading->run_id);
    free(reading->name);
    free(reading);
}

struct metric_reading *metric_run_read(struct server *server, const struct metric_question *question,
                                       void (*done)(void *closure, const struct metric_answer *answer),
                                       void *closure)
{
    struct metric_reading *reading = xzalloc(sizeof *reading);
    reading->task = (struct task){.work = reading_work, .done = reading_done};
    reading->tracking = server->mlflow->tracking;
    reading->run_id = xstrdup(question->run_id);
    reading->name = question->name != NULL ? xstrdup(question->name) : NULL;
    reading->limit = question->limit;
    reading->answer.after = question->after;
    reading->tell = done;
    reading->closure = closure;
    worker_give(server->mlflow->worker, &reading->task);
    return reading;
}

void metric_run_leave(struct metric_reading *reading)
{
    if (reading != NULL) {
        reading->tell = NULL;
    }
}
