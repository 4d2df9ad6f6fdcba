/* SPDX-License-Identifier: Apache-2.0 */
/* Counts durations in fixed buckets. One thread adds, any thread reads. */
#ifndef DAEMON_WRITER_HISTOGRAM_H
#define DAEMON_WRITER_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

/* Upper bounds in microseconds: from a small request to a search that is given up. */
#define HISTOGRAM_BOUNDS(X)                                                                                  \
    X(100) X(250) X(500) X(1000) X(2500) X(5000) X(10000) X(25000) X(50000) X(100000) X(500000) X(5000000)

enum {
#define X(bound_us) HISTOGRAM_BUCKET_##bound_us,
    HISTOGRAM_BOUNDS(X)
#undef X
        HISTOGRAM_BUCKETS
};

struct histogram {
    _Atomic uint64_t counts[HISTOGRAM_BUCKETS + 1]; /* each of its bucket alone; the last: above all bounds */
    _Atomic uint64_t sum_us;
};

extern const int64_t histogram_bounds_us[HISTOGRAM_BUCKETS];

void histogram_add(struct histogram *histogram, int64_t us);

#endif
