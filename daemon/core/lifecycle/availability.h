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

/* A live attempt comes; is about to give its devices back; has given them back. */
void availability_add(struct core *core, struct attempt *attempt);
void availability_leave(struct core *core, struct attempt *attempt);
void availability_remove(struct core *core, struct attempt *attempt);
void availability_clear(struct core *core);

/* Where the devices of an attempt are; NULL: they are not offered any more. */
const struct partition *availability_partition(const struct attempt *attempt);

/* For how long it has had its devices. */
int64_t availability_held_ms(const struct core *core, const struct attempt *attempt);

/* When it is expected to give them back, by now_ms. One that has outrun its estimate is expected to run half
 * as long again. */
int64_t availability_end_ms(const struct core *core, const struct attempt *attempt);

/* Those that have outrun what was expected are expected to end later. */
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
