/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the chart of one series: the line on a raster of dots, and the title and axes around it. It promises
 * that every finite value lies inside the chart, that a peak is seen even where its neighbours were joined
 * with it, and that the line breaks at values that are not finite and where steps begin anew. scale.c chooses
 * round numbers. */
#include "client/cli/charts/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/charts/scale.h"
#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"

/* --- dots --- */

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

/* --- the chart --- */

#define LEAST_COLUMNS 8 /* of the chart, however narrow the terminal */
#define ROWS_A_MARK   2
#define TITLE_DIGITS  6
#define LABEL_BYTES   32

/* What lines a chart is made of. */
struct strokes {
    const char *side, *mark, *corner, *bottom;
};

static const struct strokes fine = {"\xe2\x94\x82", "\xe2\x94\xa4", "\xe2\x94\x94", "\xe2\x94\x80"};
static const struct strokes coarse = {"|", "+", "+", "-"};

struct chart {
    const struct series *series;
    const struct strokes *strokes;
    struct scale scale;
    struct extent x; /* steps, or wall clock in ms */
    struct canvas canvas;
    size_t margin; /* characters left of the axis */
};

/* Several points that are all at one step, as MLflow has those without any, lie over the time. */
static bool is_over_steps(const struct series *series)
{
    return series->stepped && (series->points == 1 || series->steps.from != series->steps.to);
}

static double x_of(const struct series *series, const struct bucket *bucket)
{
    return is_over_steps(series) ? bucket->step : bucket->at_ms;
}

/* Finds what the y axis must hold; false when no value is finite. */
static bool find_values(const struct series *series, struct extent *ret_values)
{
    struct extent values = {(double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < series->bucket_count; i++) {
        if (series->buckets[i].count > 0) {
            values.from = fmin(values.from, series->buckets[i].low);
            values.to = fmax(values.to, series->buckets[i].high);
        }
    }
    *ret_values = values;
    return values.from <= values.to;
}

/* --- the line --- */

static int across(const struct chart *chart, double x)
{
    double span = chart->x.to - chart->x.from;
    return span > 0 ? (int)lround((x - chart->x.from) / span * (chart->canvas.width - 1)) : 0;
}

static int down(const struct chart *chart, double value)
{
    return (int)lround((1 - scale_place(&chart->scale, value)) * (chart->canvas.height - 1));
}

static void draw_line(struct chart *chart)
{
    const struct bucket *before = NULL; /* that the line comes from */
    for (size_t i = 0; i < chart->series->bucket_count; i++) {
        const struct bucket *bucket = &chart->series->buckets[i];
        if (bucket->count == 0) {
            before = NULL;
            continue;
        }
        double x = x_of(chart->series, bucket);
        int column = across(chart, x);
        canvas_line(&chart->canvas, column, down(chart, bucket->high), column, down(chart, bucket->low));
        if (before != NULL && x_of(chart->series, before) <= x) {
            canvas_line(&chart->canvas, across(chart, x_of(chart->series, before)), down(chart, before->mean),
                        column, down(chart, bucket->mean));
        }
        before = bucket;
    }
}

/* --- around it --- */

static void append_title(const struct series *series, size_t ranks, size_t width, struct text *out)
{
    autotext struct text title = {0};
    char last[32];
    print_number(series->last, TITLE_DIGITS, last);
    text_append(&title, series->name);
    if (series->rank >= 0) {
        text_printf(&title, ", rank %lld", (long long)series->rank);
    }
    if (ranks > 1) {
        text_printf(&title, " (1 of %zu ranks)", ranks);
    }
    text_printf(&title, ": %s", last);
    if (series->last_stepped) {
        text_printf(&title, " at step %lld", (long long)series->last_step);
    }
    text_printf(&title, ", %lld point%s", (long long)series->points, series->points == 1 ? "" : "s");
    print_disarm(title.bytes);
    text_append_bytes(out, title.bytes, print_cut(title.bytes, width));
    text_append(out, "\n");
}

/* The label of the mark in that row; false where there is none. */
static bool label_of(const struct chart *chart, size_t row, char out[LABEL_BYTES])
{
    int dots_a_row = chart->canvas.height / (int)chart->canvas.rows;
    for (int i = 0; i < chart->scale.marks; i++) {
        double mark = scale_mark(&chart->scale, i);
        if ((size_t)(down(chart, mark) / dots_a_row) == row) {
            scale_label(&chart->scale, mark, out);
            return true;
        }
    }
    out[0] = '\0';
    return false;
}

static size_t widest_label(const struct scale *scale)
{
    size_t widest = 0;
    for (int i = 0; i < scale->marks; i++) {
        char label[LABEL_BYTES];
        scale_label(scale, scale_mark(scale, i), label);
        widest = strlen(label) > widest ? strlen(label) : widest;
    }
    return widest;
}

static void append_rows(const struct chart *chart, struct text *out)
{
    for (size_t row = 0; row < chart->canvas.rows; row++) {
        char label[LABEL_BYTES];
        bool marked = label_of(chart, row, label);
        text_printf(out, "%*s %s", (int)chart->margin, label,
                    marked ? chart->strokes->mark : chart->strokes->side);
        canvas_row(&chart->canvas, row, out);
        text_append(out, "\n");
    }
    text_printf(out, "%*s %s", (int)chart->margin, "", chart->strokes->corner);
    for (size_t i = 0; i < chart->canvas.columns; i++) {
        text_append(out, chart->strokes->bottom);
    }
    text_append(out, "\n");
}

static void x_label(const struct chart *chart, double x, const char *unit, char out[LABEL_BYTES + 8])
{
    if (is_over_steps(chart->series)) {
        snprintf(out, LABEL_BYTES + 8, "%s%.0f", unit, x);
    } else {
        print_time((int64_t)x, out);
    }
}

/* The ends of the x axis; the last one only where it has room. */
static void append_ends(const struct chart *chart, struct text *out)
{
    char first[LABEL_BYTES + 8], last[LABEL_BYTES + 8];
    x_label(chart, chart->x.from, "step ", first);
    x_label(chart, chart->x.to, "", last);
    text_printf(out, "%*s%s", (int)chart->margin + 2, "", first);
    size_t used = strlen(first) + 1 + strlen(last);
    if (chart->x.to > chart->x.from && used <= chart->canvas.columns) {
        text_printf(out, "%*s", (int)(chart->canvas.columns - strlen(first)), last);
    }
    text_append(out, "\n");
}

void curve_draw(const struct series *series, size_t ranks, const struct curve_look *look, struct text *out)
{
    struct chart chart = {.series = series,
                          .strokes = look->utf8 ? &fine : &coarse,
                          .x = is_over_steps(series) ? series->steps : series->times_ms};
    struct extent values;
    append_title(series, ranks, look->width, out);
    if (!find_values(series, &values)) {
        text_append(out, "  no value to draw\n");
        return;
    }
    chart.scale = scale_make(values.from, values.to, (int)look->rows / ROWS_A_MARK);
    chart.margin = widest_label(&chart.scale);
    size_t used = chart.margin + 2;
    size_t columns = look->width > used + LEAST_COLUMNS ? look->width - used : LEAST_COLUMNS;
    canvas_init(&chart.canvas, columns, look->rows, look->utf8);
    draw_line(&chart);
    append_rows(&chart, out);
    append_ends(&chart, out);
    canvas_finish(&chart.canvas);
}
