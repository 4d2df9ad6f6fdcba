/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the scrub of the database, once after each start, on a thread of its own that gives way to all else.
 * So a start need not read what is old, and damage of it is still found soon. store/database/scrub.c reads
 * the pages. */
#include "daemon/http/scrubbing.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/blob/worker.h"
#include "daemon/store/database/scrub.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"

struct scrubbing {
    struct task task; /* first: a task is its scrubbing */
    struct server *server;
    struct worker *worker;
    struct watch watch;
    atomic_bool stop;
    bool whole;
    struct err err;
};

static bool go_on(void *closure)
{
    struct scrubbing *scrubbing = closure;
    return !atomic_load(&scrubbing->stop);
}

static void work(struct task *task)
{
    struct scrubbing *scrubbing = (struct scrubbing *)task;
    const struct copy_watch watch = {.go_on = go_on, .closure = scrubbing};
    worker_give_way();
    scrubbing->whole = scrub_run(scrubbing->server->config.store_path, &watch, &scrubbing->err);
}

static void done(struct task *task)
{
    struct scrubbing *scrubbing = (struct scrubbing *)task;
    if (scrubbing->whole) {
        log_debug("scrub end", "stopped=%d", atomic_load(&scrubbing->stop));
        return;
    }
    log_error("scrub failed", "text=\"%s\"", scrubbing->err.text);
    if (scrubbing->err.code == ERR_DAMAGED) {
        server_fail(scrubbing->server, &scrubbing->err);
    }
}

static void worker_ready(struct watch *watch)
{
    worker_collect(watch->closure);
}

bool scrubbing_open(struct server *server, struct err *err)
{
    struct scrubbing *scrubbing = server->scrubbing = xzalloc(sizeof *scrubbing);
    scrubbing->server = server;
    scrubbing->task = (struct task){.work = work, .done = done};
    scrubbing->worker = worker_open(err);
    if (scrubbing->worker == NULL) {
        return false;
    }
    scrubbing->watch = (struct watch){
        .fd = worker_fd(scrubbing->worker), .ready = worker_ready, .closure = scrubbing->worker};
    worker_give(scrubbing->worker, &scrubbing->task);
    return server_watch(server, &scrubbing->watch, err);
}

void scrubbing_close(struct server *server)
{
    struct scrubbing *scrubbing = server->scrubbing;
    if (scrubbing == NULL) {
        return;
    }
    atomic_store(&scrubbing->stop, true);
    worker_close(scrubbing->worker);
    server->scrubbing = NULL;
    free(scrubbing);
}
