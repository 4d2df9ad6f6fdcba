/* SPDX-License-Identifier: Apache-2.0 */
/* Runs rounds of retention on a thread of their own, which gives way to everything else, one round at a time:
 * hourly, soon after a job was removed or the disk got low, and for POST /v1/retention. DELETE /v1/jobs/{id}
 * removes a job at once; the next round removes its output and history. daemon/retention decides what goes.
 */
#include "daemon/http/api/retention.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/blob/worker.h"
#include "daemon/http/api/ask.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/store/store.h"
#include "daemon/http/request/routes.h"
#include "daemon/retention/retention.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

struct retention {
    struct server *server;
    struct worker *worker;
    struct watch watch;
    struct deadline due;
    struct retention_config config;
    int64_t wall_offset_ms;        /* the wall clock minus the steady one, as of the last round */
    int64_t doubt_until_ms;        /* until then the wall clock may be wrong */
    int64_t began_ms;              /* when the last round that was not dry did; at first, the server */
    int64_t ended_ms;              /* when the last round did; an hour ago: none has */
    bool waiting;                  /* a round that nobody asked for was given to the worker */
    bool again;                    /* something was removed since, and the round may have passed it */
    int64_t measured_ms;           /* when the last round ended that has measured what is on the disk: */
    int64_t log_bytes, blob_bytes; /* -1: not known yet */
    atomic_bool stop;
};

/* A round. */
struct round {
    struct task task; /* first: a task is its round */
    struct retention *retention;
    struct request *request; /* that asked for it; NULL: it went away, or the clock asked */
    bool by_clock;
    bool dry;
    struct retention_clock clock;
    bool ok;
    struct retention_report report;
    struct err err;
    bool measures;                 /* what is on the disk after it: */
    int64_t log_bytes, blob_bytes; /* -1: not known */
};

static bool go_on(void *closure)
{
    const struct retention *retention = closure;
    return !atomic_load(&retention->stop);
}

/* --- rounds --------------------------------------------------------------------------------------------- */

/* Not in each of the rounds that removals bring about. */
static bool is_measured(const struct retention *retention, const struct request *request)
{
    return request != NULL || retention->server->now_ms - retention->measured_ms >= RETENTION_LOW_MS;
}

static void measure(struct round *round)
{
    const struct retention_config *config = &round->retention->config;
    struct err err;
    if (!logs_measure(config->logs, config->go_on, config->closure, &round->log_bytes, &err)) {
        round->log_bytes = -1;
    }
    if (!blobs_measure(config->blobs, &round->blob_bytes, &err)) {
        round->blob_bytes = -1;
    }
}

static void round_work(struct task *task)
{
    struct round *round = (struct round *)task;
    worker_give_way();
    round->ok =
        retention_run(&round->retention->config, round->dry, &round->clock, &round->report, &round->err);
    if (round->measures) {
        measure(round);
    }
}

static void write_report(const struct round *round, struct text *out)
{
    const struct retention_report *report = &round->report;
    member_write_bool(out, "{\"dry_run\":", round->dry);
    member_write_int(out, ",\"jobs\":", report->jobs);
    member_write_int(out, ",\"logs\":", report->logs);
    member_write_int(out, ",\"log_bytes\":", report->log_bytes);
    member_write_int(out, ",\"blobs\":", report->blobs);
    member_write_int(out, ",\"blob_bytes\":", report->blob_bytes);
    member_write_int(out, ",\"nodes\":", report->nodes);
    member_write_int(out, ",\"runs\":", report->runs);
    member_write_int(out, ",\"file_bytes\":", report->file_bytes);
    member_write_bool(out, ",\"clock_doubtful\":", report->doubtful);
    text_append(out, "}");
}

static void answer(const struct round *round)
{
    struct text json = {0};
    round->request->state = NULL;
    if (round->ok) {
        write_report(round, &json);
        request_reply_json(round->request, 200, &json);
    } else {
        request_fail(round->request, &round->err);
    }
}

static void tell(const struct round *round)
{
    const struct retention_report *report = &round->report;
    if (!round->ok) {
        log_error("retention failed", "text=\"%s\"", round->err.text);
    } else if (report->doubtful) {
        log_warning("retention waits",
                    "reason=\"the clock is far ahead of what was known\" hours=%lld remedy=\"see whether the "
                    "clock is right\"",
                    RETENTION_DOUBT_MS / 3600000);
    } else if (!round->dry && report->jobs + report->logs + report->blobs + report->nodes + report->runs +
                                      report->file_bytes >
                                  0) {
        log_info("retention remove",
                 "jobs=%lld logs=%lld log_bytes=%lld blobs=%lld blob_bytes=%lld nodes=%lld runs=%lld "
                 "file_bytes=%lld",
                 (long long)report->jobs, (long long)report->logs, (long long)report->log_bytes,
                 (long long)report->blobs, (long long)report->blob_bytes, (long long)report->nodes,
                 (long long)report->runs, (long long)report->file_bytes);
    }
}

