/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the page of a job's metrics: which figures stand in the table, how wide its trends are, and of which
 * ranks there are charts. It promises lines that fit the terminal. */
#include "client/cli/charts/figures.h"

#include <string.h>

#include "client/cli/charts/curve.h"
#include "client/cli/show/print.h"
#include "client/cli/charts/spark.h"
#include "proto/base/cleanup.h"

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
