/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of things that are served one at a time, in rounds: each owner has one of them served in a round,
 * so one with many delays an owner of few by one. */
#ifndef HTTP_FAIR_QUEUE_H
#define HTTP_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embed it, zeroed, in what waits. */
struct fair_entry {
    const char *owner; /* borrowed until the entry is removed */
    int64_t round;
    struct fair_entry *prev, *next; /* prev NULL: it does not wait */
};

/* Zeroed at first; the limits are set. */
struct fair_queue {
    size_t limit, owner_limit;       /* entries that may wait: all, and those of an owner */
    struct fair_entry *waiting;      /* in the order in which they are served */
    const struct fair_entry *served; /* NULL: none is */
    int64_t round;                   /* of what was served last */
};

size_t fair_queue_waiting(const struct fair_queue *queue);
/* false: as many wait as may. */
bool fair_queue_add(struct fair_queue *queue, struct fair_entry *entry, const char *owner);
/* The next one, which is served until it is removed; NULL: none waits, or another one is served. */
struct fair_entry *fair_queue_serve(struct fair_queue *queue);
/* Removes an entry whether it waits, is served or is not there. */
void fair_queue_remove(struct fair_queue *queue, struct fair_entry *entry);

#endif
