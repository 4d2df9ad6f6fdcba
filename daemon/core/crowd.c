/* SPDX-License-Identifier: Apache-2.0 */
/* Owns gangs over several nodes. It promises equal shares where they are possible, from as few nodes as can
 * be or as many, as the wish has it; else the largest first, or as even as can be. Nodes whose idle devices
 * stay most useful to others give first, by name; and all of it costs a few looks at each node, without
 * comparing them. Whether a gang must lie on one node is left to fit.c. */
#include "daemon/core/crowd.h"

#include <string.h>

#include "daemon/core/fit.h"
#include "daemon/core/fragment.h"
#include "daemon/core/pool.h"
#include "daemon/core/state.h"

/* Nodes that may form one gang, by name, with what each could give. */
struct crowd {
    struct share *shares; /* owned */
    size_t count;
    int64_t sum;
};

/* How many nodes of a crowd could give exactly so many. */
struct tally {
    size_t nodes[LIMIT_NODE_DEVICES + 1];
    int64_t most; /* the most that one could give */
};

/* --- who may join ------------------------------------------------------------------------------------ */

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

/* The nodes of a partition; reachable leaves out those that other hosts cannot reach. */
static struct crowd collect(const struct search *search, const struct partition *partition, bool reachable)
{
    struct crowd crowd = {.shares = xalloc((partition->count + 1) * sizeof *crowd.shares)};
    for (size_t i = 0; i < partition->count; i++) {
        const struct capacity *capacity = partition->capacities[i];
        int64_t count = fit_offer(search, capacity);
        if (count > 0 && !(reachable && pool_is_loopback(capacity->node))) {
            crowd.shares[crowd.count++] = (struct share){.capacity = capacity, .count = count};
        }
    }
    return crowd;
}

/* Leaves the nodes of the host that offers most. */
static void keep_one_host(struct crowd *crowd)
{
    if (crowd->count > 1) {
        qsort(crowd->shares, crowd->count, sizeof *crowd->shares, by_host);
    }
    size_t best = 0, best_count = 0;
    int64_t most = 0;
    for (size_t first = 0, end; first < crowd->count; first = end) {
        const char *host_id = crowd->shares[first].capacity->node->host_id;
        end = first + 1;
        while (end < crowd->count && strcmp(crowd->shares[end].capacity->node->host_id, host_id) == 0) {
            end++;
        }
        int64_t sum = sum_of(&crowd->shares[first], end - first);
        if (sum > most) {
            most = sum;
            best = first;
            best_count = end - first;
        }
    }
    memmove(crowd->shares, &crowd->shares[best], best_count * sizeof *crowd->shares);
    crowd->count = best_count;
}

static struct tally tally_of(const struct crowd *crowd)
{
    struct tally tally = {0};
    for (size_t i = 0; i < crowd->count; i++) {
        int64_t count = crowd->shares[i].count;
        tally.nodes[count]++;
        tally.most = count > tally.most ? count : tally.most;
    }
    return tally;
}

/* Leaves so many nodes of each count, the first by name. */
static void keep(struct crowd *crowd, struct tally *wanted)
{
    size_t kept = 0;
    for (size_t i = 0; i < crowd->count; i++) {
        int64_t count = crowd->shares[i].count;
        if (wanted->nodes[count] > 0) {
            wanted->nodes[count]--;
            crowd->shares[kept++] = crowd->shares[i];
        }
    }
    crowd->count = kept;
    crowd->sum = sum_of(crowd->shares, kept);
}

/* No gang is larger than the limit: the nodes that offer most stay. */
static void finish_crowd(struct crowd *crowd)
{
    crowd->sum = sum_of(crowd->shares, crowd->count);
    if (crowd->count > LIMIT_ATTEMPT_NODES) {
        struct tally tally = tally_of(crowd);
        size_t room = LIMIT_ATTEMPT_NODES;
        for (int64_t count = tally.most; count > 0; count--) {
            tally.nodes[count] = tally.nodes[count] < room ? tally.nodes[count] : room;
            room -= tally.nodes[count];
        }
        keep(crowd, &tally);
    }
}

/* The nodes of a partition that may form a gang of this size, or the most if there are not enough. */
static struct crowd gather(const struct search *search, const struct partition *partition, int64_t wanted)
{
    struct crowd across = collect(search, partition, partition->loopback_count > 0);
    finish_crowd(&across);
    if (across.sum >= wanted || partition->loopback_count == 0) {
        return across;
    }
    struct crowd local = collect(search, partition, false);
    keep_one_host(&local);
    finish_crowd(&local);
    bool better = local.sum > across.sum;
    free(better ? across.shares : local.shares);
    return better ? local : across;
}

