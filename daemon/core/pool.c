/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the groups: for each pool and GPU type the nodes that have it, by name, and the sums of their devices.
 * It promises that the sums agree with the devices after every call, and that groups come by pool and type.
 * Which node a job gets is left to place.c. */
#include "daemon/core/pool.h"

#include <string.h>
#include <strings.h>

#include "daemon/core/state.h"

/* --- groups ------------------------------------------------------------------------------------------ */

static int group_order(const struct group *group, const char *pool, const char *type)
{
    int order = strcmp(group->pool, pool);
    return order != 0 ? order : strcasecmp(group->type, type);
}

static void renumber(struct core *core)
{
    size_t index = 0;
    for (struct group *group = core->groups; group != NULL; group = group->next) {
        group->index = index++;
    }
}

static struct group *group_need(struct core *core, const struct node *node, const char *type)
{
    struct group *after = core->groups;
    while (after != NULL && group_order(after, node->pool, type) < 0) {
        after = after->next;
    }
    if (after != NULL && group_order(after, node->pool, type) == 0) {
        assert(after->kind == node->pool_kind);
        return after;
    }
    struct group *group = xzalloc(sizeof *group);
    group->pool = xstrdup(node->pool);
    group->type = xstrdup(type);
    group->kind = node->pool_kind;
    if (after != NULL) {
        DL_PREPEND_ELEM(core->groups, after, group);
    } else {
        DL_APPEND(core->groups, group);
    }
    renumber(core);
    return group;
}

static void group_drop_if_empty(struct core *core, struct group *group)
{
    if (group->count > 0) {
        return;
    }
    assert(group->total == 0 && group->free == 0 && group->loopback_count == 0);
    DL_DELETE(core->groups, group);
    renumber(core);
    free(group->pool);
    free(group->type);
    free(group->capacities);
    free(group);
}

