/* SPDX-License-Identifier: Apache-2.0 */
/* Serves schedules: list, make, show, change, remove. People see and change their own; operators see, pause
 * and remove those of all. Nobody changes the spec of a schedule, whose jobs have the rights of its owner.
 * schedule_run.c submits the jobs. */
#include "daemon/http/schedules/schedules.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/submitter.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/schedules/schedule_due.h"
#include "daemon/http/submit/submission.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

/* --- reading -------------------------------------------------------------------------------------------- */

/* The caller writes the end. */
static void begin_schedule(const struct schedule_row *row, struct text *out)
{
    member_write_text(out, "{\"id\":", row->id);
    member_write_text(out, ",\"name\":", row->name);
    member_write_text(out, ",\"owner\":", row->owner);
    member_write_text(out, ",\"project\":", row->project);
    member_write_text(out, ",\"cron\":", row->cron);
    member_write_text(out, ",\"time_zone\":", row->time_zone);
    member_write_text(out, ",\"missed\":", schedule_missed_text(row->missed));
    member_write_text(out, ",\"overlap\":", schedule_overlap_text(row->overlap));
    member_write_bool(out, ",\"paused\":", row->paused);
    member_write_text(out, ",\"reason\":", row->reason);
    member_write_time(out, ",\"next_at\":", row->paused ? 0 : row->next_ms);
    member_write_time(out, ",\"created_at\":", row->created_ms);
    member_write_time(out, ",\"last_due_at\":", row->due_ms);
    member_write_time(out, ",\"last_run_at\":", row->ran_ms);
    member_write_text(out, ",\"last_outcome\":", schedule_outcome_text(row->outcome));
    member_write_text(out, ",\"last_error\":", row->error);
    member_write_text(out, ",\"last_job\":", row->job);
}

static bool write_job_state(const struct request *request, const struct schedule_row *row, struct text *out,
                            struct err *err)
{
    const char *state = NULL;
    struct job_record job;
    autorows struct rows rows = reader_job(request->server->reader, row->job != NULL ? row->job : "", err);
    if (rows_job(&rows, &job)) {
        state = job_state_text(job.life.state);
    }
    member_write_text(out, ",\"last_job_state\":", state);
    return !rows.failed;
}

static bool is_mine(const struct request *request, const char *owner)
{
    const char *scope = request_owner_scope(request);
    return scope == NULL || strcmp(scope, owner) == 0;
}

static bool is_of_other(const struct request *request, const char *owner)
{
    return strcmp(identity_owner(request->who), owner) != 0;
}

bool schedule_find_row(struct request *request, struct rows *ret_rows, struct schedule_row *ret_row,
                       struct err *err)
{
    *ret_rows = reader_schedule(request->server->reader, request->argument, err);
    if (rows_schedule(ret_rows, ret_row) && is_mine(request, ret_row->owner)) {
        return true;
    }
    return !ret_rows->failed && err_field(err, ERR_NOT_FOUND, "id", "list the schedules",
                                          "there is no schedule %s", request->argument);
}

bool schedules_show(struct request *request, struct err *err)
{
    autotext struct text json = {0};
    autorows struct rows rows = {0};
    struct schedule_row row;
    if (!schedule_find_row(request, &rows, &row, err)) {
        return false;
    }
    begin_schedule(&row, &json);
    if (!write_job_state(request, &row, &json, err)) {
        return false;
    }
    text_printf(&json, ",\"spec\":%s}", row.shown != NULL ? row.shown : row.spec);
    request->looks_beyond |= is_of_other(request, row.owner);
    return request_reply_json(request, 200, &json);
}

