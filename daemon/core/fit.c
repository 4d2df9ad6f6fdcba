/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the choice of devices for one wish. It promises equal choices for equal states: on one node, the one
 * with the least left over; else as few nodes as equal shares allow; else the largest free counts first.
 * Whose turn it is is left to place.c. */
#include "daemon/core/fit.h"

#include <string.h>
#include <strings.h>

#include "daemon/core/node.h"
#include "daemon/core/pool.h"
#include "daemon/core/state.h"
#include "proto/limits.h"

/* Nodes that may form one gang, with what each could give. */
struct crowd {
    struct share *shares; /* owned */
    size_t count;
    int64_t sum;
};

/* --- what a wish allows ------------------------------------------------------------------------------ */

static bool type_allowed(const struct wish *wish, const struct group *group)
{
    return wish->gpu_type == NULL || strcasecmp(wish->gpu_type, group->type) == 0;
}

bool fit_host_allowed(const struct wish *wish, const struct stock *stock)
{
    return wish->host_id == NULL || strcmp(wish->host_id, stock->node->host_id) == 0;
}

static bool can_hold(const struct wish *wish, const struct group *group, int64_t gpus)
{
    if (wish->host_id == NULL) {
        return group->total >= gpus;
    }
    for (size_t i = 0; i < group->count; i++) {
        if (fit_host_allowed(wish, group->stocks[i]) && group->stocks[i]->total >= gpus) {
            return true;
        }
    }
    return false;
}

/* Auto leads to the reserved pools if one of them has this many GPUs that would do, free or not. */
static enum pool_kind auto_kind(const struct core *core, const struct wish *wish, int64_t gpus)
{
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        if (group->kind == POOL_RESERVED && type_allowed(wish, group) && can_hold(wish, group, gpus)) {
            return POOL_RESERVED;
        }
    }
    return POOL_ON_DEMAND;
}

/* One reserved GPU is enough to be admitted there and nowhere else, so that a gang which is too large for the
 * reserved pools is refused; but reserved nodes that come later do not strand a gang which waits elsewhere.
 */
struct search fit_search(const struct core *core, const struct wish *wish, enum view view,
                         const struct kept *kept)
{
    int64_t needed = view == VIEW_REGISTERED ? 1 : wish->gpus;
    return (struct search){
        .core = core, .wish = wish, .kind = auto_kind(core, wish, needed), .view = view, .kept = kept};
}

bool fit_allowed(const struct search *search, const struct group *group)
{
    const struct wish *wish = search->wish;
    if (!type_allowed(wish, group) || (wish->pool != NULL && strcmp(wish->pool, group->pool) != 0)) {
        return false;
    }
    switch (wish->use_reserved) {
    case USE_RESERVED_TRUE:
        return group->kind == POOL_RESERVED;
    case USE_RESERVED_FALSE:
        return group->kind == POOL_ON_DEMAND;
    case USE_RESERVED_AUTO:
        return wish->pool != NULL || group->kind == search->kind;
    case USE_RESERVED_COUNT:
        break;
    }
    abort();
}

bool fit_open(const struct search *search, const struct group *group)
{
    const struct kept *kept = search->kept;
    bool taken = kept != NULL && (kept->groups[group->index] ||
                                  (search->view == VIEW_COMING && kept->until_ms[group->index] != 0));
    return !taken && fit_allowed(search, group);
}

bool fit_outlasts(const struct search *search, const struct group *group)
{
    const struct kept *kept = search->kept;
    if (kept == NULL || kept->until_ms[group->index] == 0) {
        return false;
    }
    int64_t end_ms = kept->firm[group->index] ? search->sure_ms : search->end_ms;
    return end_ms > kept->until_ms[group->index];
}

/* What is free and not reserved for as long. */
static int64_t spared(const struct search *search, const struct stock *stock)
{
    bool limited = fit_outlasts(search, stock->group) && stock->spare < stock->free;
    return limited ? stock->spare : stock->free;
}

/* A job whose length nobody knows is kept off nodes that leave soon, as long as others could hold it. */
bool fit_lasts(const struct search *search, const struct node *node)
{
    int64_t leaves_ms = node_leaves_ms(search->core, node);
    if (leaves_ms == NEVER) {
        return true;
    }
    int64_t left_ms = leaves_ms - search->core->look_ms;
    if (search->lasts_ms != NEVER) {
        return left_ms >= search->lasts_ms;
    }
    return left_ms > search->grace_ms && (search->leaving || left_ms > LEAVES_SOON_MS);
}

