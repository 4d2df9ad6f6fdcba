/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which parts make a complete checkpoint, and which of them stay.
 *
 * A checkpoint is complete when each node of its attempt has a part of it. Parts of steps belong together by
 * their number. A folder that is still has its part from SINCE, when its node first said that the folder
 * holds just this, to SERIAL, when it last said so. Such parts belong together when there was one moment at
 * which all folders held them: it is what a folder shared by all nodes would have held then. So parts of
 * different checkpoints are never put together. The two last complete ones stay. */
#include "daemon/blob/checkpoints/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define NAME_NUMBERS 5
#define KEPT_WHOLE   2 /* complete checkpoints of a job: one more than needed, should pieces be damaged */
#define KEPT_PARTS   4 /* parts of a node that may yet become complete */

void parts_finish(struct parts *parts)
{
    free(parts->items);
    file_names_finish(&parts->names);
}

static bool name_decode(const char *name, struct part_entry *ret_entry)
{
    autofree char *copy = xstrdup(name);
    char *rest = copy;
    int64_t numbers[NAME_NUMBERS];
    for (size_t i = 0; i < NAME_NUMBERS; i++) {
        const char *word = strsep(&rest, ".");
        if (word == NULL || !text_to_int(word, 0, INT64_MAX / 4, &numbers[i])) {
            return false;
        }
    }
    const char *kind = strsep(&rest, ".");
    *ret_entry =
        (struct part_entry){.since = numbers[0],
                            .serial = numbers[1],
                            .part = {.attempt = numbers[2], .nodes = numbers[3], .node_rank = numbers[4]}};
    return kind != NULL && rest != NULL && checkpoint_kind_from_text(kind, &ret_entry->part.kind) &&
           text_to_int(rest, 0, INT64_MAX / 4, &ret_entry->part.number);
}

bool parts_read(const char *folder, struct parts *ret_parts, struct err *err)
{
    *ret_parts = (struct parts){0};
    if (access(folder, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    if (!file_list(folder, &ret_parts->names, err)) {
        return false;
    }
    ret_parts->items = xzalloc((ret_parts->names.count + 1) * sizeof *ret_parts->items);
    for (size_t i = 0; i < ret_parts->names.count; i++) {
        struct part_entry *entry = &ret_parts->items[ret_parts->count];
        if (name_decode(ret_parts->names.items[i], entry)) {
            entry->name = ret_parts->names.items[i];
            ret_parts->count++;
        }
    }
    return true;
}

bool part_is_of(const struct checkpoint_part *a, const struct checkpoint_part *b)
{
    return a->attempt == b->attempt && a->kind == b->kind && a->number == b->number;
}

/* The newest serial of a checkpoint's parts. */
int64_t parts_newest_serial(const struct parts *parts, const struct checkpoint_part *part)
{
    int64_t serial = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part_entry *entry = &parts->items[i];
        serial = part_is_of(&entry->part, part) && entry->serial > serial ? entry->serial : serial;
    }
    return serial;
}

/* When the part was first what its node's folder holds. */
int64_t part_moment(const struct part_entry *entry)
{
    return entry->since > 0 ? entry->since : entry->serial;
}

static bool held_at(const struct part_entry *entry, int64_t moment)
{
    return entry->since > 0 && entry->since <= moment && moment <= entry->serial;
}

/* Whether the entry is its node's part of the checkpoint that became complete with `last`. A node that is
 * empty after all parts of a step takes no part in it. The end of an attempt needs the word of each node:
 * only then do all stand still. serial: the newest of the step's parts. */
static bool belongs(const struct part_entry *entry, const struct part_entry *last, int64_t serial)
{
    const bool empty = entry->part.kind == CHECKPOINT_EMPTY;
    if (entry->part.attempt != last->part.attempt) {
        return false;
    }
    if (last->part.kind == CHECKPOINT_STILL) {
        return entry == last ||
               (entry->part.node_rank != last->part.node_rank &&
                (empty || entry->part.kind == CHECKPOINT_STILL) && held_at(entry, last->since));
    }
    return part_is_of(&entry->part, &last->part) ||
           (empty && last->part.kind == CHECKPOINT_STEP && entry->serial > serial);
}

/* The node's part of the checkpoint; NULL: it has none. */
struct part_entry *parts_of_node(const struct parts *parts, const struct part_entry *last, int64_t serial,
                                 int64_t node_rank)
{
    for (size_t i = 0; i < parts->count; i++) {
        struct part_entry *entry = &parts->items[i];
        if (entry->part.node_rank == node_rank && belongs(entry, last, serial)) {
            return entry;
        }
    }
    return NULL;
}

static bool is_complete(const struct parts *parts, const struct part_entry *last)
{
    const int64_t serial = parts_newest_serial(parts, &last->part), nodes = last->part.nodes;
    bool may_be = last->part.kind != CHECKPOINT_EMPTY &&
                  (last->part.kind != CHECKPOINT_STILL || nodes == 1 || last->since > 0);
    if (!may_be || nodes > (int64_t)parts->count) {
        return false;
    }
    autofree bool *has_part = xzalloc(((size_t)nodes + 1) * sizeof *has_part);
    int64_t found = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part_entry *entry = &parts->items[i];
        int64_t rank = entry->part.node_rank;
        if (rank < nodes && !has_part[rank] && belongs(entry, last, serial)) {
            has_part[rank] = true;
            found++;
        }
    }
    return found == nodes;
}

