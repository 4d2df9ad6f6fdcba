/* SPDX-License-Identifier: Apache-2.0 */
/* A chart of one series for the terminal. */
#ifndef CLI_CURVE_H
#define CLI_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include "client/cli/charts/series.h"
#include "proto/base/text.h"

struct curve_look {
    size_t width; /* of a line */
    size_t rows;  /* of the chart, without title and axis */
    bool utf8;
};

/* Appends a title, the chart and its axis. ranks is how many logged the name. */
void curve_draw(const struct series *series, size_t ranks, const struct curve_look *look, struct text *out);

#endif
