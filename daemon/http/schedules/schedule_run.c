/* SPDX-License-Identifier: Apache-2.0 */
/* Submits the runs of schedules: those that are due, and one that somebody asks for. The rows of the database
 * are the only clock: a run's job and the moment of the next run are one transaction, so a crash at any
 * moment neither repeats nor loses a run. A run is submitted with the rights that its owner has at that
 * moment, by the code that serves POST /v1/jobs. What goes wrong with a run is written into its schedule, and
 * stops no later run. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/submitter.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/schedules/schedule_due.h"
#include "daemon/http/schedules/schedules.h"
#include "daemon/http/submit/submission.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"
#include "proto/wire/views.h"

struct schedule_run {
    struct ask ask; /* its request is NULL when the clock asks */
    struct server *server;
    struct change record;                     /* what its schedule says of it */
    char *id, *name, *owner, *spec, *earlier; /* owned; earlier: id of the job that it replaces, or NULL */
    struct submitter submitter;
    struct submission job;
    struct input inputs[2];
    struct err refusal;
    struct schedule_run *prev, *next;
};

bool schedule_is_running(const struct schedules *schedules, const char *id)
{
    const struct schedule_run *run = schedules->runs;
    while (run != NULL && strcmp(run->id, id) != 0) {
        run = run->next;
    }
    return run != NULL;
}

/* --- on the writer's thread ----------------------------------------------------------------------------- */

static void refuse(struct schedule_run *run, const struct err *err)
{
    run->refusal = *err;
    run->record.schedule.outcome = OUTCOME_REFUSED;
    run->record.schedule.error = run->refusal.text;
}

static void render_step(const struct writer_request *writer, size_t index, const struct step *step,
                        struct text *out)
{
    struct schedule_run *run = writer->asker;
    if (index + 1 < writer->input_count) {
        return; /* the earlier job may have ended by itself */
    }
    if (step->ok) {
        submission_made(&run->job, step, out);
        run->record.schedule.outcome = OUTCOME_SUBMITTED;
        run->record.schedule.job = run->job.id;
    } else {
        refuse(run, &step->err);
    }
}

