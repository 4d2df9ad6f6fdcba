/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the nodes for one resource request. Equal states give equal choices: the preferred GPU type, as few
 * nodes as possible (or as many, for placement spread), and among these the nodes whose idle devices stay
 * most useful to others. gang_placement.c places gangs over several nodes, topology.c chooses the devices of
 * a node, and place.c decides the order of jobs. */
#include "daemon/core/scheduler/fit.h"

#include <string.h>

#include "daemon/core/fleet/constraint.h"
#include "daemon/core/fleet/locality.h"
#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/pool.h"
#include "daemon/core/fleet/request.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/fragment.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/scheduler/gang_placement.h"

#define FEW_COPIES_SHARE 8 /* of the nodes: so few are looked at by themselves */

/* --- what a search allows ------------------------------------------------------------------------------- */

/* For admission, one reserved GPU selects the reserved pools and no others, so a gang that is too large for
 * them is refused. Otherwise they must hold the whole gang, so reserved nodes that register later do not
 * strand a gang that waits elsewhere. */
struct search fit_search(struct core *core, const struct resource_request *request, enum view view,
                         const struct reservations *reservations)
{
    int64_t needed = view == VIEW_REGISTERED ? 1 : request->units;
    return (struct search){.core = core,
                           .request = request,
                           .kind = request_auto_kind(core, request, needed),
                           .view = view,
                           .reservations = reservations};
}

/* Whether a job that asked for on-demand devices would get idle reserved ones. */
static bool is_lent(const struct search *search, const struct partition *partition)
{
    const struct resource_request *request = search->request;
    size_t rank;
    return partition->kind == POOL_RESERVED && request->use_reserved == USE_RESERVED_FALSE &&
           request->pool == NULL && request_allows_type(request, partition, &rank) &&
           account_pool_lends(search->core, partition->pool);
}

bool fit_allowed(const struct search *search, const struct partition *partition)
{
    return request_leads(search->request, search->kind, partition) ||
           (search->borrow && is_lent(search, partition));
}

bool fit_granted(const struct search *search, const struct partition *partition)
{
    const struct job *job = search->job;
    if (job == NULL || !account_any_limited(search->core)) {
        return true;
    }
    return account_may_run(search->core, job, partition, NULL) &&
           (search->borrow || account_claim(search->core, job, partition) == CLAIM_ENTITLED);
}

bool fit_open(const struct search *search, const struct partition *partition)
{
    const struct reservations *reservations = search->reservations;
    bool taken = reservations != NULL &&
                 (reservations->partitions[partition->index] ||
                  (search->view == VIEW_FUTURE && reservations->until_ms[partition->index] != 0));
    return !taken && fit_allowed(search, partition) && fit_granted(search, partition);
}

bool fit_outlasts(const struct search *search, const struct partition *partition)
{
    const struct reservations *reservations = search->reservations;
    if (reservations == NULL || reservations->until_ms[partition->index] == 0) {
        return false;
    }
    int64_t end_ms = reservations->firm[partition->index] ? search->sure_ms : search->end_ms;
    return end_ms > reservations->until_ms[partition->index];
}

/* The free devices that are not reserved too soon for the gang. */
static int64_t spared(const struct search *search, const struct capacity *capacity)
{
    bool limited = fit_outlasts(search, capacity->partition) && capacity->spare < capacity->free;
    return limited ? capacity->spare : capacity->free;
}

/* The same for the CPUs and the memory of a node. */
static struct amount spared_amount(const struct search *search, const struct node *node)
{
    struct amount left = node_left(node);
    bool counted_on =
        search->reservations != NULL && (search->reservations->nodes[node->index] & NODE_COUNTED_ON) != 0;
    return counted_on && search->end_ms > node->spare_until_ms ? amount_least(left, node->spare) : left;
}

/* A job of unknown length is kept off nodes that leave soon, as long as other nodes could hold it. */
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
    return left_ms > search->grace_ms && (search->departing || left_ms > LEAVES_SOON_MS);
}

void fit_expect(struct search *search, int64_t runs_ms, int64_t grace_ms)
{
    search->lasts_ms = runs_ms < NEVER - grace_ms ? runs_ms + grace_ms : NEVER;
    search->grace_ms = grace_ms;
    if (search->lasts_ms == NEVER && search->core->departing_count > 0) {
        struct search staying = *search;
        staying.view = VIEW_STAYING;
        staying.reservations = NULL;
        staying.readiness = READINESS_EVER;
        struct fit fit;
        search->departing = !fit_find(&staying, &fit);
        free(fit.shares);
    }
}

