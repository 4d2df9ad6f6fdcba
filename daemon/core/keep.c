/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what waiting jobs keep from those behind them: all that they could use, or a reservation at the
 * earliest time at which they fit. It promises that a reservation is where the availability profile finds it,
 * that only what it leaves may be had for longer, and that one which was put off for an hour becomes firm.
 * When something is kept, and for whom, is left to place.c. */
#include "daemon/core/keep.h"

#include "daemon/core/fit.h"
#include "daemon/core/availability.h"
#include "daemon/core/pool.h"
#include "daemon/core/queue.h"
#include "daemon/core/staging.h"
#include "daemon/core/state.h"

/* A reservation that is put off for so long becomes firm. */
#define FIRM_MS (3600LL * 1000)

/* --- searches ------------------------------------------------------------------------------------------ */

/* How long the job may run. */
static void expect(struct search *search, const struct job *job)
{
    fit_expect(search, job->time_limit_ms > 0 ? job->time_limit_ms : NEVER, job->grace_ms);
}

/* The search for a job, on nodes that are as ready as that. */
struct search keep_search(const struct core *core, const struct job *job, enum view view,
                          const struct kept *kept, enum readiness readiness)
{
    struct search search = fit_search(core, &job->job_class->wish, view, kept);
    search.stage = job->job_class->stage;
    search.readiness = readiness;
    search.end_ms = search.sure_ms = NEVER;
    expect(&search, job);
    return search;
}

struct search keep_search_until(const struct core *core, const struct job *job, int64_t estimate_ms,
                                enum view view, const struct kept *kept, enum readiness readiness)
{
    struct search search = keep_search(core, job, view, kept, readiness);
    search.job = job;
    search.borrow = kept == NULL || kept->borrow;
    search.end_ms = core->now_ms + estimate_ms;
    search.sure_ms = job->time_limit_ms > 0 ? core->now_ms + job->time_limit_ms : NEVER;
    return search;
}

/* --- what is kept ------------------------------------------------------------------------------------ */

void kept_begin(struct kept *kept, const struct core *core)
{
    size_t partitions = core->partitions != NULL ? core->partitions->prev->index + 1 : 0;
    size_t words = partitions * (sizeof *kept->until_ms + sizeof *kept->whose);
    *kept = (struct kept){.until_ms = xzalloc(words + 2 * partitions + core->node_count + 1)};
    kept->whose = (const struct job **)(kept->until_ms + partitions);
    kept->partitions = (uint8_t *)(kept->whose + partitions);
    kept->firm = kept->partitions + partitions;
    kept->nodes = kept->firm + partitions;
}

void kept_end(struct kept *kept)
{
    free(kept->until_ms);
}

static void keep_nodes(struct kept *kept, const struct search *search, const struct partition *partition)
{
    const struct wish *wish = search->wish;
    for (size_t i = 0; i < partition->count; i++) {
        const struct capacity *capacity = partition->capacities[i];
        bool alone = wish->host_id == NULL || capacity->total >= wish->gpus;
        if (fit_node_allowed(search->core, wish, capacity) && alone && fit_lasts(search, capacity->node) &&
            staging_allows(search->stage, capacity->node, search->readiness)) {
            kept->nodes[capacity->node->index] = 1;
        }
    }
}

/* Not every node of a partition would do. */
static bool by_node(const struct core *core, const struct search *search)
{
    const struct wish *wish = search->wish;
    return wish->host_id != NULL || wish->terms != NULL || search->stage != NULL || core->leaving_count > 0;
}

/* Keeps the nodes that a waiting job could use from the jobs behind it. Nodes that take no work now, or are
 * not ready for it, cannot make a job possible: one that waits for them holds up nobody. */
void keep_all(struct kept *kept, const struct core *core, const struct job *job)
{
    struct search search = keep_search(core, job, VIEW_WORKING, NULL, READINESS_READY);
    search.job = job;
    search.borrow = kept->borrow;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        bool open = partition->free > 0 &&
                    !kept->partitions[partition->index]; /* else nobody can take from it anyway */
        if (!open || !fit_could_hold(&search, partition) || !fit_granted(&search, partition)) {
            continue;
        }
        kept->whose[partition->index] = job;
        if (by_node(core, &search)) {
            keep_nodes(kept, &search, partition);
        } else {
            kept->partitions[partition->index] = 1;
        }
    }
}

/* --- reservations ------------------------------------------------------------------------------------ */

static void spend(const struct partition *partition, const struct fit *fit)
{
    for (size_t i = 0; i < fit->count; i++) {
        pool_capacity(partition, fit->shares[i].capacity->node)->spare -= fit->shares[i].count;
    }
}

/* What the fit leaves in its partition, as of capacity->free_then, may be had for longer than until then. */
void keep_fit(struct kept *kept, const struct job *job, const struct fit *fit, int64_t at_ms, bool firm)
{
    const struct partition *partition = fit->shares[0].capacity->partition;
    kept->whose[partition->index] = job;
    kept->until_ms[partition->index] = at_ms > 0 ? at_ms : 1; /* 0: there is none */
    kept->firm[partition->index] = firm;
    for (size_t i = 0; i < partition->count; i++) {
        partition->capacities[i]->spare = partition->capacities[i]->free_then;
    }
    spend(partition, fit);
}

/* The first of its promised starts counts. */
static bool was_put_off(const struct core *core, const struct kept *kept, struct job_class *job_class,
                        const struct job *job, int64_t start_ms)
{
    if (job_class->promised_key != job->key && kept->trial) {
        return false;
    }
    if (job_class->promised_key != job->key) {
        job_class->promised_key = job->key;
        job_class->promised_ms = start_ms;
    }
    return core->now_ms > job_class->promised_ms + FIRM_MS;
}

/* It could take something from a partition that has no reservation yet. */
static bool is_open(const struct search *search)
{
    for (const struct partition *partition = search->core->partitions; partition != NULL;
         partition = partition->next) {
        if (partition->free > 0 && fit_open(search, partition)) {
            return true;
        }
    }
    return false;
}

/* The earliest start of a job that waits, in partitions that have no reservation yet. Returns when another
 * look is due, because something should have ended by then. */
int64_t keep_start(const struct core *core, const struct queue_entry *entry, struct kept *kept)
{
    const struct job *job = queue_first(entry);
    struct search search = keep_search(core, job, VIEW_FUTURE, kept, READINESS_READY);
    search.job = job;
    search.borrow = kept->borrow;
    struct fit fit;
    struct prospect prospect = {.change_ms = NEVER, .fit = &fit};
    if (!is_open(&search)) {
        return NEVER;
    }
    if (availability_find(&search, &prospect)) {
        keep_fit(kept, job, &fit, prospect.at_ms,
                 was_put_off(core, kept, job->job_class, job, prospect.at_ms));
        free(fit.shares);
    }
    return prospect.change_ms;
}

/* It was placed beside a reservation, and outlasts it. */
void keep_spend(const struct search *search, const struct fit *fit)
{
    const struct partition *partition = fit->shares[0].capacity->partition;
    if (fit_outlasts(search, partition)) {
        spend(partition, fit);
    }
}

/* How long a gang may run where the job class could go and reservations wait. */
int64_t keep_gap_ms(const struct core *core, const struct search *search, const struct kept *kept)
{
    int64_t longest_ms = 0;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        int64_t until_ms = kept->until_ms[partition->index];
        if (until_ms - core->now_ms > longest_ms && partition->free >= search->wish->gpus &&
            fit_allowed(search, partition)) {
            longest_ms = until_ms - core->now_ms;
        }
    }
    return longest_ms;
}
