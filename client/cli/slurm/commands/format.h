/* SPDX-License-Identifier: Apache-2.0 */
/* Tables in the form that -o of Slurm's commands describes: "%.18i %.9P %N". */
#ifndef CLI_SLURM_FORMAT_H
#define CLI_SLURM_FORMAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* What a letter behind % stands for. */
struct format_column {
    char code;
    const char *title;
    /* Appends the value of a row; nothing for none. */
    void (*show)(const json_t *row, struct text *out);
};

#define FORMAT_FIELDS 64 /* of one format */

struct format_field {
    const struct format_column *column;
    const char *before; /* the text before it, borrowed from the format; before_length bytes */
    size_t before_length;
    size_t width; /* characters, which the value fills, and to which it is cut; 0: as long as it is */
    bool right;   /* the value is to the right of its width */
    bool grows;   /* the width is that of the longest value, if that is more */
};

struct format {
    struct format_field fields[FORMAT_FIELDS];
    size_t count;
    const char *after; /* the text behind the last field; borrowed */
    bool rule;         /* a line of dashes below the titles */
};

/* Reads "%[.][#][WIDTH]CODE" and the text between. columns ends with the code 0. ERR_USAGE names the code
 * that is not known, and those that are. */
bool format_parse(const char *text, const struct format_column *columns, struct format *ret_format,
                  struct err *err);

/* The column of this code, NULL where there is none; and its value in a row, where there is one. */
const struct format_column *format_find(const struct format_column *columns, char code);
void format_show(const struct format_column *columns, char code, const json_t *row, struct text *out);

/* Has it a field of this code? */
bool format_has(const struct format *format, char code);

/* Appends a line for each row, behind the titles where they are wanted. Bytes that could steer a terminal
 * become '?'. */
void format_rows(const struct format *format, const json_t *rows, bool titles, struct text *out);

/* --- values as Slurm writes them --- */

/* "5:03", "1:05:03", "2-01:05:03"; with all its parts "00:05:03" */
void format_span(int64_t seconds, bool all, struct text *out);
/* Local time, "2026-11-30T18:00:00"; "N/A" for 0. */
void format_moment(int64_t wall_ms, struct text *out);

#endif