static struct amount offered_amount(const struct search *search, const struct node *node)
{
    switch (search->view) {
    case VIEW_REGISTERED:
    case VIEW_WORKING:
    case VIEW_STAYING:
        return node_offers(node);
    case VIEW_FREE:
        return spared_amount(search, node);
    case VIEW_FUTURE:
        return node->left_then;
    }
    abort();
}

static int64_t offered_devices(const struct search *search, const struct capacity *capacity)
{
    const struct node *node = capacity->node;
    if (search->view == VIEW_FREE && capacity->free == 0) {
        return 0; /* most nodes of a full cluster, so checked first */
    }
    if (!request_allows_node(search->core, search->request, capacity) ||
        !staging_allows(search->environment, node, search->readiness) ||
        (search->strict && constraints_avoid(search->request->constraints, search->core, capacity))) {
        return 0;
    }
    switch (search->view) {
    case VIEW_REGISTERED:
        return capacity->total;
    case VIEW_WORKING:
        return node_works(node) && fit_lasts(search, node) ? capacity->total - capacity->unavailable : 0;
    case VIEW_STAYING:
        return node->state == NODE_READY && !node->away && fit_lasts(search, node) ? capacity->total : 0;
    case VIEW_FREE:
        if (search->reservations != NULL && (search->reservations->nodes[node->index] & NODE_RESERVED) != 0) {
            return 0;
        }
        return node_works(node) && node->hold_until_ms == 0 && fit_lasts(search, node)
                   ? spared(search, capacity)
                   : 0;
    case VIEW_FUTURE:
        return node_works(node) && fit_lasts(search, node) ? capacity->free_then : 0;
    }
    abort();
}

/* So many units as its devices, its CPUs and its memory allow. */
static int64_t offered(const struct search *search, const struct capacity *capacity)
{
    int64_t devices = offered_devices(search, capacity);
    return devices == 0 || search->boundless
               ? devices
               : amount_times(offered_amount(search, capacity->node),
                              request_each(search->request, capacity->node), devices);
}

int64_t fit_offer(const struct search *search, const struct capacity *capacity)
{
    return request_share(search->request, offered(search, capacity));
}

int64_t fit_largest(const struct search *search, const struct partition *partition)
{
    if (search->request->host_id == NULL) {
        return gang_placement_largest(search, partition);
    }
    int64_t largest = 0;
    for (size_t i = 0; i < partition->count; i++) {
        int64_t count = fit_offer(search, partition->capacities[i]);
        largest = count > largest ? count : largest;
    }
    return largest;
}

/* --- fits ----------------------------------------------------------------------------------------------- */

int64_t fit_held(const struct search *search, const struct node *node)
{
    return search->locality ? (int64_t)locality_count(search->environment, node) : 0;
}

/* Compares fits: fewer new fragments are better, then fewer devices left over, then more of the environment.
 */
static bool better(const struct resource_request *request, const struct fit *fit, const struct fit *than)
{
    if (fit->count != than->count) {
        return request->placement == PLACEMENT_SPREAD ? fit->count > than->count : fit->count < than->count;
    }
    if (fit->growth != than->growth) {
        return fit->growth < than->growth;
    }
    return fit->left != than->left ? fit->left < than->left : fit->held > than->held;
}

/* A rank without GPU is best off where no GPU waits for the CPUs that it takes. */
static int64_t growth_on(const struct capacity *capacity, const struct fragments *fragments, int64_t count,
                         int64_t units)
{
    return partition_is_gpuless(capacity->partition) ? capacity->node->offered_devices > 0
                                                     : fragments_growth(fragments, count, units);
}

/* Places the whole gang on the one most suitable node. */
static bool fit_on_one(const struct search *search, const struct partition *partition,
                       const struct fragments *fragments, struct fit *ret_fit)
{
    int64_t gpus = search->request->units;
    struct fit best = {.count = 1, .growth = INT64_MAX};
    const struct capacity *capacity = NULL;
    for (size_t i = 0; i < partition->count; i++) {
        const struct capacity *each = partition->capacities[i];
        int64_t count = offered(search, each);
        if (count < gpus) {
            continue;
        }
        struct fit fit = {.count = 1,
                          .growth = growth_on(each, fragments, count, gpus),
                          .left = count - gpus,
                          .held = fit_held(search, each->node)};
        if (capacity == NULL || better(search->request, &fit, &best)) {
            best = fit;
            capacity = each;
        }
    }
    if (capacity == NULL) {
        return false;
    }
    best.shares = xalloc(sizeof *best.shares);
    best.shares[0] = (struct share){.capacity = capacity, .count = gpus};
    *ret_fit = best;
    return true;
}

