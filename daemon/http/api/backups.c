/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when backups are made, and serves them: list, make. One backup is made at a time, on a thread of
 * its own that gives way to all else. A request that comes while one is being made gets a backup that was
 * begun after the request. No backup takes the last of the disk. A backup that fails is logged and tried
 * again. daemon/backup makes the backups and decides which of them stay. */
#include "daemon/http/api/backups.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/backup/shelf.h"
#include "daemon/blob/worker.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/waiters.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

struct backups {
    struct server *server;
    struct worker *worker;
    struct watch watch;
    struct deadline due;
    struct shelved *items; /* the backups on the shelf, the newest first */
    size_t count;
    int64_t begun;  /* how many were begun: the number of the last one */
    int64_t wanted; /* the largest number that a request waits for */
    atomic_bool stop;

    /* The backup that is being made: of the worker's thread meanwhile. */
    struct task task;
    bool busy;
    bool made;
    int64_t margin_bytes;
    struct err err;
    struct shelved fresh;
    struct shelved *fresh_items;
    size_t fresh_count;
};

/* --- the worker's thread -------------------------------------------------------------------------------- */

static bool go_on(void *closure)
{
    struct backups *backups = closure;
    return !atomic_load(&backups->stop);
}

static void work(struct task *task)
{
    struct backups *backups = (struct backups *)((char *)task - offsetof(struct backups, task));
    const struct server_config *config = &backups->server->config;
    const struct copy_watch watch = {.go_on = go_on, .closure = backups};
    worker_give_way();
    backups->made =
        file_make_directories(config->backup_shelf, 0700, &backups->err) &&
        backup_fits(config->state_directory, config->backup_shelf, backups->margin_bytes, &backups->err) &&
        shelf_add(config->backup_shelf, config->state_directory, config->backup_keep, &watch, &backups->fresh,
                  &backups->err) &&
        shelf_list(config->backup_shelf, &backups->fresh_items, &backups->fresh_count, &backups->err);
}

/* --- one after the other -------------------------------------------------------------------------------- */

static void done(struct task *task);

static void begin(struct backups *backups)
{
    backups->busy = true;
    backups->margin_bytes = space_margin(backups->server->space);
    backups->begun++;
    backups->task = (struct task){.work = work, .done = done};
    deadline_clear(backups->server->deadlines, &backups->due);
    worker_give(backups->worker, &backups->task);
}

static void write_shelved(const struct shelved *shelved, struct text *out)
{
    member_write_text(out, "{\"name\":", shelved->name);
    member_write_time(out, ",\"taken_at\":", shelved->backup.taken_ms);
    member_write_int(out, ",\"bytes\":", shelved->backup.bytes);
    member_write_int(out, ",\"took_ms\":", shelved->backup.took_ms);
    text_append(out, "}");
}

/* Answers a request that waited for the backup. */
static void answer(struct waiter *waiter, const struct job_touch *touch)
{
    struct request *request = waiter->closure;
    struct backups *backups = request->server->backups;
    struct text json = {0};
    if (backups->made) {
        write_shelved(&backups->fresh, &json);
        request_reply_json(request, 201, &json);
    } else {
        request_fail(request, &backups->err);
    }
}

static void take_outcome(struct backups *backups)
{
    if (backups->made) {
        free(backups->items);
        backups->items = give(backups->fresh_items);
        backups->count = backups->fresh_count;
        log_info("backup make", "name=%s bytes=%lld took_ms=%lld", backups->fresh.name,
                 (long long)backups->fresh.backup.bytes, (long long)backups->fresh.backup.took_ms);
    } else if (!atomic_load(&backups->stop)) {
        log_error("backup failed", "text=\"%s\"", backups->err.text);
        if (backups->err.code == ERR_DAMAGED) {
            server_fail(backups->server, &backups->err);
        }
    }
}