static void round_done(struct task *task)
{
    struct round *round = (struct round *)task;
    struct retention *retention = round->retention;
    retention->ended_ms = retention->server->now_ms;
    if (round->measures) {
        retention->measured_ms = retention->ended_ms;
        retention->log_bytes = round->log_bytes;
        retention->blob_bytes = round->blob_bytes;
    }
    if (!atomic_load(&retention->stop)) {
        tell(round);
    }
    if (round->request != NULL) {
        answer(round);
    }
    if (round->by_clock) {
        int64_t pause_ms = retention->again ? RETENTION_SOON_MS : RETENTION_INTERVAL_MS;
        retention->waiting = retention->again = false;
        deadline_set(retention->server->deadlines, &retention->due, retention->server->now_ms + pause_ms);
    }
    free(round);
}

/* A wall clock that has leapt forward makes everything old. Whether it is right now or was before shows in
 * the next hours. */
static void watch_clock(struct retention *retention)
{
    const struct server *server = retention->server;
    int64_t offset_ms = server->wall_ms - server->now_ms;
    if (offset_ms - retention->wall_offset_ms > RETENTION_LEAP_MS) {
        retention->doubt_until_ms = server->now_ms + RETENTION_DOUBT_MS;
    }
    retention->wall_offset_ms = offset_ms;
}

/* By the wall clock nothing has happened for long before this start. */
static bool doubt_start(struct retention *retention, struct err *err)
{
    const struct server *server = retention->server;
    const struct job_filter newest = {.limit = 1};
    autorows struct rows rows = reader_jobs(server->reader, &newest, err);
    struct job_record job;
    retention->wall_offset_ms = server->wall_ms - server->now_ms;
    if (rows_job(&rows, &job) && server->wall_ms - job.birth.created_ms > RETENTION_LEAP_MS) {
        retention->doubt_until_ms = server->now_ms + RETENTION_DOUBT_MS;
    }
    return !rows.failed;
}

/* request NULL: the clock asks. */
static struct round *begin(struct retention *retention, struct request *request, bool dry)
{
    const struct server *server = retention->server;
    struct round *round = xzalloc(sizeof *round);
    watch_clock(retention);
    *round = (struct round){.task = {.work = round_work, .done = round_done},
                            .retention = retention,
                            .request = request,
                            .by_clock = request == NULL,
                            .dry = dry,
                            .measures = is_measured(retention, request),
                            .clock = {.wall_ms = server->wall_ms,
                                      .elapsed_ms = dry ? 0 : server->now_ms - retention->began_ms,
                                      .doubtful = server->now_ms < retention->doubt_until_ms}};
    retention->began_ms = dry ? retention->began_ms : server->now_ms;
    worker_give(retention->worker, &round->task);
    return round;
}

static void round_due(struct deadline *deadline)
{
    struct retention *retention = deadline->closure;
    if (!retention->server->ending && !retention->waiting) {
        retention->waiting = true;
        begin(retention, NULL, false);
    }
}

