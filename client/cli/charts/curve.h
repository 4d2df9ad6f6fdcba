/* SPDX-License-Identifier: Apache-2.0 */
/* A chart of one series for the terminal. */
#ifndef CLI_CURVE_H
#define CLI_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include "client/cli/charts/series.h"
#include "proto/base/text/text.h"

/* Dots in cells of a terminal: 2 x 4 a cell in braille, or one in ASCII. */
struct canvas {
    int width, height; /* in dots; 0, 0 is at the upper left */
    size_t columns, rows;
    bool braille;
    unsigned char *cells; /* a bit for each dot */
};

void canvas_init(struct canvas *canvas, size_t columns, size_t rows, bool braille);
void canvas_finish(struct canvas *canvas);
/* Sets the dots from one to the other, both included; both lie inside. */
void canvas_line(struct canvas *canvas, int x, int y, int to_x, int to_y);
/* Appends one row without the blanks at its end. */
void canvas_row(const struct canvas *canvas, size_t row, struct text *out);

struct curve_look {
    size_t width; /* of a line */
    size_t rows;  /* of the chart, without title and axis */
    bool utf8;
};

/* Appends a title, the chart and its axis. ranks is how many logged the name. */
void curve_draw(const struct series *series, size_t ranks, const struct curve_look *look, struct text *out);

#endif
