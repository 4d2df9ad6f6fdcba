/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the entries in the order of their rounds, and within a round in the order of arrival. An owner's
 * entry belongs to the round after the one of its entry before. The queue is short: adding looks at all of
 * it. */
#include "daemon/http/base/fair_queue.h"

#include <string.h>

#include <utlist.h>

/* The round after the last one in which the owner has an entry; *ret_count: how many of these wait. */
static int64_t next_round(const struct fair_queue *queue, const char *owner, size_t *ret_count,
                          size_t *ret_all)
{
    const struct fair_entry *entry;
    bool is_served = queue->served != NULL && strcmp(queue->served->owner, owner) == 0;
    int64_t round = queue->round + is_served;
    DL_FOREACH (queue->waiting, entry) {
        bool same = strcmp(entry->owner, owner) == 0;
        *ret_count += same;
        *ret_all += 1;
        round = same ? entry->round + 1 : round;
    }
    return round;
}

size_t fair_queue_waiting(const struct fair_queue *queue)
{
    const struct fair_entry *entry;
    size_t count;
    DL_COUNT(queue->waiting, entry, count);
    return count;
}

static int by_round(const struct fair_entry *one, const struct fair_entry *other)
{
    return one->round <= other->round ? -1 : 1;
}

bool fair_queue_add(struct fair_queue *queue, struct fair_entry *entry, const char *owner)
{
    size_t count = 0, all = 0;
    int64_t round = next_round(queue, owner, &count, &all);
    if (count >= queue->owner_limit || all >= queue->limit) {
        return false;
    }
    entry->owner = owner;
    entry->round = round;
    DL_INSERT_INORDER(queue->waiting, entry, by_round);
    return true;
}

struct fair_entry *fair_queue_serve(struct fair_queue *queue)
{
    struct fair_entry *entry = queue->waiting;
    if (entry == NULL || queue->served != NULL) {
        return NULL;
    }
    DL_DELETE(queue->waiting, entry);
    entry->prev = NULL;
    queue->served = entry;
    queue->round = entry->round;
    return entry;
}

void fair_queue_remove(struct fair_queue *queue, struct fair_entry *entry)
{
    if (queue->served == entry) {
        queue->served = NULL;
    } else if (entry->prev != NULL) {
        DL_DELETE(queue->waiting, entry);
        entry->prev = NULL;
    }
}
