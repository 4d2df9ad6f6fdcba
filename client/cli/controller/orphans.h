/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes of one's own instance still run when nobody is there to end it. */
#ifndef CLI_ORPHANS_H
#define CLI_ORPHANS_H

#include <stdint.h>

/* Kills the shims of STATE/node<number>, and what they run, at once. How many processes that were. */
int64_t orphans_end(const char *state, int64_t number);

#endif
