/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the jobs ahead of a job, in queue order, up to a limit. forecast.c predicts when they will start. */
#include "daemon/core/explain/ahead.h"

#include "daemon/core/model/state.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/scheduler/fit.h"
#include "daemon/core/scheduler/place.h"
#include "proto/limits.h"

struct entry {
    struct queue_entry entry;
    const struct job *job;
};

struct listing {
    struct core *core;
    const struct job *job;
    struct queue_entry own;
    struct search search;  /* of the job */
    struct entry *entries; /* owned */
    size_t room;
    struct queue_entry last; /* of ahead->before */
    struct ahead *ahead;
};

/* Whether both could use GPUs of one partition. */
static bool share_a_partition(const struct search *a, const struct search *b)
{
    for (const struct partition *partition = a->core->partitions; partition != NULL;
         partition = partition->next) {
        if (fit_allowed(a, partition) && fit_allowed(b, partition)) {
            return true;
        }
    }
    return false;
}

/* Whether released GPUs go to the other class first: it has the same resource request or a smaller one, or
 * the policy lets no job pass. A job may pass a larger one that waits. */
static bool comes_first(const struct listing *listing, const struct job_class *job_class)
{
    const struct job_class *own = listing->job->job_class;
    return job_class == own || job_class->request.units <= own->request.units ||
           place_reserves_all(listing->core);
}

static void note_before(struct listing *listing, const struct entry *entry)
{
    struct ahead *ahead = listing->ahead;
    ahead->before_count++;
    if (ahead->before == NULL || queue_before(&listing->last, &entry->entry)) {
        ahead->before = entry->job;
        listing->last = entry->entry;
    }
}

static void append(struct listing *listing, const struct entry *entry)
{
    size_t count = listing->ahead->count++;
    XGROW(listing->entries, count, listing->room, 64);
    listing->entries[count] = *entry;
}

/* Lists the jobs of one batch, which are in queue order. */
static void list_batch(struct listing *listing, const struct batch *batch, bool first)
{
    for (const struct job *job = batch->jobs; job != NULL; job = job->next) {
        const struct entry entry = {queue_entry_of(listing->core, job), job};
        if (job == listing->job || !queue_before(&entry.entry, &listing->own)) {
            return;
        }
        if (listing->ahead->count == LIMIT_AHEAD) {
            listing->ahead->more = true;
            return;
        }
        append(listing, &entry);
        if (first) {
            note_before(listing, &entry);
        }
    }
}

static void list_job_class(struct listing *listing, const struct job_class *job_class)
{
    const struct search search = fit_search(listing->core, &job_class->request, VIEW_WORKING, NULL);
    if (!share_a_partition(&listing->search, &search)) {
        return;
    }
    bool first = comes_first(listing, job_class);
    for (size_t i = 0; i < job_class->entry_count; i++) {
        list_batch(listing, job_class->entries[i].batch, first);
    }
}

static int by_queue_entry(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    return queue_before(&left->entry, &right->entry) ? -1 : 1;
}

static void take_sorted(struct listing *listing)
{
    struct ahead *ahead = listing->ahead;
    if (ahead->count > 1) {
        qsort(listing->entries, ahead->count, sizeof *listing->entries, by_queue_entry);
    }
    ahead->jobs = xalloc((ahead->count + 1) * sizeof(struct job *));
    for (size_t i = 0; i < ahead->count; i++) {
        ahead->jobs[i] = listing->entries[i].job;
    }
    free(listing->entries);
}

void ahead_find(struct core *core, const struct job *job, struct ahead *ret_ahead)
{
    *ret_ahead = (struct ahead){0};
    struct listing listing = {
        .core = core,
        .job = job,
        .own = queue_entry_of(core, job),
        .search = fit_search(core, &job->job_class->request, VIEW_WORKING, NULL),
        .ahead = ret_ahead,
    };
    for (const struct job_class *job_class = core->job_classes; job_class != NULL;
         job_class = job_class->next) {
        list_job_class(&listing, job_class);
    }
    take_sorted(&listing);
    const struct job *last = ret_ahead->count > 0 ? ret_ahead->jobs[ret_ahead->count - 1] : NULL;
    ret_ahead->nearest = ret_ahead->before != NULL ? ret_ahead->before : last;
}

void ahead_count(struct core *core, const struct job *job, const struct job *const *earlier, size_t count,
                 struct ahead *ret_ahead)
{
    *ret_ahead = (struct ahead){0};
    const struct listing listing = {
        .core = core, .job = job, .search = fit_search(core, &job->job_class->request, VIEW_WORKING, NULL)};
    const struct job_class *job_class = NULL;
    const struct job *last = NULL;
    bool shares = false;
    for (size_t i = count; i > 0; i--) {
        const struct job *other = earlier[i - 1];
        if (other->job_class != job_class) {
            job_class = other->job_class;
            const struct search search = fit_search(core, &job_class->request, VIEW_WORKING, NULL);
            shares = share_a_partition(&listing.search, &search);
        }
        if (shares && ret_ahead->count == LIMIT_AHEAD) {
            ret_ahead->more = true;
            break;
        }
        if (shares) {
            bool first = comes_first(&listing, job_class);
            last = last != NULL ? last : other;
            ret_ahead->count++;
            ret_ahead->before_count += first;
            ret_ahead->before = first && ret_ahead->before == NULL ? other : ret_ahead->before;
        }
    }
    ret_ahead->nearest = ret_ahead->before != NULL ? ret_ahead->before : last;
}

void ahead_finish(struct ahead *ahead)
{
    free(ahead->jobs);
    *ahead = (struct ahead){0};
}
