/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a raster of dots and its way into text. What the dots mean is left to the callers. */
#include "client/cli/charts/canvas.h"

#include <stdlib.h>
#include <string.h>

#define BRAILLE_ACROSS 2
#define BRAILLE_DOWN   4

void canvas_init(struct canvas *canvas, size_t columns, size_t rows, bool braille)
{
    *canvas = (struct canvas){.columns = columns, .rows = rows, .braille = braille};
    canvas->width = (int)columns * (braille ? BRAILLE_ACROSS : 1);
    canvas->height = (int)rows * (braille ? BRAILLE_DOWN : 1);
    canvas->cells = xzalloc(columns * rows);
}

void canvas_finish(struct canvas *canvas)
{
    free(canvas->cells);
    *canvas = (struct canvas){0};
}

static void set(struct canvas *canvas, int x, int y)
{
    /* the order of the dots in the code points from U+2800 on */
    static const unsigned char bits[BRAILLE_DOWN][BRAILLE_ACROSS] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    size_t column = (size_t)x, row = (size_t)y;
    if (canvas->braille) {
        canvas->cells[row / BRAILLE_DOWN * canvas->columns + column / BRAILLE_ACROSS] |=
            bits[row % BRAILLE_DOWN][column % BRAILLE_ACROSS];
    } else {
        canvas->cells[row * canvas->columns + column] = 1;
    }
}

void canvas_line(struct canvas *canvas, int x, int y, int to_x, int to_y)
{
    int across = abs(to_x - x), down = abs(to_y - y);
    int right = to_x > x ? 1 : -1, below = to_y > y ? 1 : -1;
    int balance = across - down; /* above 0: the line runs above the dot's middle */
    set(canvas, x, y);
    while (x != to_x || y != to_y) {
        int twice = 2 * balance;
        if (twice > -down) {
            balance -= down;
            x += right;
        }
        if (twice < across) {
            balance += across;
            y += below;
        }
        set(canvas, x, y);
    }
}

static void append_cell(const struct canvas *canvas, unsigned char dots, struct text *out)
{
    char braille[] = {'\xe2', (char)(0xa0 + (dots >> 6)), (char)(0x80 + (dots & 0x3f)), '\0'};
    text_append(out, dots == 0 ? " " : canvas->braille ? braille : "*");
}

void canvas_row(const struct canvas *canvas, size_t row, struct text *out)
{
    const unsigned char *cells = canvas->cells + row * canvas->columns;
    size_t used = canvas->columns;
    while (used > 0 && cells[used - 1] == 0) {
        used--;
    }
    for (size_t i = 0; i < used; i++) {
        append_cell(canvas, cells[i], out);
    }
}
