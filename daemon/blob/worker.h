/* SPDX-License-Identifier: Apache-2.0 */
/* A helper thread for work that waits for a disk, so that the HTTP thread never waits. */
#ifndef BLOB_WORKER_H
#define BLOB_WORKER_H

#include "proto/base/err.h"

/* Embed it in the struct of the work. work runs on the helper thread, done on the thread that collects, in
 * the order in which the tasks were given. */
struct task {
    void (*work)(struct task *task);
    void (*done)(struct task *task);
    struct task *next;
};

struct worker;

struct worker *worker_open(struct err *err);
/* Makes the calling thread give way to others, with its computing and its disk. */
void worker_give_way(void);
/* Calls settle on the helper thread after each batch of work, before done is called for any task of the
 * batch. So the batch waits only once, for example for one sync. Call it before any task is given. */
void worker_settle_by(struct worker *worker, void (*settle)(void *closure), void *closure);
/* Finishes all tasks, calls done for all of them, ends the thread. */
void worker_close(struct worker *worker);

void worker_give(struct worker *worker, struct task *task);

/* An fd that is readable when worker_collect has something to do. */
int worker_fd(const struct worker *worker);
void worker_collect(struct worker *worker);

#endif
