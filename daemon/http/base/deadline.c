/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps deadlines in a heap. Setting, moving and clearing one costs the logarithm of their number, so ten
 * thousand parked polls are no burden. The caller passes the time. */
#include "daemon/http/base/deadline.h"

#include <assert.h>
#include <stdlib.h>

#include "proto/base/text/text.h"

struct deadlines {
    struct deadline **items; /* items[0] is unused: the children of i are 2i and 2i+1 */
    size_t count;
    size_t room;
};

struct deadlines *deadlines_create(void)
{
    struct deadlines *deadlines = xzalloc(sizeof *deadlines);
    deadlines->room = 64;
    deadlines->items = xzalloc(deadlines->room * sizeof(struct deadline *));
    return deadlines;
}

void deadlines_destroy(struct deadlines *deadlines)
{
    if (deadlines != NULL) {
        free(deadlines->items);
        free(deadlines);
    }
}

static void put(struct deadlines *deadlines, size_t place, struct deadline *deadline)
{
    deadlines->items[place] = deadline;
    deadline->place = place;
}

static void sift_up(struct deadlines *deadlines, struct deadline *deadline)
{
    size_t place = deadline->place;
    while (place > 1 && deadlines->items[place / 2]->at_ms > deadline->at_ms) {
        put(deadlines, place, deadlines->items[place / 2]);
        place /= 2;
    }
    put(deadlines, place, deadline);
}

static void sift_down(struct deadlines *deadlines, struct deadline *deadline)
{
    size_t place = deadline->place;
    while (2 * place <= deadlines->count) {
        size_t child = 2 * place;
        if (child < deadlines->count && deadlines->items[child + 1]->at_ms < deadlines->items[child]->at_ms) {
            child++;
        }
        if (deadlines->items[child]->at_ms >= deadline->at_ms) {
            break;
        }
        put(deadlines, place, deadlines->items[child]);
        place = child;
    }
    put(deadlines, place, deadline);
}

void deadline_set(struct deadlines *deadlines, struct deadline *deadline, int64_t at_ms)
{
    deadline->at_ms = at_ms;
    if (deadline->place == 0) {
        deadlines->count++;
        if (deadlines->count == deadlines->room) {
            deadlines->room *= 2;
            deadlines->items = xrealloc(deadlines->items, deadlines->room * sizeof(struct deadline *));
        }
        put(deadlines, deadlines->count, deadline);
    }
    sift_up(deadlines, deadline);
    sift_down(deadlines, deadline);
}

void deadline_clear(struct deadlines *deadlines, struct deadline *deadline)
{
    if (deadline->place == 0) {
        return;
    }
    size_t place = deadline->place;
    assert(deadlines->items[place] == deadline);
    struct deadline *last = deadlines->items[deadlines->count--];
    deadline->place = 0;
    if (last != deadline) {
        put(deadlines, place, last);
        sift_up(deadlines, last);
        sift_down(deadlines, last);
    }
}

int64_t deadlines_next(const struct deadlines *deadlines)
{
    return deadlines->count == 0 ? INT64_MAX : deadlines->items[1]->at_ms;
}

void deadlines_run(struct deadlines *deadlines, int64_t now_ms)
{
    while (deadlines_next(deadlines) <= now_ms) {
        struct deadline *first = deadlines->items[1];
        deadline_clear(deadlines, first);
        first->due(first);
    }
}

void deadlines_run_all(struct deadlines *deadlines)
{
    for (size_t left = deadlines->count; left > 0 && deadlines->count > 0; left--) {
        struct deadline *first = deadlines->items[1];
        deadline_clear(deadlines, first);
        first->due(first);
    }
}
