/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines in a heap, each with a function to call. */
#ifndef HTTP_DEADLINE_H
#define HTTP_DEADLINE_H

#include <stddef.h>
#include <stdint.h>

/* Embedded in whatever waits. due and closure are set once by its owner; the rest is the heap's. Starts as
 * {0}. */
struct deadline {
    void (*due)(struct deadline *deadline); /* called after it was taken out of the heap */
    void *closure;
    int64_t at_ms; /* CLOCK_BOOTTIME */
    size_t place;  /* in the heap, counted from 1; 0: not set */
};

struct deadlines;

struct deadlines *deadlines_create(void);
void deadlines_destroy(struct deadlines *deadlines);

/* Sets it, or moves it when it is set already. */
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, int64_t at_ms);
/* Takes it out; nothing happens when it is not set. */
void deadline_clear(struct deadlines *deadlines, struct deadline *deadline);

/* The earliest moment; INT64_MAX when nothing is set. */
int64_t deadlines_next(const struct deadlines *deadlines);
/* Calls the deadlines that are due at now_ms, the earliest first. Deadlines that are set meanwhile for later
 * wait. */
void deadlines_run(struct deadlines *deadlines, int64_t now_ms);
/* Calls everything that is set now as if it were due. */
void deadlines_run_all(struct deadlines *deadlines);

#endif