int64_t crowd_largest(const struct search *search, const struct partition *partition)
{
    struct crowd crowd = gather(search, partition, INT64_MAX);
    free(crowd.shares);
    return crowd.sum;
}

/* --- equal shares ------------------------------------------------------------------------------------ */

/* An equal share that enough nodes can give, 0 when there is none: the largest, or the smallest. */
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

/* The count whose nodes are to give a share next: those with the least growth of fragments, then those with
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

/* Equal shares; ranks go by name. */
static void lay_equally(struct crowd *crowd, struct tally *tally, const struct fragments *fragments,
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
    keep(crowd, &wanted);
}

/* --- shares that differ ------------------------------------------------------------------------------ */

/* By what they could give, the largest first, then by name. */
static void sort_falling(struct crowd *crowd, const struct tally *tally)
{
    size_t first[LIMIT_NODE_DEVICES + 1], at = 0;
    for (int64_t count = tally->most; count > 0; count--) {
        first[count] = at;
        at += tally->nodes[count];
    }
    struct share *sorted = xalloc((crowd->count + 1) * sizeof *sorted);
    for (size_t i = 0; i < crowd->count; i++) {
        sorted[first[crowd->shares[i].count]++] = crowd->shares[i];
    }
    free(crowd->shares);
    crowd->shares = sorted;
}

/* The least that nodes may give at most, so that together they give enough. */
static int64_t level_of(const struct crowd *crowd, int64_t gpus)
{
    int64_t level = 0;
    for (int64_t sum = 0; sum < gpus;) {
        level++;
        sum = 0;
        for (size_t i = 0; i < crowd->count; i++) {
            sum += crowd->shares[i].count < level ? crowd->shares[i].count : level;
        }
    }
    return level;
}

/* All of them give, none more than one above another that has more to give. The crowd is sorted; it has no
 * equal shares, so that the level is more than one. */
static void lay_evenly(struct crowd *crowd, int64_t gpus)
{
    int64_t level = level_of(crowd, gpus), sum = 0;
    size_t full = 0;
    for (size_t i = 0; i < crowd->count; i++) {
        struct share *share = &crowd->shares[i];
        full += share->count >= level;
        share->count = share->count < level ? share->count : level;
        sum += share->count;
    }
    assert(level > 1 && sum - gpus < (int64_t)full);
    for (; sum > gpus; sum--) {
        crowd->shares[--full].count--;
    }
}

/* The largest first, each giving what it has; the last gives the rest. */
static void lay_falling(struct crowd *crowd, int64_t gpus)
{
    size_t used = 0;
    crowd->sum = 0;
    for (int64_t rest = gpus; rest > 0; used++) {
        struct share *share = &crowd->shares[used];
        crowd->sum += share->count;
        share->count = share->count < rest ? share->count : rest;
        rest -= share->count;
    }
    crowd->count = used;
}

/* --- fits -------------------------------------------------------------------------------------------- */

static int64_t growth_of(const struct crowd *crowd, const struct search *search,
                         const struct fragments *fragments)
{
    int64_t growth = 0;
    for (size_t i = 0; i < crowd->count; i++) {
        const struct share *share = &crowd->shares[i];
        growth += fragments_growth(fragments, fit_offer(search, share->capacity), share->count);
    }
    return growth;
}

bool crowd_fit(const struct search *search, const struct partition *partition,
               const struct fragments *fragments, struct fit *ret_fit)
{
    int64_t gpus = search->wish->gpus;
    struct crowd crowd = gather(search, partition, gpus);
    if (crowd.sum < gpus) {
        free(crowd.shares);
        return false;
    }
    struct tally tally = tally_of(&crowd);
    enum placement placement = search->wish->nodes > 0 ? PLACEMENT_PACK : search->wish->placement;
    int64_t share =
        equal_share(&tally, gpus, placement); /* all that a node offers, if the nodes are counted */
    if (share > 0) {
        lay_equally(&crowd, &tally, fragments, gpus, share);
        for (size_t i = 0; i < crowd.count; i++) {
            crowd.shares[i].count = share;
        }
    } else {
        sort_falling(&crowd, &tally);
        (placement == PLACEMENT_SPREAD ? lay_evenly : lay_falling)(&crowd, gpus);
    }
    *ret_fit = (struct fit){.shares = crowd.shares,
                            .count = crowd.count,
                            .growth = growth_of(&crowd, search, fragments),
                            .left = crowd.sum - gpus};
    return true;
}
