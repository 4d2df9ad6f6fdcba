/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the small pictures of series. It promises that a stretch of points weighs as much as any other of the
 * same length, and that a series which does not change is a line at half height. */
#include "client/cli/charts/spark.h"

#include <math.h>
#include <stddef.h>

#define LEVELS 8
#define MIDDLE 3

struct cell {
    double mean;
    double weight; /* finite values in it; 0: none */
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Sorts the buckets into as many cells as there are, up to so many; returns their number. */
static size_t fill_cells(const struct series *series, size_t most, struct cell cells[SPARK_CELLS])
{
    size_t count = smaller(series->bucket_count, smaller(most, SPARK_CELLS));
    for (size_t i = 0; i < count; i++) {
        cells[i] = (struct cell){0};
    }
    for (size_t i = 0; i < series->bucket_count && count > 0; i++) {
        const struct bucket *bucket = &series->buckets[i];
        struct cell *cell = &cells[i * count / series->bucket_count];
        if (bucket->count > 0) {
            double whole = cell->weight + (double)bucket->count;
            cell->mean = cell->mean * (cell->weight / whole) + bucket->mean * ((double)bucket->count / whole);
            cell->weight = whole;
        }
    }
    return count;
}

/* 0 to LEVELS - 1. Halves, because the distance of two numbers may be more than a number can be. */
static size_t level_of(double value, double low, double high)
{
    double span = high / 2 - low / 2;
    return span > 0 ? (size_t)lround((value / 2 - low / 2) / span * (LEVELS - 1)) : MIDDLE;
}

void spark_draw(const struct series *series, size_t most, bool utf8, struct text *out)
{
    static const char ascii[LEVELS + 1] = "_.:-=+*#";
    struct cell cells[SPARK_CELLS];
    double low = (double)INFINITY, high = -(double)INFINITY;
    size_t count = fill_cells(series, most, cells);
    for (size_t i = 0; i < count; i++) {
        if (cells[i].weight > 0) {
            low = fmin(low, cells[i].mean);
            high = fmax(high, cells[i].mean);
        }
    }
    for (size_t i = 0; i < count && low <= high; i++) {
        size_t level = level_of(cells[i].mean, low, high);
        char block[] = {'\xe2', '\x96', (char)(0x81 + level), '\0'}; /* U+2581 to U+2588 */
        if (cells[i].weight == 0) {
            text_append(out, " ");
        } else if (utf8) {
            text_append(out, block);
        } else {
            text_append_bytes(out, &ascii[level], 1);
        }
    }
}
