/* SPDX-License-Identifier: Apache-2.0 */
/* Logged values, grouped by name and rank: exact figures, and as many points as a drawing needs. */
#ifndef CLI_SERIES_H
#define CLI_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/cli/charts/point.h"
#include "proto/base/err.h"
#include "proto/base/text/table.h"

/* Buckets a series, an even number: more than a terminal of 200 columns has dots across, twice. */
#define SERIES_BUCKETS 1024
/* Series a set: 512 ranks with 16 names each; 48 KiB each once it has as many points as buckets. */
#define SERIES_MOST 8192

struct extent {
    double from, to;
};

/* Points that follow each other, as many in each bucket but the last. */
struct bucket {
    double step, at_ms;     /* of the first finite value */
    double mean, low, high; /* of the finite values */
    int64_t count;          /* finite values; 0: a gap */
};

struct series {
    char *name;
    int64_t rank;
    int64_t points;
    double last;
    double min, max; /* NaN where every value is */
    bool stepped;    /* every point had a step */
    bool last_stepped;
    int64_t last_step;
    struct extent steps, times_ms; /* of the finite values; from > to where none is */
    struct bucket *buckets;
    size_t bucket_count, bucket_room;
    int64_t stride, fill; /* points a bucket, and in the last one */
    char *key;
    UT_hash_handle hh;
};

struct series_set;
struct series_set *series_set_create(void);
void series_set_destroy(struct series_set *set);

static inline void cleanup_series_set(struct series_set **set)
{
    series_set_destroy(*set);
}
#define autoseries __attribute__((cleanup(cleanup_series_set)))

/* Adds a point to its series. ERR_TOO_LARGE when that would be one series too many. */
bool series_set_add(struct series_set *set, const struct point *point, struct err *err);
/* By name, then by rank. */
void series_set_sort(struct series_set *set);
/* NULL where there is none. Borrowed. */
const struct series *series_first(const struct series_set *set);
const struct series *series_next(const struct series *series);

#endif
