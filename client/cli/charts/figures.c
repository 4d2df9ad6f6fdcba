/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the page of a job's metrics: the figures and the trend of each series in a table, and charts. It
 * promises lines that fit the terminal. In a trend a stretch of points weighs as much as any other of the
 * same length, and a series that does not change is a line at half height. curve.c draws the charts. */
#include "client/cli/charts/figures.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "client/cli/charts/curve.h"
#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"

/* --- trends --- */

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

#define CHART_WIDTH 72 /* where stdout is no terminal */
#define CHART_ROWS  12
#define DIGITS      6
#define DIGITS_WIDE 17 /* what a double holds */

/* --- the table --- */

#define TREND "TREND"

static const struct column columns[] = {{.title = "NAME"},      {.title = "RANK"}, {.title = "POINTS"},
                                        {.title = "LAST STEP"}, {.title = "LAST"}, {.title = "MIN"},
                                        {.title = "MAX"},       {.title = TREND}};

static void add_number(struct grid *grid, double value, int digits)
{
    char cell[32];
    print_number(value, digits, cell);
    grid_add(grid, cell);
}

static void add_row(struct grid *grid, const struct series *series, int digits, size_t cells)
{
    autotext struct text spark = {0};
    spark_draw(series, cells, print_utf8(), &spark);
    grid_add(grid, series->name);
    if (series->rank >= 0) {
        grid_addf(grid, "%lld", (long long)series->rank);
    } else {
        grid_add(grid, NULL);
    }
    grid_addf(grid, "%lld", (long long)series->points);
    if (series->last_stepped) {
        grid_addf(grid, "%lld", (long long)series->last_step);
    } else {
        grid_add(grid, NULL);
    }
    add_number(grid, series->last, digits);
    add_number(grid, series->min, digits);
    add_number(grid, series->max, digits);
    grid_add(grid, spark.bytes);
}

static struct grid *make_grid(const struct series_set *set, bool wide, size_t cells)
{
    struct grid *grid = grid_create(columns, sizeof columns / sizeof columns[0]);
    for (const struct series *series = series_first(set); series != NULL; series = series_next(series)) {
        add_row(grid, series, wide ? DIGITS_WIDE : DIGITS, cells);
    }
    return grid;
}

/* How many cells of a trend a line has room for; its last ones would be cut off, and they matter most. */
static size_t trend_cells(const struct series_set *set, size_t width)
{
    autogrid struct grid *grid = make_grid(set, false, 0);
    size_t others = grid_width(grid, false) - strlen(TREND);
    return width == 0 ? SPARK_CELLS : width > others ? width - others : 0;
}

void figures_table(const struct series_set *set, bool wide, size_t width, struct text *out)
{
    size_t cells = wide ? SPARK_CELLS : trend_cells(set, width);
    autogrid struct grid *grid = make_grid(set, wide, cells);
    grid_print(grid, wide, width, print_colour(), out);
}

/* --- charts --- */

/* How many series have the name of this one; they follow each other. */
static size_t count_ranks(const struct series *first)
{
    size_t count = 0;
    for (const struct series *series = first; series != NULL && strcmp(series->name, first->name) == 0;
         series = series_next(series)) {
        count++;
    }
    return count;
}

void figures_charts(const struct series_set *set, bool all_ranks, size_t width, struct text *out)
{
    struct curve_look look = {
        .width = width > 0 ? width : CHART_WIDTH, .rows = CHART_ROWS, .utf8 = print_utf8()};
    const struct series *before = NULL;
    for (const struct series *series = series_first(set); series != NULL; series = series_next(series)) {
        bool new_name = before == NULL || strcmp(before->name, series->name) != 0;
        before = series;
        if (new_name || all_ranks) {
            text_append(out, out->length > 0 ? "\n" : "");
            curve_draw(series, all_ranks ? 1 : count_ranks(series), &look, out);
        }
    }
}
