/* SPDX-License-Identifier: Apache-2.0 */
/* Measures fragmentation for the choice of nodes: the gradient of FGD (Weng and others, USENIX ATC 2023), for
 * whole devices. An idle device of a node is a fragment for a job that asks for more than the node has idle.
 * The measure depends only on the live jobs and the registered nodes; a table takes as many steps as the
 * widest node has devices. fit.c chooses the nodes. */
#include "daemon/core/queue/fragment.h"

#include "daemon/core/model/state.h"

/* One more job of each size is counted, so that a few small jobs do not break up nodes that later jobs will
 * want whole. */
static const int64_t usual_sizes[] = {1, 2, 4, 8};
#define USUAL_SIZES ((int64_t)(sizeof usual_sizes / sizeof usual_sizes[0]))

void fragment_demand(struct core *core, const struct resource_request *request, int change)
{
    int64_t gpus = request_gpus(request);
    if (gpus == 0) {
        core->gpuless_count += change;
        return;
    }
    int64_t size = gpus < LIMIT_NODE_DEVICES ? gpus : LIMIT_NODE_DEVICES;
    core->demand[size] += (uint32_t)change;
    core->demand_count += change;
}

/* The number of jobs that ask for exactly this many GPUs. */
static int64_t demand_of(const struct core *core, int64_t gpus)
{
    int64_t count = core->demand[gpus];
    for (int64_t i = 0; i < USUAL_SIZES; i++) {
        count += usual_sizes[i] == gpus;
    }
    return count;
}

/* A job that asks for more than the widest node has counts as asking for whole nodes. */
void fragments_count(const struct core *core, const struct partition *partition,
                     struct fragments *ret_fragments)
{
    int64_t larger = core->demand_count + USUAL_SIZES;
    for (int64_t idle = 0; idle < partition->widest; idle++) {
        larger -= demand_of(core, idle);
        ret_fragments->of[idle] = idle * larger;
    }
    ret_fragments->of[partition->widest] = 0;
}
