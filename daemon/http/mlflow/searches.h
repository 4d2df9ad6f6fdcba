/* SPDX-License-Identifier: Apache-2.0 */
/* Searches of the tracking store: calls that may read much. They have a thread and a handle of their own, and
 * delay no other call. One runs at a time, in turn between users. */
#ifndef HTTP_SEARCHES_H
#define HTTP_SEARCHES_H

#include "daemon/blob/worker.h"
#include "daemon/http/base/deadline.h"
#include "daemon/http/base/fair_queue.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request_work.h"
#include "daemon/mlflow/tracking.h"

/* Embed it as the first member of the struct of the work. */
struct search {
    struct request_work work;  /* first */
    struct searches *searches; /* NULL: it was not given */
    struct tracking *store;    /* whose thread it passes */
    struct fair_entry entry;
    void (*run)(struct task *task);
    void (*reply)(struct request_work *work);
};

struct searches {
    struct server *server;
    struct tracking *tracking; /* used on the worker's thread only */
    struct worker *worker;
    struct watch watch;
    struct fair_queue queue;
    struct deadline look; /* at the clients, while there are searches */
};

/* Opens the database again, for searches, and starts their thread. The caller calls searches_close in any
 * case. */
bool searches_open(struct server *server, struct searches *searches, const char *database, struct err *err);
/* After all requests have ended, and the thread of the store. */
void searches_close(struct searches *searches);

/* Makes a search whose work was begun wait for its turn: run is called on the thread of searches, after all
 * calls of the store that were given before, and then reply. owner is borrowed until searches_leave. false
 * with ERR_TOO_MANY. */
bool searches_give(struct searches *searches, struct search *search, const char *owner,
                   void (*run)(struct task *task), void (*reply)(struct request_work *work), struct err *err);
/* To be called by the function that frees the work, also for a search that was not given. */
void searches_leave(struct search *search);

#endif