/* One row more than the page has tells whether there is a next one. The cursor is the id of the last. */
bool schedules_list(struct request *request, struct err *err)
{
    const char *after = query_text(request->query, "cursor");
    int64_t limit = LIMIT_LIST_DEFAULT_ROWS, others = 0;
    if (!query_int(request->query, "limit", 1, LIMIT_LIST_ROWS, &limit, err)) {
        return false;
    }
    autotext struct text json = {0};
    autofree char *last = NULL;
    autorows struct rows rows = reader_schedules(request->server->reader, request_owner_scope(request),
                                                 after != NULL ? after : "", limit + 1, err);
    struct schedule_row row;
    bool more;
    text_append(&json, "{\"schedules\":[");
    while ((more = rows_schedule(&rows, &row)) && limit-- > 0) {
        member_separate(&json);
        begin_schedule(&row, &json);
        if (!write_job_state(request, &row, &json, err)) {
            return false;
        }
        text_append(&json, "}");
        others += is_of_other(request, row.owner);
        free(last);
        last = xstrdup(row.id);
    }
    member_write_text(&json, "],\"next\":", more ? last : NULL);
    text_append(&json, "}");
    request_shows_others(request, others);
    return !rows.failed && request_reply_json(request, 200, &json);
}

/* --- changes -------------------------------------------------------------------------------------------- */

struct schedule_ask {
    struct ask ask;
    bool makes;
    struct schedule_row before; /* of one that is there; owned */
    struct schedule_row row;
    struct change *changes; /* the schedule, and what it uses; owned */
    size_t count, room;
    struct submission job; /* the spec of a new one */
    char id[ID_LENGTH + 1];
    char *spec, *detail; /* owned */
    struct schedule_ask *prev, *next;
};

static void schedule_ask_finish(struct ask *ask)
{
    struct schedule_ask *asked = (struct schedule_ask *)ask;
    struct server *server = ask->request->server;
    DL_DELETE(server->schedules->changes, asked);
    SCHEDULE_ROW(ROW_FREE, asked->before)
    submission_finish(&asked->job);
    free(asked->changes);
    free(asked->spec);
    free(asked->detail);
    schedules_wake(server);
}

static struct schedule_ask *schedule_ask_create(struct request *request,
                                                int (*render)(const struct writer_request *,
                                                              const struct step *, struct text *))
{
    struct schedule_ask *asked = ask_create(request, sizeof *asked, render);
    asked->ask.finish = schedule_ask_finish;
    asked->ask.writer.kind = WRITER_RECORD;
    DL_APPEND(request->server->schedules->changes, asked);
    return asked;
}

static void add_change(struct schedule_ask *asked, struct change change)
{
    XGROW(asked->changes, asked->count, asked->room, 4);
    asked->changes[asked->count++] = change;
}

static bool ask_changes(struct schedule_ask *asked, struct err *err)
{
    asked->ask.writer.records = asked->changes;
    asked->ask.writer.record_count = asked->count;
    return ask_writer(asked, err);
}

static int render_row(const struct writer_request *writer, struct text *out, int status)
{
    begin_schedule(&((const struct schedule_ask *)writer->asker)->row, out);
    text_append(out, "}");
    return status;
}

/* --- make ----------------------------------------------------------------------------------------------- */

static int render_made(const struct writer_request *writer, const struct step *step, struct text *out)
{
    return render_row(writer, out, 201);
}

static bool read_choices(const json_t *json, struct schedule_row *row, struct err *err)
{
    const char *missed = schedule_missed_text(row->missed), *overlap = schedule_overlap_text(row->overlap);
    if (!json_read_text(json, "cron", &row->cron, err) ||
        !json_read_text(json, "time_zone", &row->time_zone, err) ||
        !json_read_text(json, "missed", &missed, err) || !json_read_text(json, "overlap", &overlap, err) ||
        !json_read_bool(json, "paused", &row->paused, err)) {
        return false;
    }
    if (!schedule_missed_from_text(missed, &row->missed)) {
        return err_field(err, ERR_FIELD, "missed", "write skip or last", "there is no choice \"%.64s\"",
                         missed);
    }
    return schedule_overlap_from_text(overlap, &row->overlap) ||
           err_field(err, ERR_FIELD, "overlap", "write allow, forbid or replace",
                     "there is no choice \"%.64s\"", overlap);
}

