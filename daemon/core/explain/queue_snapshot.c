/* SPDX-License-Identifier: Apache-2.0 */
/* Makes snapshots of the queue for readers outside the writer. A snapshot costs time for its nodes, queue
 * entries and jobs, and none for the questions that are asked of it. explain.c has the full answers. */
#include "daemon/core/explain/queue_snapshot.h"

#include "daemon/core/fleet/node.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/scheduler/fit.h"

/* Job classes that could use GPUs of exactly these partitions. */
struct rivals {
    uint64_t partitions; /* a bit for each; from the 65th on they share bits */
    int64_t jobs;        /* of these classes, so far in queue order */
};

/* More sets than this are merged, and the counts of jobs ahead become upper bounds. */
#define MOST_RIVALS 64

struct waiting_entry {
    struct queue_entry entry;
    struct gpu_supply supply;
    uint64_t partitions;
};

struct maker {
    struct core *core;
    struct gpu_supply *supplies; /* by index of the partition; owned */
    struct waiting_entry *entries;
    size_t entry_count;
    struct rivals rivals[MOST_RIVALS];
    size_t rivals_count;
    struct queue_snapshot *snapshot;
    size_t job_room;
};

/* --- supply --------------------------------------------------------------------------------------------- */

static void add_supply(struct gpu_supply *sum, const struct gpu_supply *supply)
{
    sum->total += supply->total;
    sum->free += supply->free;
    sum->out_of_service += supply->out_of_service;
    sum->departing += supply->departing;
}

/* Takes work, or would but for a maintenance window or its expiry. */
static bool in_service(const struct node *node)
{
    return node->state == NODE_READY && node->contact == CONTACT_FRESH;
}

/* Without those that only leave later: see departing_of. */
static struct gpu_supply supply_of(const struct partition *partition)
{
    struct gpu_supply supply = {.total = partition->total};
    for (size_t i = 0; i < partition->count; i++) {
        const struct capacity *capacity = partition->capacities[i];
        if (node_works(capacity->node)) {
            supply.free += capacity->free;
        } else if (in_service(capacity->node)) {
            supply.departing += capacity->total;
        } else {
            supply.out_of_service += capacity->total;
        }
    }
    return supply;
}

/* The GPUs of working nodes that leave before a job would end that started now. */
static int64_t departing_of(struct maker *maker, const struct job *job, const struct partition *partition)
{
    const struct core *core = maker->core;
    int64_t stay_ms = job->time_limit_ms > 0 ? job->time_limit_ms + job->grace_ms : LEAVES_SOON_MS;
    int64_t count = 0;
    for (size_t i = 0; core->departing_count > 0 && i < partition->count; i++) {
        const struct capacity *capacity = partition->capacities[i];
        int64_t leaves_ms = node_leaves_ms(core, capacity->node);
        bool departs = leaves_ms != NEVER && leaves_ms - core->now_ms < stay_ms;
        count += departs && node_works(capacity->node) ? capacity->total : 0;
        maker->snapshot->cost++;
    }
    return count;
}

static void add_entry(struct maker *maker, const struct search *search, const struct queue_entry *entry)
{
    struct waiting_entry *waiting = &maker->entries[maker->entry_count++];
    *waiting = (struct waiting_entry){.entry = *entry};
    for (const struct partition *partition = maker->core->partitions; partition != NULL;
         partition = partition->next) {
        if (fit_allowed(search, partition)) {
            struct gpu_supply supply = maker->supplies[partition->index];
            supply.departing += departing_of(maker, queue_first(entry), partition);
            add_supply(&waiting->supply, &supply);
            waiting->partitions |= (uint64_t)1 << (partition->index % 64);
        }
    }
}

/* --- order ---------------------------------------------------------------------------------------------- */

static int by_queue_order(const void *a, const void *b)
{
    const struct waiting_entry *left = a, *right = b;
    return queue_before(&left->entry, &right->entry) ? -1 : 1;
}

static int by_key(const void *a, const void *b)
{
    const struct waiting_job *left = a, *right = b;
    return (left->key > right->key) - (left->key < right->key);
}

