/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers by xorshift64: the same for the same seed on every machine. */
#include "tests/trace/harness/chance.h"

uint64_t chance_below(struct chance *chance, uint64_t limit)
{
    chance->state ^= chance->state << 13;
    chance->state ^= chance->state >> 7;
    chance->state ^= chance->state << 17;
    return (chance->state >> 11) % limit;
}

bool chance_of(struct chance *chance, unsigned percent)
{
    return chance_below(chance, 100) < percent;
}
