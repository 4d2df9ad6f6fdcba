/* SPDX-License-Identifier: Apache-2.0 */
/* Runs searches one after another. Before each one the thread of the store is passed: so a search sees the
 * calls that came before it, and while no search runs the store can shorten its log of changes. A search
 * whose client has closed the connection is left out, or interrupted. */
#include "daemon/http/mlflow/searches.h"

#include <stddef.h>

#include <utlist.h>

#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/request/connection.h"
#include "proto/base/log.h"
#include "proto/limits.h"

static struct search *search_of(const struct fair_entry *entry)
{
    return (struct search *)((char *)(uintptr_t)entry - offsetof(struct search, entry));
}

/* --- clients that have left ----------------------------------------------------------------------------- */

/* Takes a search that waits, or is served and not begun, out if nobody is there for its answer. */
static bool is_left(struct searches *searches, struct search *search)
{
    if (!connection_client_left(search->work.request->link)) {
        return false;
    }
    fair_queue_remove(&searches->queue, &search->entry);
    request_fail_with(search->work.request, ERR_UNAVAILABLE, "the client has closed the connection");
    return true;
}

static void look_later(struct searches *searches)
{
    bool empty = searches->queue.served == NULL && searches->queue.waiting == NULL;
    if (!empty && searches->look.place == 0) {
        deadline_set(searches->server->deadlines, &searches->look, searches->server->now_ms + MLFLOW_LOOK_MS);
    }
}

/* An interrupt that comes between two statements has no effect, so the next look interrupts again. */
static void look(struct deadline *deadline)
{
    struct searches *searches = deadline->closure;
    struct fair_entry *entry, *next;
    DL_FOREACH_SAFE (searches->queue.waiting, entry, next) {
        is_left(searches, search_of(entry));
    }
    if (searches->queue.served != NULL) {
        const struct request *request = search_of(searches->queue.served)->work.request;
        if (request == NULL || connection_client_left(request->link)) {
            log_debug("search interrupted", "owner=%s", searches->queue.served->owner);
            tracking_interrupt(searches->tracking);
        }
    }
    look_later(searches);
}

/* --- turns ---------------------------------------------------------------------------------------------- */

static void pass(struct task *task)
{
    tracking_shorten_log(((struct search *)task)->store);
}

static void ended(struct request_work *work)
{
    struct search *search = (struct search *)work;
    searches_leave(search);
    search->reply(work);
}

static void passed(struct request_work *work)
{
    struct search *search = (struct search *)work;
    log_debug("search begun", "owner=%s", search->entry.owner);
    request_work_give(work, search->searches->worker, search->run, ended);
}

static void serve_next(struct searches *searches)
{
    struct fair_entry *entry;
    while ((entry = fair_queue_serve(&searches->queue)) != NULL) {
        struct search *search = search_of(entry);
        if (!is_left(searches, search)) {
            request_work_give(&search->work, searches->server->mlflow->worker, pass, passed);
        }
    }
}

bool searches_give(struct searches *searches, struct search *search, const char *owner,
                   void (*run)(struct task *task), void (*reply)(struct request_work *work), struct err *err)
{
    if (!fair_queue_add(&searches->queue, &search->entry, owner)) {
        err_set(err, ERR_TOO_MANY, "too many searches of the tracking store wait");
        return err_hint(err, "at most %d wait of one user, and %d in all", LIMIT_MLFLOW_SEARCHES_OWNER,
                        LIMIT_MLFLOW_SEARCHES);
    }
    search->searches = searches;
    search->store = searches->server->mlflow->tracking;
    search->run = run;
    search->reply = reply;
    serve_next(searches);
    look_later(searches);
    return request_wait(search->work.request);
}

void searches_leave(struct search *search)
{
    if (search->searches != NULL) {
        fair_queue_remove(&search->searches->queue, &search->entry);
        serve_next(search->searches);
    }
}

/* --- life ----------------------------------------------------------------------------------------------- */

bool searches_open(struct server *server, struct searches *searches, const char *database, struct err *err)
{
    searches->server = server;
    searches->queue.limit = LIMIT_MLFLOW_SEARCHES;
    searches->queue.owner_limit = LIMIT_MLFLOW_SEARCHES_OWNER;
    searches->look = (struct deadline){.due = look, .closure = searches};
    searches->tracking = tracking_open(database, err);
    return searches->tracking != NULL &&
           mlflow_start_worker(server, &searches->worker, &searches->watch, err);
}

void searches_close(struct searches *searches)
{
    if (searches->server == NULL) {
        return;
    }
    if (searches->tracking != NULL) {
        tracking_interrupt(searches->tracking);
    }
    worker_close(searches->worker);
    deadline_clear(searches->server->deadlines, &searches->look);
    tracking_close(searches->tracking);
}
