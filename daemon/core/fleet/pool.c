/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the partitions: for each pool and GPU type, the nodes that have it, by name, and the sums of their
 * devices. The sums agree with the devices after every call; partitions are ordered by pool and type. place.c
 * decides which node a job gets. */
#include "daemon/core/fleet/pool.h"

#include <string.h>
#include <strings.h>

#include "daemon/core/model/state.h"

/* --- partitions ----------------------------------------------------------------------------------------- */

static int partition_order(const struct partition *partition, const char *pool, const char *type)
{
    int order = strcmp(partition->pool, pool);
    return order != 0 ? order : strcasecmp(partition->type, type);
}

static void renumber(struct core *core)
{
    size_t index = 0;
    for (struct partition *partition = core->partitions; partition != NULL; partition = partition->next) {
        partition->index = index++;
    }
}

static bool has_pool(const struct core *core, const char *pool)
{
    enum pool_kind kind;
    return pool_kind_of(core, pool, NULL, &kind);
}

static struct partition *partition_need(struct core *core, const struct node *node, const char *type)
{
    struct partition *after = core->partitions;
    while (after != NULL && partition_order(after, node->pool, type) < 0) {
        after = after->next;
    }
    if (after != NULL && partition_order(after, node->pool, type) == 0) {
        assert(after->kind == node->pool_kind);
        return after;
    }
    struct partition *partition = xzalloc(sizeof *partition);
    partition->pool = xstrdup(node->pool);
    partition->type = xstrdup(type);
    partition->kind = node->pool_kind;
    core->pool_count += !has_pool(core, node->pool);
    core->type_count += type[0] != '\0' && !pool_has_type(core, type);
    if (after != NULL) {
        DL_PREPEND_ELEM(core->partitions, after, partition);
    } else {
        DL_APPEND(core->partitions, partition);
    }
    renumber(core);
    return partition;
}

static void partition_drop_if_empty(struct core *core, struct partition *partition)
{
    if (partition->count > 0) {
        return;
    }
    assert(partition->total == 0 && partition->free == 0 && partition->loopback_count == 0);
    DL_DELETE(core->partitions, partition);
    renumber(core);
    core->pool_count -= !has_pool(core, partition->pool);
    core->type_count -= !partition_is_gpuless(partition) && !pool_has_type(core, partition->type);
    free(partition->pool);
    free(partition->type);
    free(partition->capacities);
    free(partition);
}