void retention_soon(struct server *server, int64_t not_within_ms)
{
    struct retention *retention = server->retention;
    int64_t at_ms = server->now_ms + RETENTION_SOON_MS;
    if (retention == NULL) {
        return;
    }
    retention->again = retention->waiting && (retention->again || not_within_ms == 0);
    if (!retention->waiting && retention->due.at_ms > at_ms &&
        server->now_ms - retention->ended_ms >= not_within_ms) {
        deadline_set(server->deadlines, &retention->due, at_ms);
    }
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void worker_ready(struct watch *watch)
{
    worker_collect(watch->closure);
}

static void disk_low(struct server *server)
{
    retention_soon(server, RETENTION_LOW_MS);
}

/* A backup names blobs as long as it is on the shelf. */
static int64_t file_age(const struct server_config *config)
{
    int64_t shelf_ms =
        config->backup_interval_ms < INT64_MAX / LIMIT_BACKUP_KEEP / 2 ? config->backup_interval_ms : 0;
    shelf_ms *= config->backup_keep + 1;
    return shelf_ms > RETENTION_BLOB_MS ? shelf_ms : RETENTION_BLOB_MS;
}

bool retention_open(struct server *server, struct err *err)
{
    const struct server_config *config = &server->config;
    if (config->logs == NULL || config->blobs == NULL || config->state_directory == NULL) {
        return true;
    }
    struct retention *retention = server->retention = xzalloc(sizeof *retention);
    retention->server = server;
    retention->began_ms = server->opened_ms;
    retention->ended_ms = server->now_ms - RETENTION_INTERVAL_MS;
    retention->measured_ms = retention->ended_ms;
    retention->log_bytes = retention->blob_bytes = -1;
    retention->due = (struct deadline){.due = round_due, .closure = retention};
    retention->config = (struct retention_config){.writer = config->writer,
                                                  .logs = config->logs,
                                                  .checkpoints = config->checkpoints,
                                                  .blobs = config->blobs,
                                                  .objects = server->objects,
                                                  .tracking = server->tracking,
                                                  .store_path = config->store_path,
                                                  .state_directory = config->state_directory,
                                                  .ages = config->ages,
                                                  .nodes_ms = config->keep_nodes_ms,
                                                  .usage_ms = config->keep_usage_ms,
                                                  .audit_ms = config->keep_audit_ms,
                                                  .logs_share_percent = config->logs_share_percent,
                                                  .blob_files_ms = file_age(config),
                                                  .go_on = go_on,
                                                  .closure = retention};
    retention->worker = worker_open(err);
    if (retention->worker == NULL || !doubt_start(retention, err)) {
        return false;
    }
    retention->watch = (struct watch){
        .fd = worker_fd(retention->worker), .ready = worker_ready, .closure = retention->worker};
    space_when_low(server->space, disk_low);
    deadline_set(server->deadlines, &retention->due, server->now_ms + RETENTION_FIRST_MS);
    return server_watch(server, &retention->watch, err);
}

void retention_close(struct server *server)
{
    struct retention *retention = server->retention;
    if (retention == NULL) {
        return;
    }
    atomic_store(&retention->stop, true);
    worker_close(retention->worker);
    server->retention = NULL;
    deadline_clear(server->deadlines, &retention->due);
    free(retention);
}

struct retention_sizes retention_sizes(const struct server *server)
{
    const struct retention *retention = server->retention;
    struct retention_sizes sizes = {.log_bytes = -1, .blob_bytes = -1};
    struct file_disk disk;
    if (retention != NULL) {
        sizes.log_bytes = retention->log_bytes;
        sizes.blob_bytes = retention->blob_bytes;
        sizes.log_share_bytes = file_disk(retention->config.state_directory, &disk)
                                    ? disk.bytes / 100 * retention->config.logs_share_percent
                                    : 0;
    }
    return sizes;
}

/* --- the resource --------------------------------------------------------------------------------------- */

static void request_gone(void *state)
{
    struct round *round = state;
    if (round != NULL) {
        round->request = NULL;
    }
}

bool retention_ask(struct request *request, struct err *err)
{
    struct retention *retention = request->server->retention;
    bool dry = false;
    if (retention == NULL) {
        return err_set(err, ERR_NOT_FOUND, "this controller keeps no logs and blobs");
    }
    if (!request_only_fields(request->json, "dry_run", err) ||
        !json_read_bool(request->json, "dry_run", &dry, err)) {
        return false;
    }
    request->changes_more = !dry;
    request->state = begin(retention, request, dry);
    request->state_finish = request_gone;
    return request_wait(request);
}

/* --- the removal of one job ----------------------------------------------------------------------------- */

struct removal {
    struct ask ask;
    int64_t key;
};

static int render_removed(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct removal *removal = writer->asker;
    member_write_text(out, "{\"id\":", removal->ask.request->argument);
    text_append(out, ",\"removed\":true}");
    return 200;
}

static void removed(struct ask *ask)
{
    retention_soon(ask->request->server, 0);
}

bool jobs_remove(struct request *request, struct err *err)
{
    struct job_facts facts;
    if (!job_find_to_change(request, &facts, err)) {
        return false;
    }
    if (request->array_id[0] != '\0') {
        return err_field(err, ERR_CONFLICT, "id", "remove the whole array", "%s is a task of an array",
                         request->argument);
    }
    struct removal *removal = ask_create(request, sizeof *removal, render_removed);
    removal->key = facts.key;
    removal->ask.committed = removed;
    removal->ask.writer.input.kind = INPUT_REMOVE;
    removal->ask.writer.input.remove.keys = &removal->key;
    removal->ask.writer.input.remove.count = 1;
    return ask_writer(removal, err);
}
