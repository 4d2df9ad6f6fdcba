/* SPDX-License-Identifier: Apache-2.0 */
/* Owns when backups are made, and their resource: list, make. It promises that one is made at a time, on a
 * thread of its own that gives way to all else, that those who ask while one is being made get one that was
 * begun after they asked, that none takes the last of the disk, and that a backup which fails is logged and
 * tried again. What a backup is, and which of them stay, is daemon/backup's. */
#include "daemon/http/api/backups.h"

#include <linux/ioprio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utlist.h>

#include "daemon/backup/shelf.h"
#include "daemon/blob/worker.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/log.h"
#include "proto/limits.h"
#include "proto/members.h"

/* A request that waits for a backup which is not begun yet, or is being made. */
struct backup_waiter {
    struct request *request; /* NULL: it went away */
    struct backup_waiter *prev, *next;
};

struct backups {
    struct server *server;
    struct worker *worker;
    struct watch watch;
    struct deadline due;
    struct shelved *items; /* what lies on the shelf, the newest first */
    size_t count;
    struct backup_waiter *next_waiters,
        *served_waiters; /* for the next backup; for the one that is being made */
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

/* On Linux these are of the calling thread alone. */
static void give_way(void)
{
    setpriority(PRIO_PROCESS, 0, 10);
    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7));
}

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
    give_way();
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
    backups->served_waiters = give(backups->next_waiters);
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

static void answer(struct backups *backups, struct request *request)
{
    struct text json = {0};
    if (backups->made) {
        write_shelved(&backups->fresh, &json);
        request_reply_json(request, 201, &json);
    } else {
        request_fail(request, &backups->err);
    }
}

static void answer_all(struct backups *backups)
{
    struct backup_waiter *waiter, *next;
    DL_FOREACH_SAFE (backups->served_waiters, waiter, next) {
        struct request *request = give(waiter->request);
        DL_DELETE(backups->served_waiters, waiter);
        if (request != NULL) {
            request->state = NULL;
            answer(backups, request);
        }
        free(waiter);
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
    answer_all(backups);
    if (backups->server->ending) {
        return;
    }
    set_due(backups, backups->made ? interval_ms : least(interval_ms, BACKUP_FIRST_MS));
    if (backups->next_waiters != NULL) {
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

static void free_waiters(struct backup_waiter *waiters)
{
    struct backup_waiter *waiter, *next;
    DL_FOREACH_SAFE (waiters, waiter, next) {
        free(waiter);
    }
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
    free_waiters(backups->next_waiters);
    free_waiters(backups->served_waiters);
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

static void waiter_gone(void *state)
{
    struct backup_waiter *waiter = state;
    if (waiter != NULL) {
        waiter->request = NULL;
    }
}

bool backups_make(struct request *request, struct err *err)
{
    struct backups *backups = request->server->backups;
    if (!have_shelf(request, err) || !request_only_fields(request->json, "", err)) {
        return false;
    }
    struct backup_waiter *waiter = xzalloc(sizeof *waiter);
    waiter->request = request;
    DL_APPEND(backups->next_waiters, waiter);
    request->state = waiter;
    request->state_finish = waiter_gone;
    if (!backups->busy) {
        begin(backups);
    }
    return request_wait(request);
}
