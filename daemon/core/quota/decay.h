/* SPDX-License-Identifier: Apache-2.0 */
/* Half-lives in whole numbers, so that every machine gets equal results: the rest of a sum, the sum of a
 * steady rate, and logarithms of ratios. */
#ifndef CORE_QUOTA_DECAY_H
#define CORE_QUOTA_DECAY_H

#include <stdint.h>

/* The rest of a sum after the elapsed time; both times in one unit, elapsed >= 0. sum is up to 2^60. */
int64_t decay_rest(int64_t sum, int64_t elapsed, int64_t half_life);

/* The sum of a steady rate per unit of time, each part decayed since it was added. rate is up to 2^24,
 * half_life up to 2^38. */
int64_t decay_gathered(int64_t rate, int64_t elapsed, int64_t half_life);

/* The base-two logarithm in units of 1 / DECAY_LOG_ONE; value must be above 0. */
#define DECAY_LOG_ONE (1 << 24)
int64_t decay_log2(int64_t value);

#endif
