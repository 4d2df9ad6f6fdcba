/* SPDX-License-Identifier: Apache-2.0 */
/* The availability profile: when live attempts are expected to end. */
#ifndef CORE_LIFECYCLE_AVAILABILITY_H
#define CORE_LIFECYCLE_AVAILABILITY_H

#include <stddef.h>
#include <stdint.h>

struct attempt;
struct availability;
struct core;
struct partition;

/* A live attempt is added; starts to give its devices back; has given them back. */
void availability_add(struct core *core, struct attempt *attempt);
void availability_leave(struct core *core, struct attempt *attempt);
void availability_remove(struct core *core, struct attempt *attempt);
void availability_clear(struct core *core);

/* The partition of the attempt's devices; NULL: they are no longer offered. */
const struct partition *availability_partition(const struct attempt *attempt);

/* How long the attempt has held its devices. */
int64_t availability_held_ms(const struct core *core, const struct attempt *attempt);

/* When the attempt is expected to give its devices back, as of now_ms. An attempt that exceeded its estimate
 * is expected to run half as long again. */
int64_t availability_end_ms(const struct core *core, const struct attempt *attempt);

/* Attempts that exceeded their expected run time are expected to end later. */
void availability_refresh(struct core *core);

/* A walk over the attempts that are not stopping, in order of their expected ends, which leaves the heap as
 * it is. */
struct availability_walk {
    const struct availability *availability;
    size_t *places; /* in the heap, of those that may be next: itself a heap; owned */
    size_t count, room;
};
void availability_walk_begin(const struct core *core, struct availability_walk *ret_walk);
/* Which comes next, NULL: none; and the same, taken. */
const struct attempt *availability_walk_peek(const struct availability_walk *walk);
const struct attempt *availability_walk_next(struct availability_walk *walk);
void availability_walk_finish(struct availability_walk *walk);

#endif
