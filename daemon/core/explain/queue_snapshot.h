/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot of the queue: for each waiting job, the GPUs that it could use and the jobs ahead. */
#ifndef CORE_EXPLAIN_QUEUE_SNAPSHOT_H
#define CORE_EXPLAIN_QUEUE_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

struct core;

/* GPUs that a waiting job could use by pool, kind and type, on all nodes that are not LOST. */
struct gpu_supply {
    int64_t total;
    int64_t free;           /* on nodes that take work */
    int64_t out_of_service; /* on nodes that are drained, silent and so on */
    int64_t departing; /* on others that leave before the job would end if it started now, or have left */
};

struct waiting_job {
    int64_t key;
    uint32_t ahead;  /* jobs that come earlier in the queue and could use the same GPUs */
    uint32_t supply; /* index of its supply */
};

/* The waiting jobs at one moment. Immutable: any thread may read it. */
struct queue_snapshot {
    struct waiting_job
        *jobs; /* the first LIMIT_AHEAD of the queue, by key; none if the queue has more entries */
    size_t count;
    struct gpu_supply *supplies;
    size_t cost; /* the nodes, queue entries and jobs that were visited for it: some 0.1 us each */
};

struct queue_snapshot *queue_snapshot_create(struct core *core);
void queue_snapshot_destroy(struct queue_snapshot *snapshot);

/* The supply for a waiting job; NULL: the snapshot does not have the job. */
const struct gpu_supply *queue_snapshot_find(const struct queue_snapshot *snapshot, int64_t key,
                                             int64_t *ret_ahead);

#endif
