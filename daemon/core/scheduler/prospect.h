/* SPDX-License-Identifier: Apache-2.0 */
/* What will be free, and when a gang will fit. */
#ifndef CORE_SCHEDULER_PROSPECT_H
#define CORE_SCHEDULER_PROSPECT_H

#include <stdbool.h>
#include <stdint.h>

struct attempt;
struct fit;
struct search;

/* availability_begin sets capacity->free_then to the devices that are free or about to be.
 * availability_release counts the devices of an attempt as free, or not. */
void prospect_begin(const struct search *search);
void prospect_release(const struct attempt *attempt, bool free);

/* A future moment, and a fit at that time. */
struct prospect {
    int64_t at_ms;
    int64_t change_ms; /* of the first expected end: look again then; NEVER: none */
    struct fit *fit;   /* the caller's; the caller frees the shares */
};

/* Finds the earliest moment at which the search, whose view is VIEW_FUTURE, has a fit. The result may be late
 * by at most an eighth of the attempts that end before it. false: no fit among the first LIMIT_AVAILABILITY
 * ends. Leaves capacity->free_then as of that moment. */
bool prospect_find(const struct search *search, struct prospect *prospect);

#endif
