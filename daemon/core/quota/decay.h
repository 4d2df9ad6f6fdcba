/* SPDX-License-Identifier: Apache-2.0 */
/* Reckoning with half-lives in whole numbers, so that every machine finds the same: what is left of a sum,
 * what a steady rate adds up to, and logarithms of ratios. */
#ifndef CORE_QUOTA_DECAY_H
#define CORE_QUOTA_DECAY_H

#include <stdint.h>

/* What is left of a sum after so long; both times in one unit, elapsed 0 and more. The sum is up to 2^60. */
int64_t decay_rest(int64_t sum, int64_t elapsed, int64_t half_life);

/* What a rate of so many a unit of time has added up to, each part decayed since it was added. rate is up to
 * 2^24, half_life up to 2^38. */
int64_t decay_gathered(int64_t rate, int64_t elapsed, int64_t half_life);

/* The logarithm to base two in units of 1 / DECAY_LOG_ONE; value above 0. */
#define DECAY_LOG_ONE (1 << 24)
int64_t decay_log2(int64_t value);

#endif