static void set_due(struct backups *backups, int64_t wait_ms)
{
    if (backups->server->config.backup_interval_ms > 0) {
        deadline_set(backups->server->deadlines, &backups->due, backups->server->now_ms + wait_ms);
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void done(struct task *task)
{
    struct backups *backups = (struct backups *)((char *)task - offsetof(struct backups, task));
    int64_t interval_ms = backups->server->config.backup_interval_ms;
    backups->busy = false;
    take_outcome(backups);
    waiters_wake(backups->server->waiters, WAITERS_BACKUP(backups->begun), NULL);
    if (backups->server->ending) {
        return;
    }
    set_due(backups, backups->made ? interval_ms : least(interval_ms, BACKUP_FIRST_MS));
    if (backups->wanted > backups->begun) {
        begin(backups);
    }
}

static void backup_due(struct deadline *deadline)
{
    struct backups *backups = deadline->closure;
    if (!backups->busy && !backups->server->ending) {
        begin(backups);
    }
}

static void worker_done(struct watch *watch)
{
    worker_collect(watch->closure);
}

/* --- life ----------------------------------------------------------------------------------------------- */

/* As if the controller had not been away since the newest backup. The wall clock may have jumped. */
static int64_t first_wait(const struct backups *backups)
{
    int64_t interval_ms = backups->server->config.backup_interval_ms;
    if (backups->count == 0) {
        return least(interval_ms, BACKUP_FIRST_MS);
    }
    int64_t age_ms = backups->server->wall_ms - backups->items[0].backup.taken_ms;
    return age_ms < 0 || age_ms > interval_ms ? 0 : interval_ms - age_ms;
}

int64_t backups_newest_ms(const struct server *server)
{
    const struct backups *backups = server->backups;
    return backups != NULL && backups->count > 0 ? backups->items[0].backup.taken_ms : 0;
}

bool backups_open(struct server *server, struct err *err)
{
    if (server->config.backup_shelf == NULL) {
        return true;
    }
    struct backups *backups = server->backups = xzalloc(sizeof *backups);
    backups->server = server;
    backups->due = (struct deadline){.due = backup_due, .closure = backups};
    backups->worker = worker_open(err);
    if (backups->worker == NULL ||
        !shelf_list(server->config.backup_shelf, &backups->items, &backups->count, err)) {
        return false;
    }
    backups->watch =
        (struct watch){.fd = worker_fd(backups->worker), .ready = worker_done, .closure = backups->worker};
    set_due(backups, first_wait(backups));
    return server_watch(server, &backups->watch, err);
}

void backups_close(struct server *server)
{
    struct backups *backups = server->backups;
    if (backups == NULL) {
        return;
    }
    atomic_store(&backups->stop, true);
    worker_close(backups->worker);
    server->backups = NULL;
    deadline_clear(server->deadlines, &backups->due);
    free(backups->items);
    free(backups->fresh_items);
    free(backups);
}

/* --- the resource --------------------------------------------------------------------------------------- */

static bool have_shelf(const struct request *request, struct err *err)
{
    return request->server->backups != NULL ||
           err_set(err, ERR_NOT_FOUND, "this controller keeps no backups");
}

bool backups_list(struct request *request, struct err *err)
{
    const struct backups *backups = request->server->backups;
    struct text json = {0};
    if (!have_shelf(request, err)) {
        return false;
    }
    member_write_text(&json, "{\"folder\":", request->server->config.backup_shelf);
    text_append(&json, ",\"backups\":[");
    for (size_t i = 0; i < backups->count; i++) {
        member_separate(&json);
        write_shelved(&backups->items[i], &json);
    }
    text_append(&json, "]}");
    return request_reply_json(request, 200, &json);
}

bool backups_make(struct request *request, struct err *err)
{
    struct backups *backups = request->server->backups;
    if (!have_shelf(request, err) || !request_only_fields(request->json, "", err)) {
        return false;
    }
    request->changes_more = true;
    backups->wanted = backups->begun + 1;
    request->waiter.wake = answer;
    request->waiter.closure = request;
    waiters_add(request->server->waiters, &request->waiter, WAITERS_BACKUP(backups->wanted));
    if (!backups->busy) {
        begin(backups);
    }
    return request_wait(request);
}
