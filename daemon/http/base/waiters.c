/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps lists of waiters by job. It wakes each waiter for every change that was committed after the waiter
 * was added. A waiter that reads the job and is then added, in one turn of the loop, misses nothing. */
#include "daemon/http/base/waiters.h"

#include <stdlib.h>

#include <utlist.h>

#include "proto/base/text/table.h"
#include "proto/base/text/text.h"

struct waited_job {
    int64_t key;
    struct waiter *first;
    UT_hash_handle hh;
};

struct waiters {
    struct waited_job *jobs;
};

struct waiters *waiters_create(void)
{
    return xzalloc(sizeof(struct waiters));
}

void waiters_destroy(struct waiters *waiters)
{
    if (waiters == NULL) {
        return;
    }
    struct waited_job *job, *next;
    HASH_ITER (hh, waiters->jobs, job, next) {
        HASH_DEL(waiters->jobs, job);
        free(job);
    }
    free(waiters);
}

void waiters_add(struct waiters *waiters, struct waiter *waiter, int64_t job_key)
{
    struct waited_job *job;
    HASH_FIND(hh, waiters->jobs, &job_key, sizeof job_key, job);
    if (job == NULL) {
        job = xzalloc(sizeof *job);
        job->key = job_key;
        HASH_ADD(hh, waiters->jobs, key, sizeof job->key, job);
    }
    DL_APPEND(job->first, waiter);
    waiter->job = job;
}

void waiters_remove(struct waiters *waiters, struct waiter *waiter)
{
    struct waited_job *job = waiter->job;
    if (job == NULL) {
        return;
    }
    DL_DELETE(job->first, waiter);
    waiter->job = NULL;
    if (job->first == NULL) {
        HASH_DEL(waiters->jobs, job);
        free(job);
    }
}

void waiters_wake(struct waiters *waiters, int64_t job_key, const struct job_touch *touch)
{
    struct waited_job *job;
    HASH_FIND(hh, waiters->jobs, &job_key, sizeof job_key, job);
    if (job == NULL) {
        return;
    }
    struct waiter *waiter = job->first;
    while (waiter != NULL) {
        struct waiter *next = waiter->next; /* job may be gone after the last one */
        waiter->wake(waiter, touch);
        waiter = next;
    }
}