void fit_expect(struct search *search, int64_t runs_ms, int64_t grace_ms)
{
    search->lasts_ms = runs_ms < NEVER - grace_ms ? runs_ms + grace_ms : NEVER;
    search->grace_ms = grace_ms;
    if (search->lasts_ms == NEVER && search->core->leaving_count > 0) {
        struct search staying = *search;
        staying.view = VIEW_STAYING;
        staying.kept = NULL;
        staying.readiness = READINESS_EVER;
        struct fit fit;
        search->leaving = !fit_find(&staying, &fit);
        free(fit.shares);
    }
}

static int64_t offer(const struct search *search, const struct stock *stock)
{
    const struct node *node = stock->node;
    if (!fit_host_allowed(search->wish, stock) || !staging_allows(search->stage, node, search->readiness)) {
        return 0;
    }
    switch (search->view) {
    case VIEW_REGISTERED:
        return stock->total;
    case VIEW_WORKING:
        return node_works(node) && fit_lasts(search, node) ? stock->total : 0;
    case VIEW_STAYING:
        return node->state == NODE_READY && !node->away && fit_lasts(search, node) ? stock->total : 0;
    case VIEW_FREE:
        if (search->kept != NULL && search->kept->nodes[node->index]) {
            return 0;
        }
        return node_works(node) && node->hold_until_ms == 0 && fit_lasts(search, node) ? spared(search, stock)
                                                                                       : 0;
    case VIEW_COMING:
        return node_works(node) && fit_lasts(search, node) ? stock->coming : 0;
    }
    abort();
}

/* --- crowds ------------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    const struct share *left = a, *right = b;
    return strcmp(left->stock->node->name, right->stock->node->name);
}

static int by_count_falling(const void *a, const void *b)
{
    const struct share *left = a, *right = b;
    int order = (left->count < right->count) - (left->count > right->count);
    return order != 0 ? order : by_name(a, b);
}

static int by_count_rising(const void *a, const void *b)
{
    const struct share *left = a, *right = b;
    int order = (left->count > right->count) - (left->count < right->count);
    return order != 0 ? order : by_name(a, b);
}

static int by_host(const void *a, const void *b)
{
    const struct share *left = a, *right = b;
    int order = strcmp(left->stock->node->host_id, right->stock->node->host_id);
    return order != 0 ? order : by_name(a, b);
}

static void sort(struct share *shares, size_t count, int (*order)(const void *, const void *))
{
    if (count > 1) {
        qsort(shares, count, sizeof *shares, order);
    }
}

static int64_t sum_of(const struct share *shares, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += shares[i].count;
    }
    return sum;
}

/* The nodes of a group; reachable leaves out those that other hosts cannot reach. */
static struct crowd collect(const struct search *search, const struct group *group, bool reachable)
{
    struct crowd crowd = {.shares = xalloc(group->count * sizeof *crowd.shares)};
    for (size_t i = 0; i < group->count; i++) {
        const struct stock *stock = group->stocks[i];
        int64_t count = offer(search, stock);
        if (count > 0 && !(reachable && pool_is_loopback(stock->node))) {
            crowd.shares[crowd.count++] = (struct share){.stock = stock, .count = count};
        }
    }
    return crowd;
}

