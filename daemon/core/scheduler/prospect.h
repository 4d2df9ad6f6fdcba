/* SPDX-License-Identifier: Apache-2.0 */
/* What will be free, and when a gang will fit. */
#ifndef CORE_SCHEDULER_PROSPECT_H
#define CORE_SCHEDULER_PROSPECT_H

#include <stdbool.h>
#include <stdint.h>

struct attempt;
struct fit;
struct search;

/* Begins anew: capacity->free_then is what is free, and what is about to be. Counts the devices of an attempt
 * as free, or not. */
void prospect_begin(const struct search *search);
void prospect_release(const struct attempt *attempt, bool free);

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
bool prospect_find(const struct search *search, struct prospect *prospect);

#endif