/* Whether the nodes that are ready for the environment could hold the gang; no answer where these are many.
 */
static bool are_ready_enough(const struct search *search, const struct partition *partition)
{
    const struct environment *environment = search->environment;
    if (environment == NULL || search->readiness > READINESS_KNOWN ||
        HASH_COUNT(environment->copies) > partition->count / FEW_COPIES_SHARE) {
        return true;
    }
    int64_t offer = 0;
    for (const struct environment_copy *copy = environment->copies; copy != NULL; copy = copy->hh.next) {
        const struct capacity *capacity = pool_capacity(partition, copy->node);
        offer += capacity != NULL ? fit_offer(search, capacity) : 0;
    }
    return offer >= search->request->units;
}

static bool fit_in_partition(const struct search *search, const struct partition *partition,
                             struct fit *ret_fit)
{
    int64_t most = search->view == VIEW_FREE     ? partition->free
                   : search->view == VIEW_FUTURE ? partition->free_then
                                                 : partition->total;
    const struct resource_request *request = search->request;
    if (most < request->units || !fit_open(search, partition) || !are_ready_enough(search, partition)) {
        return false;
    }
    struct fragments fragments;
    search->core->pass_work += (int64_t)partition->count * (search->locality ? 2 : 1);
    if (!request->gpuless) {
        fragments_count(search->core, partition, &fragments);
    }
    bool one = request->host_id != NULL || request->units == 1 || request->nodes == 1;
    bool may_be_one = one || (request->placement == PLACEMENT_PACK && request->nodes == 0);
    if (may_be_one && fit_on_one(search, partition, &fragments, ret_fit)) {
        return true;
    }
    return !one && gang_placement_fit(search, partition, &fragments, ret_fit);
}

/* The best fit on devices of the type with this rank in the preferences. */
static bool find_of_rank(const struct search *search, size_t rank, struct fit *ret_fit)
{
    struct fit best = {0};
    for (const struct partition *partition = search->core->partitions; partition != NULL;
         partition = partition->next) {
        struct fit fit;
        size_t rank_here;
        if (!request_allows_type(search->request, partition, &rank_here) || rank_here != rank ||
            !fit_in_partition(search, partition, &fit)) {
            continue;
        }
        if (best.shares == NULL || better(search->request, &fit, &best)) {
            free(best.shares);
            best = fit;
        } else {
            free(fit.shares);
        }
    }
    *ret_fit = best;
    return best.shares != NULL;
}

static size_t count_types(const struct resource_request *request)
{
    size_t count = 1;
    for (const char *at = request->gpu_type; at != NULL && *at != '\0'; at++) {
        count += *at == '|';
    }
    return count;
}

static bool find(const struct search *search, struct fit *ret_fit)
{
    size_t types = count_types(search->request);
    for (size_t rank = 0; rank < types; rank++) {
        if (find_of_rank(search, rank, ret_fit)) {
            return true;
        }
    }
    return false;
}

static bool find_avoiding(const struct search *search, struct fit *ret_fit)
{
    struct search strict = *search;
    const struct constraints *constraints = search->request->constraints;
    strict.strict = constraints != NULL && constraints->avoids;
    return find(&strict, ret_fit) || (strict.strict && find(search, ret_fit));
}

/* Whether a gang that spreads would have more nodes if all nodes that can be staged were ready. */
static bool would_widen(const struct search *search, const struct fit *fit)
{
    const struct resource_request *request = search->request;
    if (search->environment == NULL || search->readiness >= READINESS_POSSIBLE ||
        request->placement != PLACEMENT_SPREAD || (int64_t)fit->count >= request->units) {
        return false;
    }
    struct search possible = *search;
    struct fit wider;
    possible.readiness = READINESS_POSSIBLE;
    bool widens = find_avoiding(&possible, &wider) && wider.count > fit->count;
    free(wider.shares);
    return widens;
}

bool fit_find(const struct search *search, struct fit *ret_fit)
{
    struct fit fit;
    bool found = find_avoiding(search, &fit);
    if (found && would_widen(search, &fit)) {
        free(fit.shares);
        fit = (struct fit){0};
        found = false;
    }
    *ret_fit = fit;
    return found;
}

bool fit_could_hold(const struct search *search, const struct partition *partition)
{
    int64_t gpus = search->request->units;
    return fit_allowed(search, partition) && partition->total >= gpus &&
           fit_largest(search, partition) >= gpus;
}
