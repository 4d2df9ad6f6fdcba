/* SPDX-License-Identifier: Apache-2.0 */
/* Groups points into series, and thins them. It promises that count, last, minimum and maximum are exact
 * however many points come, and that memory is bounded. Thinning treats all points of a series alike: when
 * the buckets are full, neighbours are joined, and each holds twice as many points from then on. */
#include "client/cli/charts/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

struct series_set {
    struct series *all; /* uthash, by key */
};

struct series_set *series_set_create(void)
{
    return xzalloc(sizeof(struct series_set));
}

static void series_destroy(struct series *series)
{
    free(series->name);
    free(series->key);
    free(series->buckets);
    free(series);
}

void series_set_destroy(struct series_set *set)
{
    if (set == NULL) {
        return;
    }
    struct series *series, *next;
    HASH_ITER (hh, set->all, series, next) {
        HASH_DEL(set->all, series);
        series_destroy(series);
    }
    free(set);
}

/* --- thinning --- */

/* Adds what b holds to a. A mean is a sum of shares, so that no sum can overflow. */
static void join(struct bucket *a, const struct bucket *b)
{
    if (b->count == 0) {
        return;
    }
    if (a->count == 0) {
        *a = *b;
        return;
    }
    double whole = (double)(a->count + b->count);
    a->mean = a->mean * ((double)a->count / whole) + b->mean * ((double)b->count / whole);
    a->low = b->low < a->low ? b->low : a->low;
    a->high = b->high > a->high ? b->high : a->high;
    a->count += b->count;
}

static void halve(struct series *series)
{
    for (size_t i = 0; i < SERIES_BUCKETS / 2; i++) {
        series->buckets[i] = series->buckets[2 * i];
        join(&series->buckets[i], &series->buckets[2 * i + 1]);
    }
    series->bucket_count = SERIES_BUCKETS / 2;
    series->stride *= 2;
}

/* The bucket that takes the next point. */
static struct bucket *open_bucket(struct series *series)
{
    if (series->bucket_count > 0 && series->fill < series->stride) {
        return &series->buckets[series->bucket_count - 1];
    }
    if (series->bucket_count == SERIES_BUCKETS) {
        halve(series);
    }
    if (series->bucket_count == series->bucket_room) {
        series->bucket_room = series->bucket_room > 0 ? 2 * series->bucket_room : 8;
        series->buckets = xrealloc(series->buckets, series->bucket_room * sizeof series->buckets[0]);
    }
    series->fill = 0;
    struct bucket *bucket = &series->buckets[series->bucket_count++];
    *bucket = (struct bucket){0};
    return bucket;
}

/* --- points --- */

static void widen(struct extent *extent, double to_hold)
{
    extent->from = fmin(extent->from, to_hold);
    extent->to = fmax(extent->to, to_hold);
}

static void take_finite(struct series *series, struct bucket *bucket, const struct point *point)
{
    struct bucket single = {.step = (double)point->step,
                            .at_ms = (double)point->at_ms,
                            .mean = point->value,
                            .low = point->value,
                            .high = point->value,
                            .count = 1};
    join(bucket, &single);
    widen(&series->steps, single.step);
    widen(&series->times_ms, single.at_ms);
}

static void take(struct series *series, const struct point *point)
{
    double value = point->value;
    struct bucket *bucket = open_bucket(series);
    if (isfinite(value)) {
        take_finite(series, bucket, point);
    }
    series->fill++;
    series->points++;
    series->last = value;
    series->stepped = series->stepped && point->stepped;
    series->last_stepped = point->stepped;
    series->last_step = point->step;
    series->min = fmin(series->min, value); /* both ignore a NaN beside a number */
    series->max = fmax(series->max, value);
}

static struct series *make(struct series_set *set, const struct point *point, const char *key)
{
    struct series *series = xzalloc(sizeof *series);
    series->name = xstrdup(point->name);
    series->key = xstrdup(key);
    series->rank = point->rank;
    series->stepped = true;
    series->stride = 1;
    series->last = series->min = series->max = (double)NAN;
    series->steps = series->times_ms = (struct extent){(double)INFINITY, -(double)INFINITY};
    HASH_ADD_KEYPTR(hh, set->all, series->key, strlen(series->key), series);
    return series;
}

bool series_set_add(struct series_set *set, const struct point *point, struct err *err)
{
    autofree char *key = xprintf("%lld %s", (long long)point->rank, point->name);
    struct series *series;
    HASH_FIND_STR(set->all, key, series);
    if (series == NULL && HASH_COUNT(set->all) >= SERIES_MOST) {
        err_set(err, ERR_TOO_LARGE, "there are more than %d series of points", SERIES_MOST);
        return err_hint(err, "choose with --name or --rank, or take the points with -o jsonl");
    }
    take(series != NULL ? series : make(set, point, key), point);
    return true;
}

static int compare(const struct series *a, const struct series *b)
{
    int names = strcmp(a->name, b->name);
    return names != 0 ? names : (a->rank > b->rank) - (a->rank < b->rank);
}

void series_set_sort(struct series_set *set)
{
    HASH_SORT(set->all, compare);
}

const struct series *series_first(const struct series_set *set)
{
    return set->all;
}

const struct series *series_next(const struct series *series)
{
    return series->hh.next;
}