static bool is_newer(const struct part_entry *a, const struct part_entry *b)
{
    return b == NULL || a->part.attempt > b->part.attempt ||
           (a->part.attempt == b->part.attempt && part_moment(a) > part_moment(b));
}

/* The newest part of the newest complete checkpoint, which is not to be kept yet; NULL: there is none. What
 * was found for one part of a step holds for all: a large gang sends them one after another. */
struct part_entry *parts_whole(const struct parts *parts)
{
    struct part_entry *found = NULL;
    const struct part_entry *step = NULL;
    bool complete = false;
    for (size_t i = 0; i < parts->count; i++) {
        struct part_entry *entry = &parts->items[i];
        if (entry->keep || !is_newer(entry, found)) {
            continue;
        }
        if (step == NULL || !part_is_of(&entry->part, &step->part) || entry->part.nodes != step->part.nodes) {
            complete = is_complete(parts, entry);
            step = entry->part.kind == CHECKPOINT_STEP ? entry : NULL;
        }
        found = complete ? entry : found;
    }
    return found;
}

/* --- what stays ----------------------------------------------------------------------------------------- */

static void keep_parts(const struct parts *parts, const struct part_entry *last)
{
    const int64_t serial = parts_newest_serial(parts, &last->part);
    for (size_t i = 0; i < parts->count; i++) {
        struct part_entry *entry = &parts->items[i];
        entry->keep = entry->keep || belongs(entry, last, serial);
    }
}

static size_t count_later(const struct parts *parts, const struct part_entry *entry)
{
    size_t count = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part_entry *other = &parts->items[i];
        count += other->part.node_rank == entry->part.node_rank && is_newer(other, entry);
    }
    return count;
}

/* Marks what stays: complete checkpoints, and parts after these that may become complete. */
void parts_choose(const struct parts *parts)
{
    const struct part_entry *newest = parts_whole(parts);
    for (size_t i = 0; i < KEPT_WHOLE; i++) {
        const struct part_entry *whole = parts_whole(parts);
        if (whole != NULL) {
            keep_parts(parts, whole);
        }
    }
    for (size_t i = 0; i < parts->count; i++) {
        struct part_entry *entry = &parts->items[i];
        entry->keep = entry->keep || (is_newer(entry, newest) && count_later(parts, entry) < KEPT_PARTS);
    }
}