static int render_run(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct schedule_run *run = writer->asker;
    if (run->record.schedule.outcome != OUTCOME_REFUSED) {
        return 201;
    }
    problem_encode(&run->refusal, out);
    return err_http(run->refusal.code);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void run_finish(struct ask *ask)
{
    struct schedule_run *run = (struct schedule_run *)ask;
    struct schedules *schedules = run->server->schedules;
    DL_DELETE(schedules->runs, run);
    schedules->run_count--;
    run->server->submits--;
    submission_finish(&run->job);
    free(run->id);
    free(run->name);
    free(run->owner);
    free(run->spec);
    free(run->earlier);
    schedules_wake(run->server);
}

static void run_begin(struct server *server, struct schedule_run *run, const struct schedule_row *row)
{
    run->server = server;
    run->id = xstrdup(row->id);
    run->name = xstrdup(row->name);
    run->owner = xstrdup(row->owner);
    run->spec = xstrdup(row->spec);
    run->ask.finish = run_finish;
    run->ask.writer.asker = run;
    run->ask.writer.render = render_run;
    run->ask.writer.kind = WRITER_RECORD;
    run->ask.writer.records = &run->record;
    run->ask.writer.record_count = 1;
    run->record =
        (struct change){.kind = CHANGE_SCHEDULE_RUN,
                        .schedule = {.id = run->id, .due_ms = server->wall_ms, .ran_ms = server->wall_ms}};
    DL_APPEND(server->schedules->runs, run);
    server->schedules->run_count++;
    server->submits++;
}

static void run_committed(struct ask *ask)
{
    struct schedule_run *run = (struct schedule_run *)ask;
    const struct schedule_row *row = &run->record.schedule;
    if (row->outcome == OUTCOME_SUBMITTED) {
        submission_committed(&run->job, &run->submitter);
        log_info("schedule run", "schedule=%s owner=%s job=%s", run->name, run->owner, row->job);
    } else {
        log_warning("schedule without run", "schedule=%s owner=%s outcome=%s reason=\"%s\"", run->name,
                    run->owner, schedule_outcome_text(row->outcome), row->error);
    }
}

/* --- what it submits ------------------------------------------------------------------------------------ */

/* Whether the job of the last run stands in the way; *ret_live: it has not ended. */
static bool look_at_earlier(const struct server *server, const struct schedule_row *row, bool *ret_live,
                            struct err *err)
{
    *ret_live = false;
    if (row->overlap == OVERLAP_ALLOW || row->job == NULL) {
        return true;
    }
    autorows struct rows rows = reader_job(server->reader, row->job, err);
    struct job_record job;
    *ret_live = rows_job(&rows, &job) && !job_state_terminal(job.life.state);
    return !rows.failed;
}

static bool find_owner(struct schedule_run *run, struct err *err)
{
    struct server *server = run->server;
    run->submitter = (struct submitter){
        server, auth_of_owner(server->auth, run->owner, SCHEDULE_LOGIN_MS, server->wall_ms), NULL};
    if (run->submitter.who != NULL) {
        return true;
    }
    err_set(err, ERR_FORBIDDEN, "%s has no valid token and no login of the last %d days", run->owner,
            (int)(SCHEDULE_LOGIN_MS / (24 * HOUR_MS)));
    return err_hint(err, "get a token or log in, then resume the schedule");
}

/* Makes the inputs of the run. */
static bool read_job(struct schedule_run *run, struct err *err)
{
    struct writer_request *writer = &run->ask.writer;
    size_t length = strlen(run->spec);
    struct input *submit = &run->inputs[run->earlier != NULL];
    if (!space_allows(run->server->space, (int64_t)length, err)) {
        return false;
    }
    autojson json_t *spec = json_parse(run->spec, length, err);
    if (spec == NULL ||
        !submission_read(&run->submitter, give(spec), run->spec, length, &run->job, submit, err)) {
        return false;
    }
    if (run->earlier != NULL) {
        run->inputs[0] =
            (struct input){.kind = INPUT_CANCEL, .cancel = {.id = run->earlier, .by = run->owner}};
    }
    writer->kind = WRITER_INPUTS;
    writer->inputs = run->inputs;
    writer->input_count = run->earlier != NULL ? 2 : 1;
    writer->render_each = render_step;
    text_reserve(&writer->answer, RECEIPT_BYTES);
    return true;
}

/* --- by the clock --------------------------------------------------------------------------------------- */

static void run_answered(struct server *server, struct ask *ask)
{
    if (ask->writer.status != 0) {
        run_committed(ask);
    }
    text_finish(&ask->writer.answer);
    run_finish(ask);
    free(ask);
}

/* Decides what becomes of a run that is due. */
static bool decide(struct schedule_run *run, const struct schedule_row *row, struct err *err)
{
    struct schedule_row *record = &run->record.schedule;
    struct cron cron;
    autozone struct zone *zone = NULL;
    int64_t now_ms = run->server->wall_ms;
    bool live;
    if (!schedule_read(row->cron, row->time_zone, now_ms, &cron, &zone, &record->next_ms, err) ||
        !find_owner(run, err)) {
        record->paused = true; /* no later run would fare better */
        return false;
    }
    const struct schedule_due due = schedule_due(&cron, zone, row->missed, row->next_ms, now_ms);
    record->due_ms = due.due_ms;
    record->next_ms = due.next_ms;
    if (!due.runs) {
        record->outcome = OUTCOME_MISSED;
        record->error = "the controller was down";
        return true;
    }
    if (!look_at_earlier(run->server, row, &live, err)) {
        return false;
    }
    if (live && row->overlap == OVERLAP_FORBID) {
        record->outcome = OUTCOME_SKIPPED;
        record->error = "the job of an earlier run has not ended";
        return true;
    }
    run->earlier = live ? xstrdup(row->job) : NULL;
    return read_job(run, err);
}

/* false: the writer has no room. */
static bool run_due(struct server *server, const struct schedule_row *row)
{
    struct schedule_run *run = xzalloc(sizeof *run);
    struct err err;
    run_begin(server, run, row);
    run->ask.answered = run_answered;
    run->record.schedule.due_ms = row->next_ms;
    if (!decide(run, row, &err)) {
        refuse(run, &err);
        run->record.schedule.reason = run->record.schedule.paused ? run->refusal.text : NULL;
    }
    if (ask_alone(server, &run->ask, &err)) {
        return true;
    }
    text_finish(&run->ask.writer.answer);
    run_finish(&run->ask);
    free(run);
    return false;
}

static void look_in(struct server *server, int64_t wait_ms)
{
    deadline_set(server->deadlines, &server->schedules->look,
                 server->now_ms + (wait_ms < SCHEDULE_LOOK_MS ? wait_ms : SCHEDULE_LOOK_MS));
}

/* Begins runs in the order in which they are due. Those that are under way are still the first in the
 * database. */
static void look(struct deadline *deadline)
{
    struct server *server = deadline->closure;
    struct schedules *schedules = server->schedules;
    struct schedule_row row;
    struct err err;
    if (server->ending || server->refusing || schedules->changes != NULL) {
        return; /* the last change wakes it */
    }
    autorows struct rows rows =
        reader_due_schedules(server->reader, LIMIT_SCHEDULE_RUNS + (int64_t)schedules->run_count, &err);
    while (schedules->run_count < LIMIT_SCHEDULE_RUNS && rows_schedule(&rows, &row)) {
        if (row.next_ms > server->wall_ms) {
            look_in(server, row.next_ms - server->wall_ms);
            return;
        }
        if (!schedule_is_running(schedules, row.id) && !run_due(server, &row)) {
            look_in(server, SCHEDULE_PAUSE_MS);
            return;
        }
    }
    if (rows.failed) {
        log_error("schedules unreadable", "reason=\"%s\"", err.text);
        look_in(server, SCHEDULE_LOOK_MS);
    }
}

void schedules_wake(struct server *server)
{
    deadline_set(server->deadlines, &server->schedules->look, server->now_ms);
}

void schedules_open(struct server *server)
{
    server->schedules = xzalloc(sizeof *server->schedules);
    server->schedules->look = (struct deadline){.due = look, .closure = server};
    schedules_wake(server);
}

/* After a failure of the writer runs are left over. */
void schedules_close(struct server *server)
{
    struct schedules *schedules = server->schedules;
    while (schedules != NULL && schedules->runs != NULL) {
        struct ask *ask = &schedules->runs->ask;
        text_finish(&ask->writer.answer);
        run_finish(ask);
        free(ask);
    }
    free(schedules);
    server->schedules = NULL;
}

bool schedules_wait(const struct server *server)
{
    struct err err;
    struct schedule_row row;
    autorows struct rows rows = reader_due_schedules(server->reader, 1, &err);
    return rows_schedule(&rows, &row) || rows.failed;
}

/* --- by request ----------------------------------------------------------------------------------------- */

static bool prepare(struct schedule_run *run, const struct schedule_row *row, struct err *err)
{
    bool live;
    if (!find_owner(run, err) || !look_at_earlier(run->server, row, &live, err)) {
        return false;
    }
    if (live && row->overlap == OVERLAP_FORBID) {
        err_set(err, ERR_CONFLICT, "job %s of an earlier run has not ended", row->job);
        return err_hint(err, "wait for it, cancel it, or let the schedule overlap");
    }
    run->earlier = live ? xstrdup(row->job) : NULL;
    return read_job(run, err);
}

bool schedules_run(struct request *request, struct err *err)
{
    struct server *server = request->server;
    autorows struct rows rows = {0};
    struct schedule_row row;
    if (!request_only_fields(request->json, "", err) || !submission_allowed(request, err) ||
        !schedule_find_row(request, &rows, &row, err)) {
        return false;
    }
    if (schedule_is_running(server->schedules, row.id)) {
        return err_set(err, ERR_UNAVAILABLE, "a run of schedule %s is being submitted", row.name);
    }
    autoask struct schedule_run *run = ask_create(request, sizeof *run, render_run);
    run_begin(server, run, &row);
    run->ask.committed = run_committed;
    run->ask.subject = run->job.id;
    return prepare(run, &row, err) && ask_writer(give(run), err);
}