static bool check_name(const struct request *request, const char *name, struct err *err)
{
    const char *owner = identity_owner(request->who);
    struct schedule_counts counts;
    if (!text_is_name(name, LIMIT_NAME_BYTES)) {
        return err_field(err, ERR_FIELD, "name", NULL,
                         "the name must be 1 to %d letters, digits and . _ -, and start with a letter or "
                         "digit",
                         LIMIT_NAME_BYTES);
    }
    if (!reader_schedule_counts(request->server->reader, owner, name, &counts, err)) {
        return false;
    }
    for (const struct schedule_ask *one = request->server->schedules->changes; one != NULL; one = one->next) {
        bool own = one->makes && strcmp(one->row.owner, owner) == 0;
        counts.all += one->makes;
        counts.own += own;
        counts.named += own && strcmp(one->row.name, name) == 0;
    }
    if (counts.named > 0) {
        return err_field(err, ERR_CONFLICT, "name", "choose another name, or remove that schedule",
                         "you have a schedule %s already", name);
    }
    return (counts.own < LIMIT_SCHEDULES_OF_OWNER && counts.all < LIMIT_SCHEDULES) ||
           err_field(err, ERR_CONFLICT, "name", "remove one that you do not need",
                     "there are %lld schedules already, of which %lld are yours; the limits are %d and %d",
                     (long long)counts.all, (long long)counts.own, LIMIT_SCHEDULES, LIMIT_SCHEDULES_OF_OWNER);
}

/* Jobs are found by their label, and are called like their schedule unless they have a name. */
static bool mark(json_t *spec, const char *name, struct err *err)
{
    json_t *labels = json_object_get(spec, "labels");
    if (labels == NULL) {
        labels = json_object();
        json_object_set_new(spec, "labels", labels);
    }
    if (json_object_get(labels, "schedule") != NULL) {
        return err_field(err, ERR_FIELD, "labels.schedule", "leave it out",
                         "the label schedule of the jobs is the name of their schedule");
    }
    if (json_is_object(labels)) { /* another type is refused with the rest of the spec */
        json_object_set_new(labels, "schedule", json_string(name));
    }
    if (json_object_get(spec, "name") == NULL) {
        json_object_set_new(spec, "name", json_string(name));
    }
    return true;
}

static bool add_use(void *closure, const char *hash, const char *field)
{
    struct schedule_ask *asked = closure;
    add_change(asked, (struct change){.kind = CHANGE_SCHEDULE_USE_PUT,
                                      .schedule_use = {.schedule = asked->id, .hash = hash}});
    return true;
}

/* Checks the spec as if it were submitted now. */
static bool take_spec(struct request *request, struct schedule_ask *asked, struct err *err)
{
    json_t *spec = json_object_get(request->json, "spec");
    const struct submitter submitter = {request->server, request->who, NULL};
    struct input input;
    if (!json_is_object(spec)) {
        return err_field(err, ERR_FIELD, "spec", "write what POST /v1/jobs takes",
                         "spec must be the spec of a job");
    }
    if (!mark(spec, asked->row.name, err)) {
        return false;
    }
    asked->spec = json_text(spec);
    size_t length = strlen(asked->spec);
    if (length > LIMIT_SUBMIT_BYTES) {
        return err_set(err, ERR_TOO_LARGE, "the spec is longer than %lld bytes",
                       (long long)LIMIT_SUBMIT_BYTES);
    }
    if (!submission_read(&submitter, json_incref(spec), asked->spec, length, &asked->job, &input, err)) {
        return false;
    }
    asked->row.spec = asked->spec;
    asked->row.shown = asked->job.shown;
    asked->row.project = job_spec_project(&asked->job.spec);
    return true;
}

