/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that nodes of the user's own instance still run when their agents are gone. */
#ifndef CLI_ORPHANS_H
#define CLI_ORPHANS_H

#include <stdint.h>

/* Kills the shims of STATE/node<number> and their processes at once; returns the number of processes. */
int64_t orphans_end(const char *state, int64_t number);

#endif
