/* SPDX-License-Identifier: Apache-2.0 */
/* Places gangs over several nodes. Shares are equal if possible, from as few or as many nodes as the resource
 * request wants; otherwise the largest nodes give first, or shares are as even as possible. Nodes whose idle
 * devices stay most useful to others give first, then those with most parts of the environment, then by name.
 * The work is a few passes over the nodes, without comparing them pairwise. fit.c decides whether a gang must
 * be on one node. */
#include "daemon/core/scheduler/gang_placement.h"

#include <string.h>

#include "daemon/core/fleet/pool.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/fragment.h"
#include "daemon/core/scheduler/fit.h"
#include "proto/base/cleanup.h"

/* Nodes that may form one gang, by name, or by parts of the environment and name, with the number of devices
 * that each could give. */
struct candidates {
    struct share *shares; /* owned */
    size_t count;
    int64_t sum;
};

/* The number of candidates that could give exactly each count. */
struct tally {
    size_t nodes[LIMIT_NODE_DEVICES + 1];
    int64_t most; /* the largest count */
};

/* --- candidates ----------------------------------------------------------------------------------------- */

static int by_host(const void *a, const void *b)
{
    const struct share *left = a, *right = b;
    int order = strcmp(left->capacity->node->host_id, right->capacity->node->host_id);
    return order != 0 ? order : strcmp(left->capacity->node->name, right->capacity->node->name);
}

static int64_t sum_of(const struct share *shares, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += shares[i].count;
    }
    return sum;
}

/* The nodes of a partition; reachable: without nodes that other hosts cannot reach. */
static struct candidates collect(const struct search *search, const struct partition *partition,
                                 bool reachable)
{
    struct candidates candidates = {.shares = xalloc((partition->count + 1) * sizeof *candidates.shares)};
    search->core->pass_work += (int64_t)partition->count;
    for (size_t i = 0; i < partition->count; i++) {
        const struct capacity *capacity = partition->capacities[i];
        int64_t count = fit_offer(search, capacity);
        if (count > 0 && !(reachable && pool_is_loopback(capacity->node))) {
            candidates.shares[candidates.count++] = (struct share){.capacity = capacity, .count = count};
        }
    }
    return candidates;
}

/* Keeps only the nodes of the host that offers most. */
static void keep_one_host(struct candidates *candidates)
{
    if (candidates->count > 1) {
        qsort(candidates->shares, candidates->count, sizeof *candidates->shares, by_host);
    }
    size_t best = 0, best_count = 0;
    int64_t most = 0;
    for (size_t first = 0, end; first < candidates->count; first = end) {
        const char *host_id = candidates->shares[first].capacity->node->host_id;
        end = first + 1;
        while (end < candidates->count &&
               strcmp(candidates->shares[end].capacity->node->host_id, host_id) == 0) {
            end++;
        }
        int64_t sum = sum_of(&candidates->shares[first], end - first);
        if (sum > most) {
            most = sum;
            best = first;
            best_count = end - first;
        }
    }
    memmove(candidates->shares, &candidates->shares[best], best_count * sizeof *candidates->shares);
    candidates->count = best_count;
}

static struct tally tally_of(const struct candidates *candidates)
{
    struct tally tally = {0};
    for (size_t i = 0; i < candidates->count; i++) {
        int64_t count = candidates->shares[i].count;
        tally.nodes[count]++;
        tally.most = count > tally.most ? count : tally.most;
    }
    return tally;
}

/* Keeps this many nodes of each count, the first ones. */
static void keep(struct candidates *candidates, struct tally *wanted)
{
    size_t kept = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        int64_t count = candidates->shares[i].count;
        if (wanted->nodes[count] > 0) {
            wanted->nodes[count]--;
            candidates->shares[kept++] = candidates->shares[i];
        }
    }
    candidates->count = kept;
    candidates->sum = sum_of(candidates->shares, kept);
}

