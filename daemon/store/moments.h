/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of an attempt say of when things were done with it: moments in microseconds since its
 * submission was received; 0: not known. */
#ifndef STORE_MOMENTS_H
#define STORE_MOMENTS_H

#include "daemon/core/model/rows.h"

/* created_ms is the job's. Attempts of older versions have moments by the wall clock alone. */
struct attempt_timing moments_of_attempt(const struct attempt_row *row, int64_t created_ms);

/* A node's durations as moments. */
struct member_moments {
    int64_t base_us; /* what its durations since the start of the ranks are measured from */
    struct member_timing at;
};
struct member_moments moments_of_member(const struct attempt_timing *attempt, const struct member_row *row);

/* The moment of something on a node, which happened after_us after base_us. */
int64_t moments_behind(int64_t base_us, int64_t after_us);

#endif