/* Where the node is, or belongs, among the node capacities. */
static size_t capacity_position(const struct group *group, const struct node *node)
{
    size_t low = 0, high = group->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(group->capacities[middle]->node->name, node->name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct capacity *pool_capacity(const struct group *group, const struct node *node)
{
    struct capacity *capacity = group->capacities[capacity_position(group, node)];
    assert(capacity->node == node);
    return capacity;
}

static void group_add(struct core *core, struct group *group, struct capacity *capacity)
{
    size_t at = capacity_position(group, capacity->node);
    group->capacities = xrealloc(group->capacities, (group->count + 1) * sizeof *group->capacities);
    memmove(&group->capacities[at + 1], &group->capacities[at],
            (group->count - at) * sizeof *group->capacities);
    group->capacities[at] = capacity;
    group->count++;
    group->total += capacity->total;
    group->free += capacity->free;
    group->widest = capacity->total > group->widest ? capacity->total : group->widest;
    group->loopback_count += pool_is_loopback(capacity->node);
    core->free += capacity->free;
}

static int64_t widest_of(const struct group *group)
{
    int64_t widest = 0;
    for (size_t i = 0; i < group->count; i++) {
        widest = group->capacities[i]->total > widest ? group->capacities[i]->total : widest;
    }
    return widest;
}

static void group_remove(struct core *core, struct group *group, const struct capacity *capacity)
{
    size_t at = capacity_position(group, capacity->node);
    assert(at < group->count && group->capacities[at] == capacity);
    group->count--;
    memmove(&group->capacities[at], &group->capacities[at + 1],
            (group->count - at) * sizeof *group->capacities);
    group->total -= capacity->total;
    group->free -= capacity->free;
    group->loopback_count -= pool_is_loopback(capacity->node);
    core->free -= capacity->free;
    if (capacity->total == group->widest) {
        group->widest = widest_of(group);
    }
    group_drop_if_empty(core, group);
}

/* --- nodes ------------------------------------------------------------------------------------------- */

static struct capacity *capacity_need(struct core *core, struct node *node, const char *type)
{
    struct capacity *capacity;
    LL_FOREACH (node->capacities, capacity) {
        if (strcasecmp(capacity->group->type, type) == 0) {
            return capacity;
        }
    }
    capacity = xzalloc(sizeof *capacity);
    capacity->node = node;
    capacity->group = group_need(core, node, type);
    LL_APPEND(node->capacities, capacity);
    return capacity;
}

void pool_join(struct core *core, struct node *node)
{
    assert(node->capacities == NULL && node->state != NODE_LOST);
    for (size_t i = 0; i < node->device_count; i++) {
        struct node_device *device = &node->devices[i];
        if (!device->retired) {
            device->capacity = capacity_need(core, node, device->type);
            device->capacity->total++;
            device->capacity->free += device->holder == NULL && device->unavailable == NULL;
            device->capacity->unavailable += device->unavailable != NULL;
        }
    }
    for (struct capacity *capacity = node->capacities; capacity != NULL; capacity = capacity->next) {
        group_add(core, capacity->group, capacity);
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
        group_remove(core, capacity->group, capacity);
        free(capacity);
    }
    node->capacities = NULL;
    core->registry++;
}

static void count_free(struct core *core, const struct node_device *device, int64_t change)
{
    struct capacity *capacity = device->capacity;
    if (capacity != NULL) {
        capacity->free += change;
        capacity->group->free += change;
        core->free += change;
        assert(capacity->free >= 0 && capacity->free <= capacity->total);
    }
}

void pool_take(struct core *core, struct node_device *device, struct member *holder)
{
    assert(device->holder == NULL && holder != NULL);
    device->holder = holder;
    if (device->unavailable == NULL) {
        count_free(core, device, -1);
    }
}

void pool_give_back(struct core *core, struct node_device *device)
{
    assert(device->holder != NULL);
    device->holder = NULL;
    if (device->unavailable == NULL) {
        count_free(core, device, 1);
    }
}

void pool_set_unavailable(struct core *core, struct node_device *device, const char *reason)
{
    int64_t change = (reason != NULL) - (device->unavailable != NULL);
    char *copy = reason != NULL ? xstrdup(reason) : NULL;
    free(device->unavailable);
    device->unavailable = copy;
    if (device->capacity != NULL) {
        device->capacity->unavailable += change;
    }
    if (device->holder == NULL) {
        count_free(core, device, -change);
    }
}

bool pool_is_loopback(const struct node *node)
{
    const char *address = node->address;
    return address[0] == '\0' || strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0 ||
           strcasecmp(address, "localhost") == 0;
}

/* --- questions --------------------------------------------------------------------------------------- */

bool pool_kind_of(const struct core *core, const char *pool, const struct node *except,
                  enum pool_kind *ret_kind)
{
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        bool only = group->count == 1 && group->capacities[0]->node == except;
        if (!only && strcmp(group->pool, pool) == 0) {
            *ret_kind = group->kind;
            return true;
        }
    }
    return false;
}

/* Whether no earlier group has this pool or type: so each is counted once. */
static bool first_of_pool(const struct core *core, const struct group *group)
{
    return group == core->groups || strcmp(group->prev->pool, group->pool) != 0;
}

static bool first_of_type(const struct core *core, const struct group *group)
{
    for (const struct group *earlier = core->groups; earlier != group; earlier = earlier->next) {
        if (strcasecmp(earlier->type, group->type) == 0) {
            return false;
        }
    }
    return true;
}

size_t pool_count(const struct core *core)
{
    size_t count = 0;
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        count += first_of_pool(core, group);
    }
    return count;
}

size_t pool_type_count(const struct core *core)
{
    size_t count = 0;
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        count += first_of_type(core, group);
    }
    return count;
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
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        if (strcasecmp(group->type, type) == 0) {
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
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        if (first_of_pool(core, group)) {
            list_add(out, group->pool);
        }
    }
}

void pool_list_types(const struct core *core, struct text *out)
{
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        if (first_of_type(core, group)) {
            list_add(out, group->type);
        }
    }
}

const char *pool_nearest_type(const struct core *core, const char *type)
{
    const char *nearest = NULL;
    unsigned least = (unsigned)strlen(type) / 2 + 1; /* one further off was not meant */
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        unsigned distance = text_distance(group->type, type);
        if (distance < least) {
            least = distance;
            nearest = group->type;
        }
    }
    return nearest;
}
