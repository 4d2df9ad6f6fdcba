/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the free space of the disk. Uploads and submissions are refused while there is still room for
 * the exits and logs of running jobs, and output is refused a little earlier. When the disk is full all
 * the same, the store has given up the reserve file. Then nothing is taken in until the reserve file is
 * made again, which is tried each second. The file system is asked now and then, not for each request. */
#include "daemon/http/base/space.h"

#include <stdlib.h>

#include "daemon/blob/worker.h"
#include "daemon/http/base/state.h"
#include "daemon/store/database/reserve_file.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

/* The reserve file while the helper thread makes it. Outlives the space when that goes away. */
struct making {
    struct task task;    /* first: a task is its making */
    struct space *space; /* NULL: gone */
    struct reserve_file *reserve_file;
    int64_t margin_bytes;
};

struct space {
    struct server *server;
    void (*when_low)(struct server *server); /* or NULL */
    struct reserve_file *reserve_file;       /* NULL: none */
    int64_t min_free_bytes;                  /* 0: there is always room */
    int64_t free_bytes;                      /* as of the last look, less what was taken in since */
    int64_t look_ms;                         /* when to look again */
    bool low;                                /* something has been refused since there was room */
    bool full;                               /* it was said that the disk is full */
    struct making *making;                   /* NULL: nobody makes the reserve file */
    struct deadline again;                   /* the next try to make it */
};

int64_t space_free(const struct space *space)
{
    struct file_disk disk;
    return file_disk(space->server->config.state_directory, &disk) ? disk.free_bytes : -1;
}

static bool look(struct space *space, struct err *err)
{
    struct file_disk disk;
    const char *folder = space->server->config.state_directory;
    if (!file_disk(folder, &disk)) {
        return err_errno(err, "cannot ask how much space is free in %s", folder);
    }
    space->free_bytes = disk.free_bytes;
    return true;
}

/* --- the reserve file ----------------------------------------------------------------------------------- */

static void making_work(struct task *task)
{
    struct making *making = (struct making *)task;
    reserve_file_make(making->reserve_file, making->margin_bytes);
}

static void say_room(struct space *space)
{
    if (space->full && reserve_file_is_whole(space->reserve_file)) {
        space->full = false;
        space->look_ms = 0;
        log_info("disk ready", "reserve_file_mib=%lld",
                 (long long)(reserve_file_bytes(space->reserve_file) / MIB));
    }
}

static void making_done(struct task *task)
{
    struct making *making = (struct making *)task;
    struct space *space = making->space;
    free(making);
    if (space != NULL) {
        space->making = NULL;
        say_room(space);
        deadline_set(space->server->deadlines, &space->again, space->server->now_ms + SPACE_LOOK_MS);
    }
}

/* The space that stays free beside the reserve file: the margin, or at least the size of the reserve file. */
static int64_t margin_of_reserve_file(const struct space *space)
{
    int64_t bytes = reserve_file_bytes(space->reserve_file);
    return space->min_free_bytes > bytes ? space->min_free_bytes : bytes;
}

static void again_due(struct deadline *deadline)
{
    struct space *space = deadline->closure;
    if (reserve_file_is_whole(space->reserve_file) || space->server->ending) {
        return;
    }
    struct making *making = xzalloc(sizeof *making);
    *making = (struct making){.task = {.work = making_work, .done = making_done},
                              .space = space,
                              .reserve_file = space->reserve_file,
                              .margin_bytes = margin_of_reserve_file(space)};
    space->making = making;
    worker_give(space->server->config.worker, &making->task);
}

bool space_is_full(const struct space *space)
{
    return space->reserve_file != NULL && reserve_file_is_released(space->reserve_file);
}

