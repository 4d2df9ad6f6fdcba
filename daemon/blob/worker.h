/* SPDX-License-Identifier: Apache-2.0 */
/* A helper thread for what waits for a disk, so that the HTTP thread never does. */
#ifndef BLOB_WORKER_H
#define BLOB_WORKER_H

#include "proto/base/err.h"

/* Embed it in what the work needs. work runs on the helper thread, done on the thread that collects, in the
 * order in which they were given. */
struct task {
    void (*work)(struct task *task);
    void (*done)(struct task *task);
    struct task *next;
};

struct worker;

struct worker *worker_open(struct err *err);
/* Has settle called on the thread behind each batch of work, before done is called for any of it: what all of
 * them wait for is waited for once. Before anything is given. */
void worker_settle_by(struct worker *worker, void (*settle)(void *closure), void *closure);
/* Does what was given, calls done for all of it, ends the thread. */
void worker_close(struct worker *worker);

void worker_give(struct worker *worker, struct task *task);

/* Readable when worker_collect has something to do. */
int worker_fd(const struct worker *worker);
void worker_collect(struct worker *worker);

#endif