static struct rivals *rivals_of(struct maker *maker, uint64_t partitions)
{
    for (size_t i = 0; i < maker->rivals_count; i++) {
        if (maker->rivals[i].partitions == partitions) {
            return &maker->rivals[i];
        }
    }
    if (maker->rivals_count < MOST_RIVALS) {
        maker->rivals[maker->rivals_count] = (struct rivals){.partitions = partitions};
        return &maker->rivals[maker->rivals_count++];
    }
    maker->rivals[0].partitions |= partitions;
    return &maker->rivals[0];
}

static int64_t count_ahead(const struct maker *maker, uint64_t partitions)
{
    int64_t ahead = 0;
    for (size_t i = 0; i < maker->rivals_count; i++) {
        ahead += (maker->rivals[i].partitions & partitions) != 0 ? maker->rivals[i].jobs : 0;
    }
    return ahead;
}

static void add_jobs(struct maker *maker, const struct waiting_entry *waiting, size_t supply)
{
    struct queue_snapshot *snapshot = maker->snapshot;
    struct rivals *own = rivals_of(maker, waiting->partitions);
    int64_t ahead = count_ahead(maker, waiting->partitions);
    const struct job *job = queue_first(&waiting->entry);
    for (; job != NULL && snapshot->count < LIMIT_AHEAD; job = job->next) {
        XGROW(snapshot->jobs, snapshot->count, maker->job_room, 64);
        snapshot->jobs[snapshot->count++] =
            (struct waiting_job){.key = job->key, .ahead = (uint32_t)ahead, .supply = (uint32_t)supply};
        ahead++;
        own->jobs++;
    }
}

/* --- the snapshot --------------------------------------------------------------------------------------- */

static size_t count_partitions(const struct core *core)
{
    return core->partitions != NULL ? core->partitions->prev->index + 1 : 0;
}

static size_t count_entries(const struct core *core)
{
    size_t count = 0;
    for (const struct job_class *job_class = core->job_classes; job_class != NULL;
         job_class = job_class->next) {
        count += job_class->entry_count;
    }
    return count;
}

static void add_entries(struct maker *maker)
{
    struct core *core = maker->core;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        maker->supplies[partition->index] = supply_of(partition);
    }
    for (const struct job_class *job_class = core->job_classes; job_class != NULL;
         job_class = job_class->next) {
        const struct search search = fit_search(core, &job_class->request, VIEW_WORKING, NULL);
        for (size_t i = 0; i < job_class->entry_count; i++) {
            add_entry(maker, &search, &job_class->entries[i]);
        }
    }
    qsort(maker->entries, maker->entry_count, sizeof *maker->entries, by_queue_order);
}

struct queue_snapshot *queue_snapshot_create(struct core *core)
{
    struct queue_snapshot *snapshot = xzalloc(sizeof *snapshot);
    size_t entries = count_entries(core);
    if (entries == 0 || entries > LIMIT_AHEAD) {
        return snapshot;
    }
    struct maker maker = {.core = core, .snapshot = snapshot};
    maker.supplies = xzalloc((count_partitions(core) + 1) * sizeof *maker.supplies);
    maker.entries = xalloc(entries * sizeof *maker.entries);
    add_entries(&maker);
    snapshot->supplies = xalloc(entries * sizeof *snapshot->supplies);
    for (size_t i = 0; i < entries; i++) {
        snapshot->supplies[i] = maker.entries[i].supply;
        add_jobs(&maker, &maker.entries[i], i);
    }
    qsort(snapshot->jobs, snapshot->count, sizeof *snapshot->jobs, by_key);
    snapshot->cost += core->node_count + entries + snapshot->count;
    free(maker.supplies);
    free(maker.entries);
    return snapshot;
}

const struct gpu_supply *queue_snapshot_find(const struct queue_snapshot *snapshot, int64_t key,
                                             int64_t *ret_ahead)
{
    const struct waiting_job sought = {.key = key};
    const struct waiting_job *found =
        snapshot->count > 0 ? bsearch(&sought, snapshot->jobs, snapshot->count, sizeof sought, by_key) : NULL;
    if (found == NULL) {
        return NULL;
    }
    *ret_ahead = found->ahead;
    return &snapshot->supplies[found->supply];
}

void queue_snapshot_destroy(struct queue_snapshot *snapshot)
{
    if (snapshot != NULL) {
        free(snapshot->supplies);
        free(snapshot->jobs);
        free(snapshot);
    }
}
