/* SPDX-License-Identifier: Apache-2.0 */
/* Output for people and programs: tables and JSON on stdout, notes and errors on stderr. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

#define PRINT_FORMATS "table|wide|json|jsonl"

enum print_format { FORMAT_TABLE, FORMAT_WIDE, FORMAT_JSON, FORMAT_JSONL };

/* text is one of PRINT_FORMATS. */
enum print_format print_format(const char *text);

/* --- tables --- */

struct column {
    const char *title;
    bool wide; /* shown only by -o wide */
    /* Of a table that is made of JSON objects: a member, and how it is shown. */
    const char *member;
    void (*show)(const json_t *object, const char *member, struct text *out);
};

#define COLUMN(title_, member_, show_)                                                                       \
    {                                                                                                        \
        .title = (title_), .member = (member_), .show = (show_)                                              \
    }
#define WIDE_COLUMN(title_, member_, show_)                                                                  \
    {                                                                                                        \
        .title = (title_), .wide = true, .member = (member_), .show = (show_)                                \
    }

/* The two of a table with a fact in each row. */
extern const struct column print_facts[2];

struct grid;
/* columns are borrowed. */
struct grid *grid_create(const struct column *columns, size_t count);
void grid_destroy(struct grid *grid);
/* Adds the next cell, row by row. Bytes that could steer a terminal become '?'. NULL is shown as "-". */
void grid_add(struct grid *grid, const char *cell);
void grid_addf(struct grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a row for each object of an array; and one cell of an object. */
void grid_add_rows(struct grid *grid, const json_t *objects);
void grid_add_cell(struct grid *grid, const struct column *column, const json_t *object);
/* Characters of the longest line. */
size_t grid_width(const struct grid *grid, bool wide);
/* Appends the table; with a width above 0 lines are cut to it. colour paints the cells that are states. */
void grid_print(const struct grid *grid, bool wide, size_t width, bool colour, struct text *out);

/* All of it for the objects of an array: a row each. */
void grid_show(const struct column *columns, size_t count, const json_t *objects, bool wide, size_t width,
               bool colour, struct text *out);

static inline void cleanup_grid(struct grid **grid)
{
    grid_destroy(*grid);
}
#define autogrid __attribute__((cleanup(cleanup_grid)))

/* The escape that a state is painted with; NULL for none. */
const char *print_paint(const char *state);
/* Characters of UTF-8 text. */
size_t print_measure(const char *text);

/* true when stdout is a terminal that takes colours and NO_COLOR is not set. */
bool print_colour(void);
/* Columns of the terminal on stdout; 0 where it is none. */
size_t print_width(void);
/* Does the locale write UTF-8? By LC_ALL, LC_CTYPE and LANG, the first that is set. */
bool print_utf8(void);

/* --- members as cells; an empty cell becomes "-" --- */

/* A text or a number as it is, nothing for null, other values as JSON. */
void cell_plain(const json_t *object, const char *member, struct text *out);
/* A time of the API as print_time shows it. */
void cell_time(const json_t *object, const char *member, struct text *out);
/* A number without needless decimals; nothing for null. */
void cell_number(const json_t *object, const char *member, struct text *out);
void cell_bytes(const json_t *object, const char *member, struct text *out);
/* Seconds, for people; nothing for null. */
void cell_seconds(const json_t *object, const char *member, struct text *out);
/* "yes" for true, else "no". */
void cell_yes(const json_t *object, const char *member, struct text *out);
/* The texts of a list, with blanks between them. */
void cell_words(const json_t *object, const char *member, struct text *out);

/* --- text of others --- */

/* In place: bytes that could steer a terminal become '?', ends of lines become blanks. */
void print_disarm(char *text);
/* Bytes of the first width characters of UTF-8 text. */
size_t print_cut(const char *text, size_t width);

/* --- JSON --- */

bool print_is_json(enum print_format format);
/* The text of a member; "?" where there is none. Borrowed. */
const char *print_text_of(const json_t *object, const char *member);
/* The wall clock of a member that is a time, 0 where there is none. */
int64_t print_time_of(const json_t *object, const char *member);
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
