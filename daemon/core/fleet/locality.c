/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers which nodes have the parts of environments that take long to stage: images, packages, inputs. A
 * node has them once it was ready for an environment with them, until it is lost. What it removes from its
 * cache meanwhile nobody tells, so this is a preference and no promise: staging.c knows which nodes are
 * ready. It is not stored, but load.c takes it from what runs. fit.c prefers these nodes. */
#include "daemon/core/fleet/locality.h"

#include <string.h>

#include "daemon/core/model/state.h"
#include "proto/limits_controller.h"

#define FEW_HOLDERS 8 /* are sooner compared than hashed */

/* --- holders -------------------------------------------------------------------------------------------- */

static struct part_holder *holder_find(const struct environment_part *part, const struct node *node)
{
    struct part_holder *holder = part->holders;
    if (HASH_COUNT(holder) > FEW_HOLDERS) {
        HASH_FIND_PTR(part->holders, &node, holder);
        return holder;
    }
    while (holder != NULL && holder->node != node) {
        holder = holder->hh.next;
    }
    return holder;
}

static void holder_make(struct environment_part *part, struct node *node)
{
    struct part_holder *holder = xzalloc(sizeof *holder);
    holder->part = part;
    holder->node = node;
    HASH_ADD_PTR(part->holders, node, holder);
    DL_APPEND(node->parts, holder);
}

static void holder_free(struct part_holder *holder)
{
    HASH_DEL(holder->part->holders, holder);
    DL_DELETE(holder->node->parts, holder);
    free(holder);
}

/* --- parts ---------------------------------------------------------------------------------------------- */

static void part_free(struct core *core, struct environment_part *part)
{
    assert(part->environment_count == 0 && part->holders == NULL);
    HASH_DEL(core->parts, part);
    free(part->key);
    free(part);
}

static void idle_remove(struct core *core, struct environment_part *part)
{
    DL_DELETE(core->idle_parts, part);
    core->idle_part_count--;
}

static void forget_oldest(struct core *core)
{
    struct environment_part *part = core->idle_parts;
    struct part_holder *holder, *next;
    HASH_ITER (hh, part->holders, holder, next) {
        holder_free(holder);
    }
    idle_remove(core, part);
    part_free(core, part);
}

static struct environment_part *part_join(struct core *core, const char *key, size_t length)
{
    struct environment_part *part;
    HASH_FIND(hh, core->parts, key, length, part);
    if (part == NULL) {
        part = xzalloc(sizeof *part);
        part->key = xstrndup(key, length);
        HASH_ADD_KEYPTR(hh, core->parts, part->key, length, part);
    } else if (part->environment_count == 0) {
        idle_remove(core, part);
    }
    part->environment_count++;
    return part;
}

static void part_leave(struct core *core, struct environment_part *part)
{
    if (--part->environment_count > 0) {
        return;
    }
    if (part->holders == NULL) {
        part_free(core, part); /* nothing to remember */
        return;
    }
    DL_APPEND(core->idle_parts, part);
    if (++core->idle_part_count > LIMIT_PARTS_KEPT) {
        forget_oldest(core);
    }
}

void locality_join(struct core *core, struct environment *environment, const char *keys)
{
    while (keys != NULL && *keys != '\0') {
        size_t length = strcspn(keys, " ");
        size_t size = (environment->part_count + 1) * sizeof(struct environment_part *);
        environment->parts = xrealloc(environment->parts, size);
        environment->parts[environment->part_count++] = part_join(core, keys, length);
        keys += length + (keys[length] == ' ');
    }
}

void locality_leave(struct core *core, struct environment *environment)
{
    for (size_t i = 0; i < environment->part_count; i++) {
        part_leave(core, environment->parts[i]);
    }
    free(environment->parts);
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

void locality_note(const struct environment *environment, struct node *node)
{
    for (size_t i = 0; i < environment->part_count; i++) {
        if (holder_find(environment->parts[i], node) == NULL) {
            holder_make(environment->parts[i], node);
        }
    }
}

void locality_forget_node(struct core *core, struct node *node)
{
    struct part_holder *holder, *next;
    DL_FOREACH_SAFE (node->parts, holder, next) {
        struct environment_part *part = holder->part;
        holder_free(holder);
        if (part->holders == NULL && part->environment_count == 0) {
            idle_remove(core, part);
            part_free(core, part);
        }
    }
}

size_t locality_count(const struct environment *environment, const struct node *node)
{
    size_t count = 0;
    for (size_t i = 0; i < environment->part_count; i++) {
        count += holder_find(environment->parts[i], node) != NULL;
    }
    return count;
}

bool locality_is_known(const struct environment *environment)
{
    size_t i = 0, count = environment != NULL ? environment->part_count : 0;
    while (i < count && environment->parts[i]->holders == NULL) {
        i++;
    }
    return i < count;
}

/* --- end ------------------------------------------------------------------------------------------------ */

void locality_clear(struct core *core)
{
    while (core->idle_parts != NULL) {
        forget_oldest(core);
    }
    assert(core->parts == NULL);
}

/* --- invariants ----------------------------------------------------------------------------------------- */

void locality_check(const struct core *core)
{
    size_t idle = 0, held = 0;
    for (const struct environment_part *part = core->parts; part != NULL; part = part->hh.next) {
        idle += part->environment_count == 0;
        assert(part->environment_count > 0 || part->holders != NULL);
        for (const struct part_holder *holder = part->holders; holder != NULL; holder = holder->hh.next) {
            assert(holder->part == part && holder->node->state != NODE_LOST);
            held++;
        }
    }
    for (size_t i = 0; i < core->node_count; i++) {
        for (const struct part_holder *holder = core->nodes[i]->parts; holder != NULL;
             holder = holder->next) {
            assert(held > 0 && holder->node == core->nodes[i]);
            held--;
        }
    }
    assert(held == 0 && idle == core->idle_part_count && idle <= LIMIT_PARTS_KEPT);
}
