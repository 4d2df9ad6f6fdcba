/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of those who wait for something to happen to a job, or for a backup. */
#ifndef HTTP_WAITERS_H
#define HTTP_WAITERS_H

#include <stdint.h>

#include "daemon/core/core.h"

/* Embedded in whatever waits. wake and closure are set by its owner, the rest is the list's. Starts as {0}.
 */
struct waiter {
    /* touch is the job's new state, or NULL when its log has grown or the backup is there. May remove the
     * waiter that is called, no other. */
    void (*wake)(struct waiter *waiter, const struct job_touch *touch);
    void *closure;
    struct waited_job *job; /* NULL: it does not wait */
    struct waiter *prev, *next;
};

struct waiters;

struct waiters *waiters_create(void);
void waiters_destroy(struct waiters *waiters);

/* In the place of a job's key: the backup of that number. */
#define WAITERS_BACKUP(number) (-(number))
/* Likewise: any event of any job. */
#define WAITERS_EVENTS INT64_MIN

void waiters_add(struct waiters *waiters, struct waiter *waiter, int64_t job_key);
/* Nothing happens when it does not wait. */
void waiters_remove(struct waiters *waiters, struct waiter *waiter);
void waiters_wake(struct waiters *waiters, int64_t job_key, const struct job_touch *touch);

#endif
