/* SPDX-License-Identifier: Apache-2.0 */
/* Filters, sorts and draws rows. It promises that rows which compare as equal keep the order of the list,
 * also where it is reversed, and that a table fits the width: it leaves out columns that may be missing, the
 * rightmost first, then cuts the end of lines. */
#include "client/cli/top/top_table.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"

#define GAP  2 /* blanks between two columns */
#define MARK 2 /* characters of the mark before the selected row */
#define LAST_COLUMN                                                                                          \
    16 /* characters that the last column has at least, where others can be left out for it                  \
        */

/* --- rows ----------------------------------------------------------------------------------------------- */

static void make_cells(const struct top_table *table, const struct top_look *look, struct top_row *row)
{
    for (size_t i = 0; i < table->count; i++) {
        struct text cell = {0};
        table->columns[i].show(row->json, table->columns[i].member, look, &cell);
        row->cells[i] = cell.length > 0 ? text_take(&cell) : xstrdup("-");
        print_disarm(row->cells[i]);
        text_finish(&cell);
    }
}

static void free_cells(const struct top_table *table, struct top_row *row)
{
    for (size_t i = 0; i < table->count; i++) {
        free(row->cells[i]);
    }
}

static bool passes(const struct top_table *table, const char *filter, const struct top_row *row)
{
    bool found = filter == NULL || filter[0] == '\0';
    for (size_t i = 0; i < table->count && !found; i++) {
        found = strcasestr(row->cells[i], filter) != NULL;
    }
    return found;
}

static int compare_places(const struct top_row *a, const struct top_row *b)
{
    return a->place < b->place ? -1 : 1;
}

/* Rows without a value are last in both directions. */
static int compare(const void *left, const void *right, void *closure)
{
    const struct top_rows *rows = closure;
    const struct top_row *a = left, *b = right;
    size_t column = rows->order.column;
    int direction = rows->order.reverse ? -1 : 1;
    if (rows->table->columns[column].value == NULL) {
        int order = strcasecmp(a->cells[column], b->cells[column]);
        return order != 0 ? order * direction : compare_places(a, b);
    }
    if (isnan(a->value) || isnan(b->value)) {
        return isnan(a->value) != isnan(b->value) ? (isnan(a->value) ? 1 : -1) : compare_places(a, b);
    }
    return a->value < b->value ? -direction : a->value > b->value ? direction : compare_places(a, b);
}

void top_rows_make(const struct top_table *table, const json_t *rows, const struct top_order *order,
                   const struct top_look *look, struct top_rows *ret_rows)
{
    assert(table->count <= TOP_COLUMNS && order->column < table->count);
    const struct top_column *column = &table->columns[order->column];
    size_t listed = json_array_size(rows);
    *ret_rows = (struct top_rows){.table = table,
                                  .order = *order,
                                  .items = xzalloc((listed + 1) * sizeof ret_rows->items[0]),
                                  .listed = listed};
    for (size_t i = 0; i < listed; i++) {
        struct top_row row = {.json = json_array_get(rows, i), .place = i};
        make_cells(table, look, &row);
        if (passes(table, order->filter, &row)) {
            row.value = column->value != NULL ? column->value(row.json, column->member) : 0;
            ret_rows->items[ret_rows->count++] = row;
        } else {
            free_cells(table, &row);
        }
    }
    qsort_r(ret_rows->items, ret_rows->count, sizeof ret_rows->items[0], compare, ret_rows);
}

void top_rows_finish(struct top_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free_cells(rows->table, &rows->items[i]);
    }
    free(rows->items);
    *rows = (struct top_rows){0};
}

static size_t key_column(const struct top_table *table)
{
    size_t i = 0;
    while (strcmp(table->columns[i].member, table->key) != 0) {
        i++;
        assert(i < table->count);
    }
    return i;
}

