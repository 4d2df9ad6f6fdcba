/* SPDX-License-Identifier: Apache-2.0 */
/* A generator of chance that gives the same for the same seed. */
#ifndef TRACE_CHANCE_H
#define TRACE_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

struct chance {
    uint64_t state; /* not 0 */
};

/* 0 to below the limit. */
uint64_t chance_below(struct chance *chance, uint64_t limit);
bool chance_of(struct chance *chance, unsigned percent);

#endif