void space_tend(struct space *space)
{
    if (space->reserve_file == NULL || reserve_file_is_whole(space->reserve_file)) {
        return;
    }
    if (space_is_full(space) && !space->full) {
        space->full = true;
        log_warning("disk full", "reserve_file=released taken=cancels,beats,reports");
    }
    if (space->making == NULL && space->again.place == 0) {
        deadline_set(space->server->deadlines, &space->again, space->server->now_ms + SPACE_LOOK_MS);
    }
}

/* --- the margin ----------------------------------------------------------------------------------------- */

/* A twentieth of the disk, within bounds; of a very small one a quarter is the least. */
static int64_t default_margin(const char *folder)
{
    struct file_disk disk;
    if (!file_disk(folder, &disk)) {
        return MIN_FREE_LEAST_BYTES;
    }
    int64_t least = disk.bytes / 4 < MIN_FREE_LEAST_BYTES ? disk.bytes / 4 : MIN_FREE_LEAST_BYTES;
    int64_t margin = disk.bytes / 20 > least ? disk.bytes / 20 : least;
    return margin < MIN_FREE_MOST_BYTES ? margin : MIN_FREE_MOST_BYTES;
}

struct space *space_create(struct server *server)
{
    const struct server_config *config = &server->config;
    struct space *space = xzalloc(sizeof *space);
    space->server = server;
    space->reserve_file = config->worker != NULL ? config->reserve_file : NULL;
    space->min_free_bytes =
        config->min_free_bytes >= 0 ? config->min_free_bytes : default_margin(config->state_directory);
    space->again = (struct deadline){.due = again_due, .closure = space};
    if (space->reserve_file != NULL) {
        deadline_set(server->deadlines, &space->again, server->now_ms);
    }
    return space;
}

void space_destroy(struct space *space)
{
    if (space == NULL) {
        return;
    }
    if (space->making != NULL) {
        space->making->space = NULL;
    }
    free(space);
}

void space_when_low(struct space *space, void (*when_low)(struct server *server))
{
    space->when_low = when_low;
}

int64_t space_margin(const struct space *space)
{
    return space->min_free_bytes;
}

static bool refuse(struct space *space, struct err *err)
{
    if (!space->low) {
        space->low = true;
        log_warning("disk low", "free_mib=%lld margin_mib=%lld", (long long)(space->free_bytes / MIB),
                    (long long)(space->min_free_bytes / MIB));
    }
    if (space_is_full(space)) {
        err_set(err, ERR_DISK_FULL, "the controller's disk was full, and has no room yet");
        return err_hint(err, "free space there: gpuctld goes on by itself");
    }
    err_set(err, ERR_DISK_FULL, "the controller's disk has %lld MiB left, less than its margin of %lld MiB",
            (long long)(space->free_bytes / MIB), (long long)(space->min_free_bytes / MIB));
    return err_hint(err, "free space there, or lower gpuctld --min-free");
}

static bool allows(struct space *space, int64_t length, int64_t margin_bytes, struct err *err)
{
    if (space->server->now_ms >= space->look_ms) {
        if (!look(space, err)) {
            return false;
        }
        space->look_ms = space->server->now_ms + SPACE_LOOK_MS;
        if (space->when_low != NULL &&
            space->free_bytes < space->min_free_bytes + space->min_free_bytes / 2) {
            space->when_low(space->server);
        }
    }
    if (space_is_full(space) || (margin_bytes > 0 && space->free_bytes - length < margin_bytes)) {
        return refuse(space, err);
    }
    space->free_bytes -= length;
    return true;
}

bool space_allows(struct space *space, int64_t length, struct err *err)
{
    bool ok = allows(space, length, space->min_free_bytes, err);
    space->low = space->low && !ok;
    return ok;
}

bool space_allows_tracking(struct space *space, int64_t length, struct err *err)
{
    return allows(space, length, space->min_free_bytes / 2, err);
}

bool space_allows_output(struct space *space, int64_t length, struct err *err)
{
    return allows(space, length, space->min_free_bytes + space->min_free_bytes / 4, err);
}