bool schedules_make(struct request *request, struct err *err)
{
    autoask struct schedule_ask *asked = schedule_ask_create(request, render_made);
    struct schedule_row *row = &asked->row;
    autozone struct zone *zone = NULL;
    struct cron cron;
    uint8_t id[10];
    row->time_zone = "UTC";
    row->created_ms = request->server->wall_ms;
    if (!request_only_fields(request->json, "name cron time_zone missed overlap paused spec", err) ||
        !json_need_text(request->json, "name", &row->name, err) || !check_name(request, row->name, err) ||
        !json_need_text(request->json, "cron", &row->cron, err) || !read_choices(request->json, row, err) ||
        !schedule_read(row->cron, row->time_zone, row->created_ms, &cron, &zone, &row->next_ms, err) ||
        !submission_allowed(request, err) || !take_spec(request, asked, err)) {
        return false;
    }
    server_random(request->server, id, sizeof id);
    text_id_from_bytes(id, asked->id);
    row->id = asked->ask.subject = asked->id;
    row->owner = identity_owner(request->who);
    asked->ask.detail = asked->detail = xprintf("{\"name\":\"%s\"}", row->name);
    add_change(asked, (struct change){.kind = CHANGE_SCHEDULE_INSERT, .schedule = *row});
    job_spec_each_blob(&asked->job.spec, add_use, asked);
    asked->makes = true;
    return ask_changes(give(asked), err);
}

/* --- change and remove ---------------------------------------------------------------------------------- */

static int render_changed(const struct writer_request *writer, const struct step *step, struct text *out)
{
    return render_row(writer, out, 200);
}

/* A run that is with the writer has moved next_ms on; else only a change that concerns it does, so that a run
 * which is due is not lost. */
static bool find_next(const struct request *request, const struct schedule_row *before,
                      struct schedule_row *row, struct err *err)
{
    autozone struct zone *zone = NULL;
    struct cron cron;
    int64_t next_ms;
    bool changes = strcmp(before->cron, row->cron) != 0 || strcmp(before->time_zone, row->time_zone) != 0 ||
                   (before->paused && !row->paused) ||
                   schedule_is_running(request->server->schedules, row->id);
    if (changes &&
        !schedule_read(row->cron, row->time_zone, request->server->wall_ms, &cron, &zone, &next_ms, err)) {
        return false;
    }
    row->next_ms = changes ? next_ms : row->next_ms;
    return true;
}

/* The schedule that the request names, for as long as the ask lives. */
static bool find_before(struct request *request, struct schedule_ask *asked, struct err *err)
{
    autorows struct rows rows = {0};
    struct schedule_row row;
    if (!schedule_find_row(request, &rows, &row, err)) {
        return false;
    }
    SCHEDULE_ROW(ROW_OWN, row)
    asked->before = asked->row = row;
    return true;
}

bool schedules_change(struct request *request, struct err *err)
{
    autoask struct schedule_ask *asked = schedule_ask_create(request, render_changed);
    struct schedule_row *row = &asked->row;
    if (!request_only_fields(request->json, "cron time_zone missed overlap paused", err) ||
        !find_before(request, asked, err) || !read_choices(request->json, row, err) ||
        !find_next(request, &asked->before, row, err)) {
        return false;
    }
    if (json_is_boolean(json_object_get(request->json, "paused"))) {
        row->reason = NULL;
    }
    add_change(asked, (struct change){.kind = CHANGE_SCHEDULE_UPDATE, .schedule = *row});
    return ask_changes(give(asked), err);
}

static int render_removed(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct schedule_ask *asked = writer->asker;
    member_write_text(out, "{\"id\":", asked->row.id);
    text_append(out, ",\"removed\":true}");
    return 200;
}

bool schedules_remove(struct request *request, struct err *err)
{
    autoask struct schedule_ask *asked = schedule_ask_create(request, render_removed);
    if (!find_before(request, asked, err)) {
        return false;
    }
    add_change(asked, (struct change){.kind = CHANGE_SCHEDULE_DELETE, .schedule = {.id = asked->row.id}});
    return ask_changes(give(asked), err);
}
