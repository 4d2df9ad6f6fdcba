/* SPDX-License-Identifier: Apache-2.0 */
/* What people and programs see: tables and JSON on stdout, notes and errors on stderr. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/base/err.h"
#include "proto/base/text.h"

#define PRINT_FORMATS "table|wide|json|jsonl"

enum print_format { FORMAT_TABLE, FORMAT_WIDE, FORMAT_JSON, FORMAT_JSONL };

/* text is one of PRINT_FORMATS. */
enum print_format print_format(const char *text);

/* --- tables --- */

struct column {
    const char *title;
    bool wide; /* shown only by -o wide */
};

struct grid;
/* columns are borrowed. */
struct grid *grid_create(const struct column *columns, size_t count);
void grid_destroy(struct grid *grid);
/* Adds the next cell, row by row. Bytes that could steer a terminal become '?'. NULL is shown as "-". */
void grid_add(struct grid *grid, const char *cell);
void grid_addf(struct grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Characters of the longest line. */
size_t grid_width(const struct grid *grid, bool wide);
/* Appends the table; with a width above 0 lines are cut to it. colour paints the cells that are states. */
void grid_print(const struct grid *grid, bool wide, size_t width, bool colour, struct text *out);

static inline void cleanup_grid(struct grid **grid)
{
    grid_destroy(*grid);
}
#define autogrid __attribute__((cleanup(cleanup_grid)))

/* true when stdout is a terminal that takes colours and NO_COLOR is not set. */
bool print_colour(void);
/* Columns of the terminal on stdout; 0 where it is none. */
size_t print_width(void);
/* Does the locale write UTF-8? By LC_ALL, LC_CTYPE and LANG, the first that is set. */
bool print_utf8(void);

/* --- text of others --- */

/* In place: bytes that could steer a terminal become '?', ends of lines become blanks. */
void print_disarm(char *text);
/* Bytes of the first width characters of UTF-8 text. */
size_t print_cut(const char *text, size_t width);

/* --- JSON --- */

/* FORMAT_JSON: the document {name: array}; FORMAT_JSONL: a line for each item. */
void print_list(enum print_format format, const char *name, const json_t *items, struct text *out);
/* One document, on one line. */
void print_json(const json_t *document, struct text *out);
/* Writes to stdout; a failure ends up in err. */
bool print_out(const struct text *text, struct err *err);

/* --- people --- */

/* "gpuctl: ..." on stderr. */
void print_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with field and remedy. */
void print_error(const struct err *err);
/* Wall clock ms as local "2026-11-21 09:30:00"; "-" for 0. out has room for 32. */
void print_time(int64_t wall_ms, char out[32]);
/* "1.4 s" between two times; to 0 means now; "-" where from is 0. */
void print_span(int64_t from_ms, int64_t to_ms, char out[32]);
/* Whole numbers in full, others with so many digits; "NaN", "Infinity", "-Infinity". */
void print_number(double value, int digits, char out[32]);
/* "512 B", "1.5 KiB". */
void print_bytes(int64_t bytes, char out[32]);

#endif