/* The node's position among the node capacities, existing or new. */
static size_t capacity_position(const struct partition *partition, const struct node *node)
{
    size_t low = 0, high = partition->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(partition->capacities[middle]->node->name, node->name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct capacity *pool_capacity(const struct partition *partition, const struct node *node)
{
    size_t at = capacity_position(partition, node);
    return at < partition->count && partition->capacities[at]->node == node ? partition->capacities[at]
                                                                            : NULL;
}

/* Where the free units of such a partition count. */
static int64_t *free_of(struct core *core, const struct partition *partition)
{
    return partition_is_gpuless(partition) ? &core->free_gpuless : &core->free;
}

static void partition_add(struct core *core, struct partition *partition, struct capacity *capacity)
{
    size_t at = capacity_position(partition, capacity->node);
    partition->capacities =
        xrealloc(partition->capacities, (partition->count + 1) * sizeof *partition->capacities);
    memmove(&partition->capacities[at + 1], &partition->capacities[at],
            (partition->count - at) * sizeof *partition->capacities);
    partition->capacities[at] = capacity;
    partition->count++;
    partition->total += capacity->total;
    partition->free += capacity->free;
    partition->widest = capacity->total > partition->widest ? capacity->total : partition->widest;
    partition->loopback_count += pool_is_loopback(capacity->node);
    *free_of(core, partition) += capacity->free;
}

static int64_t widest_of(const struct partition *partition)
{
    int64_t widest = 0;
    for (size_t i = 0; i < partition->count; i++) {
        widest = partition->capacities[i]->total > widest ? partition->capacities[i]->total : widest;
    }
    return widest;
}

static void partition_remove(struct core *core, struct partition *partition, const struct capacity *capacity)
{
    size_t at = capacity_position(partition, capacity->node);
    assert(at < partition->count && partition->capacities[at] == capacity);
    partition->count--;
    memmove(&partition->capacities[at], &partition->capacities[at + 1],
            (partition->count - at) * sizeof *partition->capacities);
    partition->total -= capacity->total;
    partition->free -= capacity->free;
    partition->loopback_count -= pool_is_loopback(capacity->node);
    *free_of(core, partition) -= capacity->free;
    if (capacity->total == partition->widest) {
        partition->widest = widest_of(partition);
    }
    partition_drop_if_empty(core, partition);
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

static struct capacity *capacity_need(struct core *core, struct node *node, const char *type)
{
    struct capacity *capacity;
    LL_FOREACH (node->capacities, capacity) {
        if (strcasecmp(capacity->partition->type, type) == 0) {
            return capacity;
        }
    }
    capacity = xzalloc(sizeof *capacity);
    capacity->node = node;
    capacity->partition = partition_need(core, node, type);
    LL_APPEND(node->capacities, capacity);
    return capacity;
}

struct capacity *pool_gpuless_capacity(const struct node *node)
{
    struct capacity *capacity = node->capacities;
    while (capacity != NULL && !partition_is_gpuless(capacity->partition)) {
        capacity = capacity->next;
    }
    return capacity;
}

/* As many ranks without GPU as there may be ranks on a node; those that are there hold one each. */
static void offer_gpuless(struct core *core, struct node *node)
{
    struct capacity *capacity = capacity_need(core, node, NO_GPU);
    capacity->total = capacity->free = LIMIT_NODE_DEVICES;
    for (const struct member *member = node->members; member != NULL; member = member->next) {
        capacity->free -= member->device_count == 0;
    }
}

void pool_join(struct core *core, struct node *node)
{
    assert(node->capacities == NULL && node->state != NODE_LOST);
    node->offered_devices = 0;
    for (size_t i = 0; i < node->device_count; i++) {
        struct node_device *device = &node->devices[i];
        if (!device->retired) {
            device->capacity = capacity_need(core, node, device->type);
            device->capacity->total++;
            node->offered_devices++;
            device->capacity->free += device->holder == NULL && device->unavailable == NULL;
            device->capacity->unavailable += device->unavailable != NULL;
        }
    }
    if (node->millicpus > 0) {
        offer_gpuless(core, node);
    }
    for (struct capacity *capacity = node->capacities; capacity != NULL; capacity = capacity->next) {
        partition_add(core, capacity->partition, capacity);
    }
    core->registry++;
}

void pool_leave(struct core *core, struct node *node)
{
    for (size_t i = 0; i < node->device_count; i++) {
        node->devices[i].capacity = NULL;
    }
    for (struct capacity *capacity = node->capacities, *next; capacity != NULL; capacity = next) {
        next = capacity->next;
        partition_remove(core, capacity->partition, capacity);
        free(capacity);
    }
    node->capacities = NULL;
    core->registry++;
}

static void count_free(struct core *core, struct capacity *capacity, int64_t change)
{
    if (capacity != NULL) {
        capacity->free += change;
        capacity->partition->free += change;
        *free_of(core, capacity->partition) += change;
        assert(capacity->free >= 0 && capacity->free <= capacity->total);
    }
}

void pool_take(struct core *core, struct node_device *device, struct member *holder)
{
    assert(device->holder == NULL && holder != NULL);
    device->holder = holder;
    if (device->unavailable == NULL) {
        count_free(core, device->capacity, -1);
    }
}

void pool_give_back(struct core *core, struct node_device *device)
{
    assert(device->holder != NULL);
    device->holder = NULL;
    if (device->unavailable == NULL) {
        count_free(core, device->capacity, 1);
    }
}

static void change_amount(struct core *core, const struct member *member, int64_t change)
{
    struct node *node = member->node;
    node->held = amount_plus(node->held, member_holds(member), change);
    assert(node->held.millicpus >= 0 && node->held.memory_bytes >= 0);
    if (member->device_count == 0) {
        count_free(core, pool_gpuless_capacity(node), -change);
    }
}

void pool_take_amount(struct core *core, const struct member *member)
{
    change_amount(core, member, 1);
}

void pool_give_back_amount(struct core *core, const struct member *member)
{
    change_amount(core, member, -1);
}

void pool_set_unavailable(struct core *core, struct node_device *device, const char *reason)
{
    int64_t change = (reason != NULL) - (device->unavailable != NULL);
    replace_text(&device->unavailable, reason);
    if (device->capacity != NULL) {
        device->capacity->unavailable += change;
    }
    if (device->holder == NULL) {
        count_free(core, device->capacity, -change);
    }
}

bool pool_is_loopback(const struct node *node)
{
    const char *address = node->address;
    return address[0] == '\0' || strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0 ||
           strcasecmp(address, "localhost") == 0;
}

/* --- questions ------------------------------------------------------------------------------------------ */

bool pool_kind_of(const struct core *core, const char *pool, const struct node *except,
                  enum pool_kind *ret_kind)
{
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        bool only = partition->count == 1 && partition->capacities[0]->node == except;
        if (!only && strcmp(partition->pool, pool) == 0) {
            *ret_kind = partition->kind;
            return true;
        }
    }
    return false;
}

/* Whether no earlier partition has this pool or type, so that each counts once. */
static bool first_of_pool(const struct core *core, const struct partition *partition)
{
    return partition == core->partitions || strcmp(partition->prev->pool, partition->pool) != 0;
}

static bool first_of_type(const struct core *core, const struct partition *partition)
{
    if (partition_is_gpuless(partition)) {
        return false;
    }
    for (const struct partition *earlier = core->partitions; earlier != partition; earlier = earlier->next) {
        if (strcasecmp(earlier->type, partition->type) == 0) {
            return false;
        }
    }
    return true;
}

void pool_check(const struct core *core)
{
    size_t pools = 0, types = 0;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        pools += first_of_pool(core, partition);
        types += first_of_type(core, partition);
    }
    assert(pools == core->pool_count && types == core->type_count);
}

bool pool_type_matches(const char *alternatives, const char *type, size_t *ret_rank)
{
    size_t rank = 0, length = strlen(type);
    for (const char *word = alternatives;; word += strcspn(word, "|") + 1, rank++) {
        if (strcspn(word, "|") == length && strncasecmp(word, type, length) == 0) {
            *ret_rank = rank;
            return true;
        }
        if (word[strcspn(word, "|")] == '\0') {
            return false;
        }
    }
}

bool pool_has_type(const struct core *core, const char *type)
{
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (strcasecmp(partition->type, type) == 0) {
            return true;
        }
    }
    return false;
}

static void list_add(struct text *out, const char *name)
{
    text_printf(out, "%s%s", out->length > 0 ? ", " : "", name);
}

void pool_list_names(const struct core *core, struct text *out)
{
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (first_of_pool(core, partition)) {
            list_add(out, partition->pool);
        }
    }
}

void pool_list_types(const struct core *core, struct text *out)
{
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (first_of_type(core, partition)) {
            list_add(out, partition->type);
        }
    }
}

const char *pool_nearest_type(const struct core *core, const char *type)
{
    const char *nearest = NULL;
    unsigned least = (unsigned)strlen(type) / 2 + 1; /* a greater distance is no spelling mistake */
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        unsigned distance = text_distance(partition->type, type);
        if (!partition_is_gpuless(partition) && distance < least) {
            least = distance;
            nearest = partition->type;
        }
    }
    return nearest;
}
