/* SPDX-License-Identifier: Apache-2.0 */
/* Builds lines of a picture. It promises that a line has at most the characters that the look says, that
 * bytes of others which could steer a terminal never get into it, and that it has escapes only where a
 * terminal shows them. */
#include "client/cli/top/top_frame.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"

#define RESET "\033[0m"
#define TAB   8 /* characters between two stops */

/* --- lines ---------------------------------------------------------------------------------------------- */

void top_line_begin(struct top_line *line, const struct top_look *look, const char *whole)
{
    *line = (struct top_line){.look = look, .whole = look->escapes ? whole : NULL};
    text_append(&line->out, line->whole != NULL ? line->whole : "");
}

static void put_blanks(struct top_line *line, size_t count)
{
    for (; count > 0 && line->used < line->look->width; count--) {
        text_append(&line->out, " ");
        line->used++;
    }
}

/* Text that is disarmed already. */
static void put_clean(struct top_line *line, const char *text, size_t width, const char *paint)
{
    size_t left = line->look->width - line->used;
    size_t shown = print_measure(text);
    shown = shown < width ? shown : width;
    shown = shown < left ? shown : left;
    bool painted = paint != NULL && line->look->colour && line->whole == NULL && shown > 0;
    text_append(&line->out, painted ? paint : "");
    text_append_bytes(&line->out, text, print_cut(text, shown));
    text_append(&line->out, painted ? RESET : "");
    line->used += shown;
}

void top_line_put(struct top_line *line, const char *text, const char *paint)
{
    autofree char *copy = xstrdup(text);
    print_disarm(copy);
    put_clean(line, copy, SIZE_MAX, paint);
}

void top_line_putf(struct top_line *line, const char *format, ...)
{
    char part[512];
    va_list args;
    va_start(args, format);
    vsnprintf(part, sizeof part, format, args);
    va_end(args);
    top_line_put(line, part, NULL);
}

void top_line_field(struct top_line *line, const char *text, size_t width, bool right, const char *paint)
{
    autofree char *copy = xstrdup(text);
    print_disarm(copy);
    size_t shown = print_measure(copy);
    size_t blanks = shown < width ? width - shown : 0;
    put_blanks(line, right ? blanks : 0);
    put_clean(line, copy, width, paint);
    put_blanks(line, right ? 0 : blanks);
}

/* A reversed line goes to the end of the screen; any other has no blanks at its end. */
void top_line_end(struct top_line *line, struct text_list *frame)
{
    if (line->whole != NULL) {
        put_blanks(line, line->look->width);
        text_append(&line->out, RESET);
    }
    char *text = text_take(&line->out);
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ') {
        text[--length] = '\0';
    }
    text_list_add(frame, text);
}

/* --- bars ----------------------------------------------------------------------------------------------- */

void top_bar(const struct top_look *look, double fraction, size_t cells, struct text *out)
{
    double bounded = fraction > 0 ? fraction < 1 ? fraction : 1 : 0;
    size_t filled = (size_t)llround(bounded * (double)cells);
    for (size_t i = 0; i < cells; i++) {
        if (look->utf8) {
            text_append(out, i < filled ? "\xe2\x96\x88" : "\xe2\x96\x91");
        } else {
            text_append(out, i < filled ? "#" : ".");
        }
    }
}

/* --- output of programs --------------------------------------------------------------------------------- */

/* Bytes of the sequence that begins with the escape at text. */
static size_t sequence_length(const char *text, size_t length)
{
    if (length < 2 || text[1] != '[') {
        return 1;
    }
    size_t at = 2;
    while (at < length && text[at] >= ' ' && text[at] < '@') {
        at++;
    }
    return at < length && text[at] >= '@' && text[at] <= '~' ? at + 1 : at;
}

/* Bytes of the character at text; 0: that is not UTF-8. Controls of C1 are left to top_line_put. */
static size_t character_at(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t wanted = bytes[0] < 0x80                        ? 1
                    : bytes[0] >= 0xc2 && bytes[0] < 0xe0  ? 2
                    : bytes[0] >= 0xe0 && bytes[0] < 0xf0  ? 3
                    : bytes[0] >= 0xf0 && bytes[0] <= 0xf4 ? 4
                                                           : 0;
    for (size_t i = 1; i < wanted; i++) {
        if (i >= length || (bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return wanted;
}

static void add_tab(struct text *out)
{
    do {
        text_append(out, " ");
    } while (print_measure(out->bytes) % TAB != 0);
}

/* A carriage return begins the line anew when something follows it. */
static void clean_line(const char *bytes, size_t length, struct text *out)
{
    bool anew = false;
    for (size_t at = 0, size; at < length; at += size) {
        char byte = bytes[at];
        size =
            byte == '\033' ? sequence_length(bytes + at, length - at) : character_at(bytes + at, length - at);
        bool control = (byte >= 0 && byte < ' ') || byte == 0x7f;
        if (control && byte != '\t') {
            anew = anew || byte == '\r';
            continue;
        }
        if (anew) {
            text_clear(out);
            anew = false;
        }
        if (byte == '\t') {
            add_tab(out);
        } else {
            text_append_bytes(out, size > 0 ? bytes + at : "?", size > 0 ? size : 1);
            size = size > 0 ? size : 1;
        }
    }
}

/* Where the last lines begin; a line end at the end begins no line. */
static size_t tail_of(const char *bytes, size_t length, size_t most)
{
    size_t at = length > 0 && bytes[length - 1] == '\n' ? length - 1 : length;
    for (size_t lines = 0; at > 0; at--) {
        if (bytes[at - 1] == '\n' && ++lines == most) {
            break;
        }
    }
    return at;
}

void top_output(const struct top_look *look, const char *bytes, size_t length, size_t most,
                struct text_list *frame)
{
    for (size_t at = most > 0 ? tail_of(bytes, length, most) : length; at < length;) {
        const char *end = memchr(bytes + at, '\n', length - at);
        size_t size = end != NULL ? (size_t)(end - (bytes + at)) : length - at;
        autotext struct text clean = {0};
        struct top_line line;
        clean_line(bytes + at, size, &clean);
        top_line_begin(&line, look, NULL);
        top_line_put(&line, clean.bytes != NULL ? clean.bytes : "", NULL);
        top_line_end(&line, frame);
        at += size + 1;
    }
}
