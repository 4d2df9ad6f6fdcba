/* SPDX-License-Identifier: Apache-2.0 */
/* Tells which types, pools and nodes a resource request allows. Equal requests get equal answers. fit.c
 * finds out whether the devices are free. */
#include "daemon/core/fleet/request.h"

#include <string.h>

#include "daemon/core/fleet/pool.h"
#include "daemon/core/model/state.h"

bool request_allows_type(const struct resource_request *request, const struct partition *partition,
                         size_t *ret_rank)
{
    *ret_rank = 0;
    if (request->gpuless || partition_is_gpuless(partition)) {
        return request->gpuless && partition_is_gpuless(partition);
    }
    return request->gpu_type == NULL || pool_type_matches(request->gpu_type, partition->type, ret_rank);
}

/* How many units the node could hold if nothing else ran there. */
static int64_t holds(const struct resource_request *request, const struct capacity *capacity)
{
    const struct node *node = capacity->node;
    return amount_times(node_offers(node), request_each(request, node), capacity->total);
}

/* Whether the partition has this many devices, free or not, for a gang that is not bound to one node. */
static bool has_together(const struct core *core, const struct resource_request *request,
                         const struct partition *partition, int64_t gpus)
{
    int64_t total = 0;
    for (size_t i = 0; i < partition->count && total < gpus; i++) {
        total += request_allows_node(core, request, partition->capacities[i])
                     ? request_share(request, holds(request, partition->capacities[i]))
                     : 0;
    }
    return total >= gpus;
}

static bool can_hold(const struct core *core, const struct resource_request *request,
                     const struct partition *partition, int64_t gpus)
{
    if (request->host_id == NULL) {
        bool fungible = request->constraints == NULL && request->nodes == 0 && !request_is_explicit(request);
        return partition->total >= gpus && (fungible || has_together(core, request, partition, gpus));
    }
    for (size_t i = 0; i < partition->count; i++) {
        if (request_allows_node(core, request, partition->capacities[i]) &&
            holds(request, partition->capacities[i]) >= gpus) {
            return true;
        }
    }
    return false;
}

static int64_t default_to(int64_t asked, int64_t usual)
{
    return asked > 0 ? asked : usual;
}

/* A GPU has its part of the node's CPUs and memory; a rank without one has a CPU, and a CPU's part of the
 * memory. */
struct amount request_each(const struct resource_request *request, const struct node *node)
{
    struct amount each = request->each;
    int64_t devices = node->offered_devices;
    if (node->millicpus == 0) {
        return each;
    }
    if (request->gpuless) {
        each.millicpus = default_to(each.millicpus, node->millicpus < 1000 ? node->millicpus : 1000);
        each.memory_bytes =
            default_to(each.memory_bytes, (int64_t)((double)node->memory_bytes *
                                                    ((double)each.millicpus / (double)node->millicpus)));
    } else if (devices > 0) {
        each.millicpus = default_to(each.millicpus, node->millicpus / devices);
        each.memory_bytes = default_to(each.memory_bytes, node->memory_bytes / devices);
    }
    return each;
}

enum pool_kind request_auto_kind(const struct core *core, const struct resource_request *request,
                                 int64_t gpus)
{
    size_t rank;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (partition->kind == POOL_RESERVED && request_allows_type(request, partition, &rank) &&
            can_hold(core, request, partition, gpus)) {
            return POOL_RESERVED;
        }
    }
    return POOL_ON_DEMAND;
}

bool request_asks(const struct resource_request *request, const struct partition *partition)
{
    size_t rank;
    if (!request_allows_type(request, partition, &rank) ||
        (request->pool != NULL && strcmp(request->pool, partition->pool) != 0)) {
        return false;
    }
    switch (request->use_reserved) {
    case USE_RESERVED_TRUE:
        return partition->kind == POOL_RESERVED;
    case USE_RESERVED_FALSE:
        return partition->kind == POOL_ON_DEMAND;
    case USE_RESERVED_AUTO:
        return true;
    case USE_RESERVED_COUNT:
        break;
    }
    abort();
}

bool request_leads(const struct resource_request *request, enum pool_kind auto_kind,
                   const struct partition *partition)
{
    bool led = request->use_reserved == USE_RESERVED_AUTO && request->pool == NULL;
    return request_asks(request, partition) && (!led || partition->kind == auto_kind);
}