/* Puts nodes with more parts of the environment first, of equal ones the first by name. */
static void sort_by_parts(const struct search *search, struct candidates *candidates)
{
    autofree int64_t *held = xalloc((candidates->count + 1) * sizeof *held);
    struct share *sorted = xalloc((candidates->count + 1) * sizeof *sorted);
    size_t at = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        held[i] = fit_held(search, candidates->shares[i].capacity->node);
    }
    for (int64_t parts = (int64_t)search->environment->part_count; parts >= 0; parts--) {
        for (size_t i = 0; i < candidates->count; i++) {
            if (held[i] == parts) {
                sorted[at++] = candidates->shares[i];
            }
        }
    }
    free(candidates->shares);
    candidates->shares = sorted;
}

/* Limits the number of nodes of a gang: keeps the nodes that offer most. */
static void finish_candidates(const struct search *search, struct candidates *candidates)
{
    if (search->locality) {
        sort_by_parts(search, candidates);
    }
    candidates->sum = sum_of(candidates->shares, candidates->count);
    if (candidates->count > LIMIT_ATTEMPT_NODES) {
        struct tally tally = tally_of(candidates);
        size_t room = LIMIT_ATTEMPT_NODES;
        for (int64_t count = tally.most; count > 0; count--) {
            tally.nodes[count] = tally.nodes[count] < room ? tally.nodes[count] : room;
            room -= tally.nodes[count];
        }
        keep(candidates, &tally);
    }
}

/* The nodes of a partition that may form a gang of this size, or the best if there are not enough. */
static struct candidates gather(const struct search *search, const struct partition *partition,
                                int64_t wanted)
{
    struct candidates across = collect(search, partition, partition->loopback_count > 0);
    finish_candidates(search, &across);
    if (across.sum >= wanted || partition->loopback_count == 0) {
        return across;
    }
    struct candidates local = collect(search, partition, false);
    keep_one_host(&local);
    finish_candidates(search, &local);
    bool better = local.sum > across.sum;
    free(better ? across.shares : local.shares);
    return better ? local : across;
}

int64_t gang_placement_largest(const struct search *search, const struct partition *partition)
{
    struct candidates candidates = gather(search, partition, INT64_MAX);
    free(candidates.shares);
    return candidates.sum;
}

/* --- equal shares --------------------------------------------------------------------------------------- */

/* An equal share that enough nodes can give: the largest, or the smallest for placement spread; 0: none. */
static int64_t equal_share(const struct tally *tally, int64_t gpus, enum placement placement)
{
    int64_t smallest = 0;
    size_t able = 0;
    for (int64_t share = tally->most; share > 0; share--) {
        able += tally->nodes[share];
        if (gpus % share == 0 && (int64_t)able >= gpus / share) {
            if (placement == PLACEMENT_PACK) {
                return share;
            }
            smallest = share;
        }
    }
    return smallest;
}

/* The count of the nodes that give a share next: those with the least growth of fragments, then those with
 * the least left over. */
static int64_t next_to_give(const struct tally *able, const struct fragments *fragments, int64_t share)
{
    int64_t best = 0;
    for (int64_t count = share; count <= able->most; count++) {
        if (able->nodes[count] > 0 && (best == 0 || fragments_growth(fragments, count, share) <
                                                        fragments_growth(fragments, best, share))) {
            best = count;
        }
    }
    assert(best > 0);
    return best;
}

/* Places equal shares; ranks are in the order of the candidates. */
static void lay_equally(struct candidates *candidates, struct tally *tally, const struct fragments *fragments,
                        int64_t gpus, int64_t share)
{
    struct tally wanted = {0};
    for (size_t rest = (size_t)(gpus / share); rest > 0;) {
        int64_t count = next_to_give(tally, fragments, share);
        size_t giving = tally->nodes[count] < rest ? tally->nodes[count] : rest;
        wanted.nodes[count] = giving;
        tally->nodes[count] = 0;
        rest -= giving;
    }
    keep(candidates, &wanted);
}

/* --- unequal shares ------------------------------------------------------------------------------------- */