/* Leaves the nodes of the host that offers most. */
static void keep_one_host(struct crowd *crowd)
{
    sort(crowd->shares, crowd->count, by_host);
    size_t best = 0, best_count = 0;
    int64_t most = 0;
    for (size_t first = 0, end; first < crowd->count; first = end) {
        const char *host_id = crowd->shares[first].stock->node->host_id;
        end = first + 1;
        while (end < crowd->count && strcmp(crowd->shares[end].stock->node->host_id, host_id) == 0) {
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

/* No gang is larger than the limit: the nodes that offer most stay. */
static void finish_crowd(struct crowd *crowd)
{
    if (crowd->count > LIMIT_ATTEMPT_NODES) {
        sort(crowd->shares, crowd->count, by_count_falling);
        crowd->count = LIMIT_ATTEMPT_NODES;
    }
    crowd->sum = sum_of(crowd->shares, crowd->count);
}

/* The nodes of a group that may form a gang of this size, or the most if there are not enough. */
static struct crowd gather(const struct search *search, const struct group *group, int64_t wanted)
{
    struct crowd across = collect(search, group, true);
    finish_crowd(&across);
    if (across.sum >= wanted || group->loopback_count == 0) {
        return across;
    }
    struct crowd local = collect(search, group, false);
    keep_one_host(&local);
    finish_crowd(&local);
    bool better = local.sum > across.sum;
    free(better ? across.shares : local.shares);
    return better ? local : across;
}

/* The node that is left with the least when the whole gang runs there, NULL when there is none. */
static const struct stock *tightest(const struct search *search, const struct group *group, int64_t gpus)
{
    const struct stock *best = NULL;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < group->count; i++) {
        int64_t count = offer(search, group->stocks[i]);
        if (count >= gpus && count < least) {
            least = count;
            best = group->stocks[i];
        }
    }
    return best;
}

int64_t fit_largest(const struct search *search, const struct group *group)
{
    if (search->wish->host_id == NULL) {
        struct crowd crowd = gather(search, group, INT64_MAX);
        free(crowd.shares);
        return crowd.sum;
    }
    int64_t largest = 0;
    for (size_t i = 0; i < group->count; i++) {
        int64_t count = offer(search, group->stocks[i]);
        largest = count > largest ? count : largest;
    }
    return largest;
}

/* --- fits -------------------------------------------------------------------------------------------- */

static int64_t able_to_give(const struct crowd *crowd, int64_t share)
{
    int64_t able = 0;
    for (size_t i = 0; i < crowd->count; i++) {
        able += crowd->shares[i].count >= share;
    }
    return able;
}

/* The largest equal share that enough nodes of the crowd can give, 0 when there is none. */
static int64_t equal_share(const struct crowd *crowd, int64_t gpus)
{
    int64_t most = 0;
    for (size_t i = 0; i < crowd->count; i++) {
        most = crowd->shares[i].count > most ? crowd->shares[i].count : most;
    }
    for (int64_t share = most < gpus ? most : gpus; share > 0; share--) {
        if (gpus % share == 0 && able_to_give(crowd, share) >= gpus / share) {
            return share;
        }
    }
    return 0;
}

/* Equal shares from the nodes that have the least to spare; ranks go by name. */
static void spread_equally(struct crowd *crowd, int64_t gpus, int64_t share)
{
    sort(crowd->shares, crowd->count, by_count_rising);
    size_t first = 0;
    while (crowd->shares[first].count < share) {
        first++;
    }
    crowd->count = (size_t)(gpus / share);
    memmove(crowd->shares, &crowd->shares[first], crowd->count * sizeof *crowd->shares);
    sort(crowd->shares, crowd->count, by_name);
    crowd->sum = sum_of(crowd->shares, crowd->count);
    for (size_t i = 0; i < crowd->count; i++) {
        crowd->shares[i].count = share;
    }
}

/* The largest first, each giving what it has; the last gives the rest. */
static void spread_falling(struct crowd *crowd, int64_t gpus)
{
    sort(crowd->shares, crowd->count, by_count_falling);
    crowd->sum = 0;
    size_t used = 0;
    for (int64_t rest = gpus; rest > 0; used++) {
        struct share *share = &crowd->shares[used];
        crowd->sum += share->count;
        share->count = share->count < rest ? share->count : rest;
        rest -= share->count;
    }
    crowd->count = used;
}

static bool fit_on_one(const struct search *search, const struct group *group, struct fit *ret_fit)
{
    int64_t gpus = search->wish->gpus;
    const struct stock *stock = tightest(search, group, gpus);
    if (stock == NULL) {
        return false;
    }
    *ret_fit = (struct fit){
        .shares = xalloc(sizeof *ret_fit->shares), .count = 1, .left = offer(search, stock) - gpus};
    ret_fit->shares[0] = (struct share){.stock = stock, .count = gpus};
    return true;
}

static bool fit_on_many(const struct search *search, const struct group *group, struct fit *ret_fit)
{
    int64_t gpus = search->wish->gpus;
    struct crowd crowd = gather(search, group, gpus);
    if (crowd.sum < gpus) {
        free(crowd.shares);
        return false;
    }
    int64_t share = equal_share(&crowd, gpus);
    if (share > 0) {
        spread_equally(&crowd, gpus, share);
    } else {
        spread_falling(&crowd, gpus);
    }
    *ret_fit = (struct fit){.shares = crowd.shares, .count = crowd.count, .left = crowd.sum - gpus};
    return true;
}

static bool fit_in_group(const struct search *search, const struct group *group, struct fit *ret_fit)
{
    int64_t most = search->view == VIEW_FREE     ? group->free
                   : search->view == VIEW_COMING ? group->coming
                                                 : group->total;
    if (most < search->wish->gpus || !fit_open(search, group)) {
        return false;
    }
    return fit_on_one(search, group, ret_fit) ||
           (search->wish->host_id == NULL && fit_on_many(search, group, ret_fit));
}

static bool better(const struct fit *fit, const struct fit *than)
{
    return fit->count != than->count ? fit->count < than->count : fit->left < than->left;
}

bool fit_find(const struct search *search, struct fit *ret_fit)
{
    struct fit best = {0};
    for (const struct group *group = search->core->groups; group != NULL; group = group->next) {
        struct fit fit;
        if (!fit_in_group(search, group, &fit)) {
            continue;
        }
        if (best.shares == NULL || better(&fit, &best)) {
            free(best.shares);
            best = fit;
        } else {
            free(fit.shares);
        }
    }
    *ret_fit = best;
    return best.shares != NULL;
}