const char *top_rows_key(const struct top_rows *rows, size_t index)
{
    return index < rows->count ? rows->items[index].cells[key_column(rows->table)] : "";
}

size_t top_rows_find(const struct top_rows *rows, const char *key)
{
    size_t i = 0;
    while (i < rows->count && strcmp(top_rows_key(rows, i), key) != 0) {
        i++;
    }
    return i;
}

/* --- lines ---------------------------------------------------------------------------------------------- */

static const char *mark_of(const struct top_rows *rows, size_t column, const struct top_look *look)
{
    if (column != rows->order.column || !look->escapes) {
        return "";
    }
    if (look->utf8) {
        return rows->order.reverse ? " \xe2\x96\xbc" : " \xe2\x96\xb2";
    }
    return rows->order.reverse ? " v" : " ^";
}

static size_t column_width(const struct top_rows *rows, size_t column, const struct top_look *look)
{
    size_t widest =
        print_measure(rows->table->columns[column].title) + print_measure(mark_of(rows, column, look));
    for (size_t i = 0; i < rows->count; i++) {
        size_t width = print_measure(rows->items[i].cells[column]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* Of the columns that are shown, where the last has as little as it may. */
static size_t width_of(const size_t *widths, size_t count)
{
    size_t width = MARK;
    for (size_t i = 0; i + 1 < count; i++) {
        width += widths[i] > 0 ? widths[i] + GAP : 0;
    }
    width += widths[count - 1] < LAST_COLUMN ? widths[count - 1] : LAST_COLUMN;
    return width;
}

/* 0: the column is left out. */
static void lay_out(const struct top_rows *rows, const struct top_look *look, size_t widths[TOP_COLUMNS])
{
    size_t count = rows->table->count;
    for (size_t i = 0; i < count; i++) {
        widths[i] = column_width(rows, i, look);
    }
    for (size_t i = count; i-- > 0 && width_of(widths, count) > look->width;) {
        widths[i] = rows->table->columns[i].optional ? 0 : widths[i];
    }
}

static void draw_titles(const struct top_rows *rows, const size_t *widths, const struct top_look *look,
                        struct text_list *frame)
{
    struct top_line line;
    top_line_begin(&line, look, TOP_BOLD);
    top_line_field(&line, "", MARK, false, NULL);
    for (size_t i = 0; i < rows->table->count; i++) {
        if (widths[i] > 0) {
            autofree char *title = xprintf("%s%s", rows->table->columns[i].title, mark_of(rows, i, look));
            top_line_field(&line, title, widths[i], rows->table->columns[i].right, NULL);
            top_line_field(&line, "", GAP, false, NULL);
        }
    }
    top_line_end(&line, frame);
}

static void draw_row(const struct top_rows *rows, size_t index, bool selected, const size_t *widths,
                     const struct top_look *look, struct text_list *frame)
{
    struct top_line line;
    top_line_begin(&line, look, selected ? TOP_REVERSE : NULL);
    top_line_field(&line, selected ? ">" : "", MARK, false, NULL);
    for (size_t i = 0; i < rows->table->count; i++) {
        const struct top_column *column = &rows->table->columns[i];
        const char *cell = rows->items[index].cells[i];
        if (widths[i] > 0) {
            bool painted = column->paint != NULL && strcmp(cell, "-") != 0;
            top_line_field(&line, cell, widths[i], column->right, painted ? column->paint(cell) : NULL);
            top_line_field(&line, "", GAP, false, NULL);
        }
    }
    top_line_end(&line, frame);
}

void top_rows_draw(const struct top_rows *rows, size_t first, size_t shown, size_t selected,
                   const struct top_look *look, struct text_list *frame)
{
    size_t widths[TOP_COLUMNS];
    lay_out(rows, look, widths);
    draw_titles(rows, widths, look, frame);
    for (size_t i = first; i < rows->count && i - first < shown; i++) {
        draw_row(rows, i, i == selected, widths, look, frame);
    }
}
