/* SPDX-License-Identifier: Apache-2.0 */
/* Series as people see them: a table, or charts. */
#ifndef CLI_FIGURES_H
#define CLI_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

#include "client/cli/charts/series.h"
#include "proto/base/text/text.h"

#define SPARK_CELLS 24

/* Appends at most `most` characters, of SPARK_CELLS, from the oldest point to the newest, their height
 * between the lowest and the highest of them; a stretch without a finite value is a space. Nothing where no
 * value is finite. */
void spark_draw(const struct series *series, size_t most, bool utf8, struct text *out);

/* Appends a row for each series of a sorted set; wide: with all digits. width as for grid_print. */
void figures_table(const struct series_set *set, bool wide, size_t width, struct text *out);
/* Appends a chart for each name of a sorted set, of the first series that has it, or of each. */
void figures_charts(const struct series_set *set, bool all_ranks, size_t width, struct text *out);

#endif
