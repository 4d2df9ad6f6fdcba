/* SPDX-License-Identifier: Apache-2.0 */
/* Calculates powers of one half and logarithms for fair shares, in fixed point. Errors are below a millionth,
 * and results are identical on every machine. The account files use them. */
#include "daemon/core/quota/decay.h"

#include <assert.h>
#include <stddef.h>

__extension__ typedef unsigned __int128 wide;

#define ONE      ((uint64_t)1 << 62)
#define LN2      ((uint64_t)3196577161300663915) /* ln 2 in units of 1 / ONE */
#define LOG_BITS 24

static uint64_t times(uint64_t a, uint64_t b)
{
    return (uint64_t)((wide)a * b >> 62);
}

/* 2 ^ -(elapsed / half_life) in units of 1 / ONE: a shift for whole half-lives, and for the rest the series
 * of e^-t with t below ln 2. */
static uint64_t factor(int64_t elapsed, int64_t half_life)
{
    assert(elapsed >= 0 && half_life > 0);
    int64_t halves = elapsed / half_life;
    if (halves >= 62) {
        return 0;
    }
    uint64_t t = (uint64_t)((wide)(uint64_t)(elapsed % half_life) * LN2 / (uint64_t)half_life);
    uint64_t term = ONE, even = ONE, odd = 0;
    for (uint64_t i = 1; term > 0; i++) {
        term = times(term, t) / i;
        *(i % 2 == 0 ? &even : &odd) += term;
    }
    return (even - odd) >> halves;
}

int64_t decay_rest(int64_t sum, int64_t elapsed, int64_t half_life)
{
    assert(sum >= 0);
    return (int64_t)(((wide)(uint64_t)sum * factor(elapsed, half_life) + ONE / 2) >> 62);
}

/* The integral of the decay is half_life / ln 2 times the decayed part. */
int64_t decay_gathered(int64_t rate, int64_t elapsed, int64_t half_life)
{
    assert(rate >= 0 && rate <= 1 << 24 && half_life <= (int64_t)1 << 38);
    wide gone = ONE - factor(elapsed, half_life);
    return (int64_t)((gone * (uint64_t)rate * (uint64_t)half_life + LN2 / 2) / LN2);
}

/* Each squaring of the mantissa gives one bit of the logarithm. */
int64_t decay_log2(int64_t value)
{
    assert(value > 0);
    int whole = 63 - __builtin_clzll((uint64_t)value);
    uint64_t mantissa = (uint64_t)value << (62 - whole); /* 1 up to 2, in units of 1 / ONE */
    int64_t log = whole;
    for (int i = 0; i < LOG_BITS; i++) {
        wide square = (wide)mantissa * mantissa >> 62;
        int bit = square >= 2 * (wide)ONE;
        mantissa = (uint64_t)(square >> bit);
        log = 2 * log + bit;
    }
    return log;
}
