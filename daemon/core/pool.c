/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the groups: for each pool and GPU type the nodes that have it, by name, and the sums of their seats.
 * It promises that the sums agree with the seats after every call, and that groups come by pool and type.
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
    free(group->stocks);
    free(group);
}

/* Where the node is, or belongs, among the stocks. */
static size_t stock_position(const struct group *group, const struct node *node)
{
    size_t low = 0, high = group->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(group->stocks[middle]->node->name, node->name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct stock *pool_stock(const struct group *group, const struct node *node)
{
    struct stock *stock = group->stocks[stock_position(group, node)];
    assert(stock->node == node);
    return stock;
}

static void group_add(struct core *core, struct group *group, struct stock *stock)
{
    size_t at = stock_position(group, stock->node);
    group->stocks = xrealloc(group->stocks, (group->count + 1) * sizeof *group->stocks);
    memmove(&group->stocks[at + 1], &group->stocks[at], (group->count - at) * sizeof *group->stocks);
    group->stocks[at] = stock;
    group->count++;
    group->total += stock->total;
    group->free += stock->free;
    group->widest = stock->total > group->widest ? stock->total : group->widest;
    group->loopback_count += pool_is_loopback(stock->node);
    core->free += stock->free;
}

static int64_t widest_of(const struct group *group)
{
    int64_t widest = 0;
    for (size_t i = 0; i < group->count; i++) {
        widest = group->stocks[i]->total > widest ? group->stocks[i]->total : widest;
    }
    return widest;
}

static void group_remove(struct core *core, struct group *group, const struct stock *stock)
{
    size_t at = stock_position(group, stock->node);
    assert(at < group->count && group->stocks[at] == stock);
    group->count--;
    memmove(&group->stocks[at], &group->stocks[at + 1], (group->count - at) * sizeof *group->stocks);
    group->total -= stock->total;
    group->free -= stock->free;
    group->loopback_count -= pool_is_loopback(stock->node);
    core->free -= stock->free;
    if (stock->total == group->widest) {
        group->widest = widest_of(group);
    }
    group_drop_if_empty(core, group);
}

/* --- nodes ------------------------------------------------------------------------------------------- */

static struct stock *stock_need(struct core *core, struct node *node, const char *type)
{
    struct stock *stock;
    LL_FOREACH (node->stocks, stock) {
        if (strcasecmp(stock->group->type, type) == 0) {
            return stock;
        }
    }
    stock = xzalloc(sizeof *stock);
    stock->node = node;
    stock->group = group_need(core, node, type);
    LL_APPEND(node->stocks, stock);
    return stock;
}

void pool_join(struct core *core, struct node *node)
{
    assert(node->stocks == NULL && node->state != NODE_LOST);
    for (size_t i = 0; i < node->seat_count; i++) {
        struct seat *seat = &node->seats[i];
        if (!seat->retired) {
            seat->stock = stock_need(core, node, seat->type);
            seat->stock->total++;
            seat->stock->free += seat->holder == NULL && seat->unavailable == NULL;
            seat->stock->unavailable += seat->unavailable != NULL;
        }
    }
    for (struct stock *stock = node->stocks; stock != NULL; stock = stock->next) {
        group_add(core, stock->group, stock);
    }
    core->registry++;
}

void pool_leave(struct core *core, struct node *node)
{
    for (size_t i = 0; i < node->seat_count; i++) {
        node->seats[i].stock = NULL;
    }
    for (struct stock *stock = node->stocks, *next; stock != NULL; stock = next) {
        next = stock->next;
        group_remove(core, stock->group, stock);
        free(stock);
    }
    node->stocks = NULL;
    core->registry++;
}

static void count_free(struct core *core, const struct seat *seat, int64_t change)
{
    struct stock *stock = seat->stock;
    if (stock != NULL) {
        stock->free += change;
        stock->group->free += change;
        core->free += change;
        assert(stock->free >= 0 && stock->free <= stock->total);
    }
}

void pool_take(struct core *core, struct seat *seat, struct member *holder)
{
    assert(seat->holder == NULL && holder != NULL);
    seat->holder = holder;
    if (seat->unavailable == NULL) {
        count_free(core, seat, -1);
    }
}

void pool_give_back(struct core *core, struct seat *seat)
{
    assert(seat->holder != NULL);
    seat->holder = NULL;
    if (seat->unavailable == NULL) {
        count_free(core, seat, 1);
    }
}

void pool_set_unavailable(struct core *core, struct seat *seat, const char *reason)
{
    int64_t change = (reason != NULL) - (seat->unavailable != NULL);
    char *copy = reason != NULL ? xstrdup(reason) : NULL;
    free(seat->unavailable);
    seat->unavailable = copy;
    if (seat->stock != NULL) {
        seat->stock->unavailable += change;
    }
    if (seat->holder == NULL) {
        count_free(core, seat, -change);
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
        bool only = group->count == 1 && group->stocks[0]->node == except;
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
