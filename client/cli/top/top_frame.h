/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a picture: each is at most as wide as the terminal, and no text in them can steer it. */
#ifndef CLI_TOP_FRAME_H
#define CLI_TOP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text/text.h"

/* How a picture is drawn. */
struct top_look {
    size_t width, height; /* height 0: as high as it gets */
    bool utf8;
    bool escapes;   /* a terminal shows it: lines may be bold or reversed */
    bool colour;    /* and have colours */
    int64_t now_ms; /* wall clock */
};

#define TOP_BOLD    "\033[1m"
#define TOP_REVERSE "\033[7m"
#define TOP_GREEN   "\033[32m"
#define TOP_RED     "\033[31m"
#define TOP_YELLOW  "\033[33m"

/* A line that is being written. */
struct top_line {
    const struct top_look *look; /* borrowed */
    const char *whole;           /* the escape of the whole line; NULL: parts have their own */
    struct text out;
    size_t used; /* characters */
};

/* whole: TOP_BOLD, TOP_REVERSE or NULL. */
void top_line_begin(struct top_line *line, const struct top_look *look, const char *whole);
/* Appends text of anybody, cut at the end of the line. paint is an escape, or NULL. */
void top_line_put(struct top_line *line, const char *text, const char *paint);
void top_line_putf(struct top_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same in a field of so many characters, filled with blanks on one of its sides. */
void top_line_field(struct top_line *line, const char *text, size_t width, bool right, const char *paint);
/* Adds the line to the frame. */
void top_line_end(struct top_line *line, struct text_list *frame);

/* Appends a bar of so many characters; fraction is clamped to 0..1. */
void top_bar(const struct top_look *look, double fraction, size_t cells, struct text *out);

/* Adds the last lines, at most so many, of bytes that a program wrote. Escape sequences and other controls
 * are left out; of a line that was written over and over the last state is shown. */
void top_output(const struct top_look *look, const char *bytes, size_t length, size_t most,
                struct text_list *frame);

#endif
