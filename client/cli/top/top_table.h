/* SPDX-License-Identifier: Apache-2.0 */
/* A table on the screen: its rows after filter and sort, and the lines of those that are shown. */
#ifndef CLI_TOP_TABLE_H
#define CLI_TOP_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/cli/top/top_columns.h"
#include "client/cli/top/top_frame.h"

#define TOP_COLUMNS 16 /* of a table, at most */

/* How it is sorted, and what is left out. */
struct top_order {
    size_t column;
    bool reverse;
    const char *filter; /* NULL or "": all rows; else those of which a cell has this in it, in any case */
};

struct top_row {
    const json_t *json; /* borrowed */
    char *cells[TOP_COLUMNS];
    double value; /* it is sorted by this, then by its place in the list */
    size_t place;
};

struct top_rows {
    const struct top_table *table;
    struct top_order order;
    struct top_row *items;
    size_t count;
    size_t listed; /* rows before the filter */
};

/* rows is an array of objects, NULL for none, and outlives the result. */
void top_rows_make(const struct top_table *table, const json_t *rows, const struct top_order *order,
                   const struct top_look *look, struct top_rows *ret_rows);
void top_rows_finish(struct top_rows *rows);

static inline void cleanup_top_rows(struct top_rows *rows)
{
    top_rows_finish(rows);
}
#define autorowlist __attribute__((cleanup(cleanup_top_rows)))

/* The text that tells the row apart: its cell of the key. Borrowed; "" where there is no such row. */
const char *top_rows_key(const struct top_rows *rows, size_t index);
/* The row with that key; count where there is none. */
size_t top_rows_find(const struct top_rows *rows, const char *key);

#define TOP_NO_ROW SIZE_MAX

/* Adds the line of titles, and those of `shown` rows from `first` on. selected is a row or TOP_NO_ROW. */
void top_rows_draw(const struct top_rows *rows, size_t first, size_t shown, size_t selected,
                   const struct top_look *look, struct text_list *frame);

#endif
