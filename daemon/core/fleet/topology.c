/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses devices on one node. Devices that reach each other fastest form a group; devices without known
 * group form one, too. A gang that fits into one group gets a single group, the one with the fewest devices
 * left over, so that whole groups stay whole. A larger gang gets whole groups first. The agent detects the
 * groups. */
#include "daemon/core/fleet/topology.h"

#include "daemon/core/model/state.h"

/* The free devices of one group in a node capacity. */
struct part {
    int64_t group;
    size_t free, taken;
};

struct parts {
    struct part *items;
    size_t count;
};

static bool is_free(const struct node_device *device, const struct capacity *capacity)
{
    return device->capacity == capacity && device->holder == NULL && device->unavailable == NULL;
}

static struct part *part_of(const struct parts *parts, int64_t group)
{
    for (size_t i = 0; i < parts->count; i++) {
        if (parts->items[i].group == group) {
            return &parts->items[i];
        }
    }
    return NULL;
}

/* Groups in the order of their first free device. */
static struct parts collect(const struct capacity *capacity)
{
    const struct node *node = capacity->node;
    struct parts parts = {.items = xalloc((node->device_count + 1) * sizeof *parts.items)};
    for (size_t i = 0; i < node->device_count; i++) {
        if (!is_free(&node->devices[i], capacity)) {
            continue;
        }
        struct part *part = part_of(&parts, node->devices[i].group);
        if (part == NULL) {
            part = &parts.items[parts.count++];
            *part = (struct part){.group = node->devices[i].group};
        }
        part->free++;
    }
    return parts;
}

/* The part with the least to spare among those that hold the whole gang; else the largest. */
static struct part *best_for(const struct parts *parts, size_t count)
{
    struct part *tightest = NULL, *largest = NULL;
    for (size_t i = 0; i < parts->count; i++) {
        struct part *part = &parts->items[i];
        if (part->free >= count && (tightest == NULL || part->free < tightest->free)) {
            tightest = part;
        }
        if (largest == NULL || part->free > largest->free) {
            largest = part;
        }
    }
    return tightest != NULL ? tightest : largest;
}

int64_t *topology_choose(const struct capacity *capacity, size_t count)
{
    const struct node *node = capacity->node;
    int64_t *indices = xalloc(count * sizeof *indices);
    struct parts parts = collect(capacity);
    for (size_t rest = count; rest > 0;) {
        struct part *part = best_for(&parts, rest);
        size_t taken = part->free < rest ? part->free : rest;
        assert(taken > 0);
        part->taken += taken;
        part->free -= taken;
        rest -= taken;
    }
    size_t chosen = 0;
    for (size_t i = 0; i < node->device_count && chosen < count; i++) {
        const struct node_device *device = &node->devices[i];
        struct part *part = is_free(device, capacity) ? part_of(&parts, device->group) : NULL;
        if (part != NULL && part->taken > 0) {
            part->taken--;
            indices[chosen++] = device->index;
        }
    }
    assert(chosen == count);
    free(parts.items);
    return indices;
}
