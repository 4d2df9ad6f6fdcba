/* SPDX-License-Identifier: Apache-2.0 */
/* Dots in cells of a terminal: 2 x 4 a cell in braille, or one in ASCII. */
#ifndef CLI_CANVAS_H
#define CLI_CANVAS_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/text.h"

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

#endif
