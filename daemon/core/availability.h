/* SPDX-License-Identifier: Apache-2.0 */
/* The availability profile: what will be free, and when. */
#ifndef CORE_AVAILABILITY_H
#define CORE_AVAILABILITY_H

#include <stdbool.h>
#include <stdint.h>

struct attempt;
struct core;
struct fit;
struct partition;
struct search;

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

/* Begins anew: capacity->free_then is what is free, and what is about to be. Counts the devices of an attempt
 * as free, or not. */
void availability_begin(const struct search *search);
void availability_release(const struct attempt *attempt, bool free);

/* A moment to come, and a fit at that time. */
struct prospect {
    int64_t at_ms;
    int64_t
        change_ms; /* when something is expected to end first, and is to be looked at again; NEVER: nothing */
    struct fit *fit; /* the caller's, who frees the shares */
};

/* The earliest moment at which the search, whose view is VIEW_FUTURE, finds a fit, at most an eighth of those
 * that end before it too late; false: none, among the first LIMIT_AVAILABILITY that end. Leaves
 * capacity->free_then as of then. */
bool availability_find(const struct search *search, struct prospect *prospect);

#endif
