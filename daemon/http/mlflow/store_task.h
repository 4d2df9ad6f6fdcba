/* SPDX-License-Identifier: Apache-2.0 */
/* A task of the tracking store that nobody waits for, and that is not given up while the disk is full. */
#ifndef HTTP_STORE_TASK_H
#define HTTP_STORE_TASK_H

#include "daemon/blob/worker.h"
#include "daemon/http/base/deadline.h"
#include "daemon/mlflow/tracking.h"

struct server;

/* Embed it as the first member of the struct of the task. */
struct store_task {
    struct task task; /* first */
    struct server *server;
    /* On the thread of the store. It may be called several times. */
    bool (*work)(struct store_task *task, struct tracking *tracking, struct tracking_error *error);
    /* On the HTTP thread, once, at the end; it frees the task. error: why it failed, NULL if it did not.
     * server->mlflow is NULL when the server closes. */
    void (*done)(struct store_task *task, const struct tracking_error *error);
    struct tracking *tracking;
    bool ok, refused; /* refused: the store could not do it at least once */
    struct tracking_error error;
    struct store_task *prev, *next; /* of those that wait */
};

/* Tasks that wait for room on the disk, in the order in which they came. */
struct store_tasks {
    struct store_task *waiting;
    size_t refused; /* tasks that the store could not do yet */
    struct deadline again;
};

/* server, work and done are set. */
void store_task_give(struct store_task *task);
/* Tries a task again at once if it waits. */
void store_task_hurry(struct store_task *task);
/* Ends the tasks that wait. */
void store_tasks_end(struct server *server, struct store_tasks *tasks);

#endif