/* Sorts by the number of devices that nodes could give, largest first, and keeps the order of equal ones. */
static void sort_falling(struct candidates *candidates, const struct tally *tally)
{
    size_t first[LIMIT_NODE_DEVICES + 1], at = 0;
    for (int64_t count = tally->most; count > 0; count--) {
        first[count] = at;
        at += tally->nodes[count];
    }
    struct share *sorted = xalloc((candidates->count + 1) * sizeof *sorted);
    for (size_t i = 0; i < candidates->count; i++) {
        sorted[first[candidates->shares[i].count]++] = candidates->shares[i];
    }
    free(candidates->shares);
    candidates->shares = sorted;
}

/* The smallest maximum per node at which the nodes together give enough. */
static int64_t level_of(const struct candidates *candidates, int64_t gpus)
{
    int64_t level = 0;
    for (int64_t sum = 0; sum < gpus;) {
        level++;
        sum = 0;
        for (size_t i = 0; i < candidates->count; i++) {
            sum += candidates->shares[i].count < level ? candidates->shares[i].count : level;
        }
    }
    return level;
}

/* All nodes give. No node gives more than one device above another that could give more. The candidates are
 * sorted and have no equal shares, so the level is above one. */
static void lay_evenly(struct candidates *candidates, int64_t gpus)
{
    int64_t level = level_of(candidates, gpus), sum = 0;
    size_t full = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        struct share *share = &candidates->shares[i];
        full += share->count >= level;
        share->count = share->count < level ? share->count : level;
        sum += share->count;
    }
    assert(level > 1 && sum - gpus < (int64_t)full);
    for (; sum > gpus; sum--) {
        candidates->shares[--full].count--;
    }
}

/* The largest nodes first; each gives all it has, and the last gives the rest. */
static void lay_falling(struct candidates *candidates, int64_t gpus)
{
    size_t used = 0;
    candidates->sum = 0;
    for (int64_t rest = gpus; rest > 0; used++) {
        struct share *share = &candidates->shares[used];
        candidates->sum += share->count;
        share->count = share->count < rest ? share->count : rest;
        rest -= share->count;
    }
    candidates->count = used;
}

/* --- fits ----------------------------------------------------------------------------------------------- */

static int64_t growth_of(const struct candidates *candidates, const struct search *search,
                         const struct fragments *fragments)
{
    int64_t growth = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        const struct share *share = &candidates->shares[i];
        growth += fragments_growth(fragments, fit_offer(search, share->capacity), share->count);
    }
    return growth;
}

static int64_t held_by(const struct candidates *candidates, const struct search *search)
{
    int64_t held = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        held += fit_held(search, candidates->shares[i].capacity->node);
    }
    return held;
}

bool gang_placement_fit(const struct search *search, const struct partition *partition,
                        const struct fragments *fragments, struct fit *ret_fit)
{
    int64_t gpus = search->request->units;
    struct candidates candidates = gather(search, partition, gpus);
    if (candidates.sum < gpus) {
        free(candidates.shares);
        return false;
    }
    struct tally tally = tally_of(&candidates);
    enum placement placement = search->request->nodes > 0 ? PLACEMENT_PACK : search->request->placement;
    int64_t share =
        equal_share(&tally, gpus, placement); /* all that a node offers, if the number of nodes is given */
    if (share > 0) {
        lay_equally(&candidates, &tally, fragments, gpus, share);
        for (size_t i = 0; i < candidates.count; i++) {
            candidates.shares[i].count = share;
        }
    } else {
        sort_falling(&candidates, &tally);
        (placement == PLACEMENT_SPREAD ? lay_evenly : lay_falling)(&candidates, gpus);
    }
    *ret_fit = (struct fit){.shares = candidates.shares,
                            .count = candidates.count,
                            .growth = growth_of(&candidates, search, fragments),
                            .left = candidates.sum - gpus,
                            .held = held_by(&candidates, search)};
    return true;
}
