/* SPDX-License-Identifier: Apache-2.0 */
/* The horizon: what will be free, and when. */
#ifndef CORE_HORIZON_H
#define CORE_HORIZON_H

#include <stdbool.h>
#include <stdint.h>

struct attempt;
struct core;
struct fit;
struct group;
struct search;

/* Where the devices of an attempt are; NULL: they are not offered any more. */
const struct group *horizon_group(const struct attempt *attempt);

/* For how long it has had its devices. */
int64_t horizon_held_ms(const struct core *core, const struct attempt *attempt);

/* When it is expected to give its devices back. One that has outrun its estimate is expected to go on for
 * half as long as it ran. */
int64_t horizon_end_ms(const struct core *core, const struct attempt *attempt);

/* Begins anew: stock->coming is what is free. And counts the devices of an attempt as free, or not. */
void horizon_begin(const struct search *search);
void horizon_release(const struct attempt *attempt, bool free);

/* The earliest moment at which the search, whose view is VIEW_COMING, finds a fit, at most an eighth of those
 * that end before it too late; false: never. Leaves stock->coming as of then. *ret_change_ms is when
 * something is expected to end first, and is to be looked at again; NEVER: nothing is. The caller frees the
 * shares. */
bool horizon_find(const struct search *search, int64_t *ret_at_ms, int64_t *ret_change_ms,
                  struct fit *ret_fit);

#endif
