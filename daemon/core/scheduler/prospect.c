/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts when a gang will fit. It looks at running attempts in the order of their expected ends, and at no
 * more of them than it needs. availability.c keeps that order. */
#include "daemon/core/scheduler/prospect.h"

#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/pool.h"
#include "daemon/core/lifecycle/availability.h"
#include "daemon/core/model/state.h"
#include "daemon/core/scheduler/fit.h"
#include "proto/limits.h"

/* --- free devices --------------------------------------------------------------------------------------- */

static void release(struct node_device *device, int64_t count)
{
    if (device->capacity != NULL && device->unavailable == NULL) {
        device->capacity->free_then += count;
        device->capacity->partition->free_then += count;
    }
}

static void release_amount(const struct member *member, int64_t count)
{
    struct node *node = member->node;
    struct capacity *capacity = member->device_count == 0 ? pool_gpuless_capacity(node) : NULL;
    node->left_then = amount_plus(node->left_then, member_holds(member), count);
    if (capacity != NULL) {
        capacity->free_then += count;
        capacity->partition->free_then += count;
    }
}

void prospect_release(const struct attempt *attempt, bool free)
{
    for (size_t i = 0; i < attempt->member_count; i++) {
        const struct member *member = attempt->members[i];
        int64_t count = free ? 1 : -1;
        for (size_t j = 0; j < member->device_count; j++) {
            release(node_held_device(member->node, member->devices[j]), count);
        }
        release_amount(member, count);
    }
}

void prospect_begin(const struct search *search)
{
    struct core *core = search->core;
    for (struct partition *partition = core->partitions; partition != NULL; partition = partition->next) {
        partition->free_then = partition->free;
        for (size_t i = 0; i < partition->count && fit_open(search, partition); i++) {
            struct node *node = partition->capacities[i]->node;
            partition->capacities[i]->free_then = partition->capacities[i]->free;
            node->left_then = node_left(node);
        }
    }
    for (size_t i = 0; i < core->availability.stopping_count; i++) {
        prospect_release(core->availability.stopping[i], true);
    }
}

/* --- looking ahead -------------------------------------------------------------------------------------- */

static bool enough(const struct search *search)
{
    for (const struct partition *partition = search->core->partitions; partition != NULL;
         partition = partition->next) {
        if (partition->free_then >= search->request->units && fit_open(search, partition)) {
            return true;
        }
    }
    return false;
}

/* Counts as free the attempt that ends next, and all that end with it; NULL: no running work is left. */
static const struct attempt *release_next(struct availability_walk *walk, size_t *seen)
{
    const struct attempt *last = NULL, *next = availability_walk_peek(walk);
    while (next != NULL && (last == NULL || next->expected_ms == last->expected_ms)) {
        last = next;
        prospect_release(last, true);
        availability_walk_next(walk);
        ++*seen;
        next = availability_walk_peek(walk);
    }
    return last;
}

bool prospect_find(const struct search *search, struct prospect *prospect)
{
    struct core *core = search->core;
    availability_refresh(core);
    prospect_begin(search);
    struct availability_walk walk;
    availability_walk_begin(core, &walk);
    int64_t ahead_ms = core->now_ms - core->steady_ms;
    const struct attempt *first = availability_walk_peek(&walk);
    prospect->change_ms = first != NULL ? first->expected_ms + ahead_ms : NEVER;
    prospect->at_ms = core->now_ms;
    bool found = enough(search) && fit_find(search, prospect->fit);
    for (size_t seen = 0, next = 0; !found && seen < LIMIT_AVAILABILITY;) {
        const struct attempt *ended = release_next(&walk, &seen);
        if (ended == NULL) {
            break;
        }
        prospect->at_ms = ended->expected_ms + ahead_ms;
        if ((seen >= next || availability_walk_peek(&walk) == NULL) && enough(search)) {
            found = fit_find(search, prospect->fit);
            next = seen + seen / 8 + 1;
        }
    }
    availability_walk_finish(&walk);
    return found;
}
