/* SPDX-License-Identifier: Apache-2.0 */
/* What a resource request allows. */
#ifndef CORE_FLEET_REQUEST_H
#define CORE_FLEET_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/core/fleet/constraint.h"
#include "daemon/core/model/state.h"

/* Whether it may have the partition's type, and how many types it prefers to that. */
bool request_allows_type(const struct resource_request *request, const struct partition *partition,
                         size_t *ret_rank);
/* Whether it names the partition's pool, kind and type, or leaves them open. */
bool request_asks(const struct resource_request *request, const struct partition *partition);
/* Like fit_asked, and use_reserved = auto selects the partition's kind. */
bool request_leads(const struct resource_request *request, enum pool_kind auto_kind,
                   const struct partition *partition);
/* Whether it may use a node at all, by its host and its labels. */
static inline bool request_allows_node(const struct core *core, const struct resource_request *request,
                                       const struct capacity *capacity)
{
    return (request->host_id == NULL || strcmp(request->host_id, capacity->node->host_id) == 0) &&
           constraints_allow(request->constraints, core, capacity);
}

/* The devices that a node with this many can give to a gang: exactly the share, if the resource request gives
 * a number of nodes. */
static inline int64_t request_share(const struct resource_request *request, int64_t count)
{
    if (request->nodes == 0) {
        return count;
    }
    int64_t share = request->units % request->nodes == 0 ? request->units / request->nodes : INT64_MAX;
    return count >= share ? share : 0;
}

/* Whether it names CPUs or memory. */
static inline bool request_is_explicit(const struct resource_request *request)
{
    return request->gpuless || request->each.millicpus > 0 || request->each.memory_bytes > 0;
}

/* What a unit of it holds on the node: nothing where the agent does not say what there is. */
struct amount request_each(const struct resource_request *request, const struct node *node);

/* Auto selects the reserved pools if one of them has this many suitable GPUs, free or not. */
enum pool_kind request_auto_kind(const struct core *core, const struct resource_request *request,
                                 int64_t gpus);

#endif
