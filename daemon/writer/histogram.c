/* SPDX-License-Identifier: Apache-2.0 */
/* Adds with plain loads and stores: a locked instruction would cost more than all the rest, and only one
 * thread writes. */
#include "daemon/writer/histogram.h"

const int64_t histogram_bounds_us[HISTOGRAM_BUCKETS] = {
#define X(bound_us) bound_us,
    HISTOGRAM_BOUNDS(X)
#undef X
};

static void add(_Atomic uint64_t *counter, uint64_t more)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, now + more, memory_order_relaxed);
}

void histogram_add(struct histogram *histogram, int64_t us)
{
    int bucket = 0;
    while (bucket < HISTOGRAM_BUCKETS && us > histogram_bounds_us[bucket]) {
        bucket++;
    }
    add(&histogram->counts[bucket], 1);
    add(&histogram->sum_us, us > 0 ? (uint64_t)us : 0);
}
