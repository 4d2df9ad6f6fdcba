/* SPDX-License-Identifier: Apache-2.0 */
/* Writes all output of gpuctl. It promises that stdout carries only what was asked for, that text from
 * others cannot steer the terminal, and that nothing is coloured where nobody can see it. */
#include "client/cli/show/print.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/show/terminal.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"

/* no number needs fewer than it has when it is written with so many */
#define EXACT_DIGITS 15

enum print_format print_format(const char *text)
{
    if (strcmp(text, "json") == 0) {
        return FORMAT_JSON;
    }
    if (strcmp(text, "jsonl") == 0) {
        return FORMAT_JSONL;
    }
    return strcmp(text, "wide") == 0 ? FORMAT_WIDE : FORMAT_TABLE;
}

/* --- tables --- */

struct grid {
    const struct column *columns;
    size_t column_count;
    char **cells;
    size_t cell_count;
};

const struct column print_facts[2] = {{.title = "FACT"}, {.title = "VALUE"}};

struct grid *grid_create(const struct column *columns, size_t count)
{
    struct grid *grid = xzalloc(sizeof *grid);
    grid->columns = columns;
    grid->column_count = count;
    return grid;
}

void grid_destroy(struct grid *grid)
{
    if (grid == NULL) {
        return;
    }
    for (size_t i = 0; i < grid->cell_count; i++) {
        free(grid->cells[i]);
    }
    free(grid->cells);
    free(grid);
}

/* Control characters, those of C1 in UTF-8 as well; where a line ends words do. */
void print_disarm(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at != '\0'; at++) {
        if (*at == '\n') {
            *at = ' ';
        } else if (*at < 0x20 || *at == 0x7f) {
            *at = '?';
        } else if (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) {
            at[0] = at[1] = '?';
        }
    }
}

void grid_add(struct grid *grid, const char *cell)
{
    grid->cells = xrealloc(grid->cells, (grid->cell_count + 1) * sizeof grid->cells[0]);
    char *copy = xstrdup(cell != NULL && cell[0] != '\0' ? cell : "-");
    print_disarm(copy);
    grid->cells[grid->cell_count++] = copy;
}

void grid_addf(struct grid *grid, const char *format, ...)
{
    char cell[256];
    va_list args;
    va_start(args, format);
    vsnprintf(cell, sizeof cell, format, args);
    va_end(args);
    grid_add(grid, cell);
}

void grid_add_cell(struct grid *grid, const struct column *column, const json_t *object)
{
    autotext struct text cell = {0};
    column->show(object, column->member, &cell);
    grid_add(grid, cell.bytes);
}

void grid_add_rows(struct grid *grid, const json_t *objects)
{
    size_t i;
    json_t *object;
    json_array_foreach (objects, i, object) {
        for (size_t column = 0; column < grid->column_count; column++) {
            grid_add_cell(grid, &grid->columns[column], object);
        }
    }
}

size_t print_measure(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

size_t print_cut(const char *text, size_t width)
{
    size_t at = 0;
    while (text[at] != '\0' && (width > 0 || ((unsigned char)text[at] & 0xc0) == 0x80)) {
        width -= ((unsigned char)text[at] & 0xc0) != 0x80;
        at++;
    }
    return at;
}

static size_t column_width(const struct grid *grid, size_t column)
{
    size_t widest = print_measure(grid->columns[column].title);
    for (size_t i = column; i < grid->cell_count; i += grid->column_count) {
        size_t width = print_measure(grid->cells[i]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

struct paint {
    const char *word;
    const char *code;
};

const char *print_paint(const char *state)
{
    static const struct paint paints[] = {
        {"SUCCEEDED", "\033[32m"}, {"READY", "\033[32m"},   {"RUNNING", "\033[36m"},  {"FAILED", "\033[31m"},
        {"TIMED_OUT", "\033[31m"}, {"LOST", "\033[31m"},    {"CANCELED", "\033[33m"}, {"QUEUED", "\033[33m"},
        {"SUSPECT", "\033[33m"},   {"DRAINED", "\033[33m"}, {"DRAINING", "\033[33m"}, {"STAGING", "\033[33m"},
    };
    for (size_t i = 0; i < sizeof paints / sizeof paints[0]; i++) {
        if (strcmp(paints[i].word, state) == 0) {
            return paints[i].code;
        }
    }
    return NULL;
}

struct layout {
    const size_t *widths; /* 0: not shown */
    size_t count;
    size_t width; /* of a line; 0: any */
    bool colour;
};

/* Appends one line from cells[0..count). */
static void print_line(const struct layout *layout, const char *const *cells, struct text *out)
{
    size_t used = 0, pending = 0;
    for (size_t i = 0; i < layout->count; i++) {
        if (layout->widths[i] == 0 || (layout->width > 0 && used + pending >= layout->width)) {
            continue;
        }
        for (used += pending; pending > 0; pending--) {
            text_append(out, " ");
        }
        size_t shown = print_measure(cells[i]);
        if (layout->width > 0 && used + shown > layout->width) {
            shown = layout->width - used;
        }
        const char *paint = layout->colour ? print_paint(cells[i]) : NULL;
        text_append(out, paint != NULL ? paint : "");
        text_append_bytes(out, cells[i], print_cut(cells[i], shown));
        text_append(out, paint != NULL ? "\033[0m" : "");
        used += shown;
        pending = layout->widths[i] > shown ? layout->widths[i] - shown + 2 : 2;
    }
    text_append(out, "\n");
}

size_t grid_width(const struct grid *grid, bool wide)
{
    size_t width = 0;
    for (size_t i = 0; i < grid->column_count; i++) {
        if (wide || !grid->columns[i].wide) {
            width += column_width(grid, i) + (width > 0 ? 2 : 0);
        }
    }
    return width;
}

void grid_print(const struct grid *grid, bool wide, size_t width, bool colour, struct text *out)
{
    size_t count = grid->column_count;
    autofree size_t *widths = xzalloc(count * sizeof widths[0]);
    autofree const char **titles = xzalloc(count * sizeof titles[0]);
    for (size_t i = 0; i < count; i++) {
        titles[i] = grid->columns[i].title;
        widths[i] = grid->columns[i].wide && !wide ? 0 : column_width(grid, i);
    }
    struct layout layout = {.widths = widths, .count = count, .width = wide ? 0 : width, .colour = colour};
    print_line(&layout, titles, out);
    for (size_t i = 0; i + count <= grid->cell_count; i += count) {
        print_line(&layout, (const char *const *)&grid->cells[i], out);
    }
}

void grid_show(const struct column *columns, size_t count, const json_t *objects, bool wide, size_t width,
               bool colour, struct text *out)
{
    autogrid struct grid *grid = grid_create(columns, count);
    grid_add_rows(grid, objects);
    grid_print(grid, wide, width, colour, out);
}

bool print_colour(void)
{
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return (no == NULL || no[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0 &&
           isatty(STDOUT_FILENO);
}

size_t print_width(void)
{
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool print_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *locale = getenv(names[i]);
        if (locale != NULL && locale[0] != '\0') {
            return strcasestr(locale, "utf-8") != NULL || strcasestr(locale, "utf8") != NULL;
        }
    }
    return false;
}

/* --- cells --- */

static void append_json(const json_t *value, struct text *out)
{
    autofree char *line = json_text(value);
    text_append(out, line);
}

const char *print_text_of(const json_t *object, const char *member)
{
    const char *text = json_string_of(object, member);
    return text != NULL ? text : "?";
}

int64_t print_time_of(const json_t *object, const char *member)
{
    int64_t wall_ms = 0;
    const char *text = json_string_of(object, member);
    text_to_wall_ms(text != NULL ? text : "", &wall_ms);
    return wall_ms;
}

void cell_plain(const json_t *object, const char *member, struct text *out)
{
    const json_t *value = json_object_get(object, member);
    if (json_is_string(value)) {
        text_append(out, json_string_value(value));
    } else if (value != NULL && !json_is_null(value)) {
        append_json(value, out);
    }
}

void cell_time(const json_t *object, const char *member, struct text *out)
{
    char at[32];
    print_time(print_time_of(object, member), at);
    text_append(out, at);
}

void cell_number(const json_t *object, const char *member, struct text *out)
{
    const json_t *value = json_object_get(object, member);
    if (json_is_number(value)) {
        text_printf(out, "%.15g", json_number_value(value));
    }
}

void cell_bytes(const json_t *object, const char *member, struct text *out)
{
    char bytes[32];
    print_bytes(json_integer_value(json_object_get(object, member)), bytes);
    text_append(out, bytes);
}

void cell_seconds(const json_t *object, const char *member, struct text *out)
{
    const json_t *seconds = json_object_get(object, member);
    char span[32];
    if (json_is_number(seconds)) {
        text_from_duration_ms(llround(json_number_value(seconds) * 1000), span, sizeof span);
        text_append(out, span);
    }
}

void cell_yes(const json_t *object, const char *member, struct text *out)
{
    text_append(out, json_is_true(json_object_get(object, member)) ? "yes" : "no");
}

void cell_words(const json_t *object, const char *member, struct text *out)
{
    size_t i;
    const json_t *word;
    json_array_foreach (json_object_get(object, member), i, word) {
        text_printf(out, "%s%s", i > 0 ? " " : "", json_is_string(word) ? json_string_value(word) : "?");
    }
}

/* --- JSON --- */

bool print_is_json(enum print_format format)
{
    return format == FORMAT_JSON || format == FORMAT_JSONL;
}

void print_list(enum print_format format, const char *name, const json_t *items, struct text *out)
{
    if (format == FORMAT_JSON) {
        text_printf(out, "{\"%s\":", name);
        append_json(items, out);
        text_append(out, "}\n");
        return;
    }
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        print_json(item, out);
    }
}

void print_json(const json_t *document, struct text *out)
{
    append_json(document, out);
    text_append(out, "\n");
}

bool print_out(const struct text *text, struct err *err)
{
    struct terminal terminal = {0};
    if (text->length > 0 && !terminal_write(&terminal, stdout, text->bytes, text->length)) {
        return err_errno(err, "cannot write to stdout");
    }
    return fflush(stdout) == 0 || err_errno(err, "cannot write to stdout");
}

/* --- people --- */

void print_note(const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    print_disarm(line);
    fprintf(stderr, "gpuctl: %s\n", line);
}

/* It may quote what others wrote. */
static void print_part(const char *title, const char *text)
{
    char line[sizeof((struct err *)NULL)->hint];
    if (text[0] != '\0') {
        snprintf(line, sizeof line, "%s", text);
        print_disarm(line);
        fprintf(stderr, "  %s: %s\n", title, line);
    }
}

void print_error(const struct err *err)
{
    print_note("%s", err->text);
    print_part("field", err->field);
    print_part("remedy", err->hint);
}

void print_time(int64_t wall_ms, char out[32])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    if (wall_ms == 0 || localtime_r(&seconds, &parts) == NULL || strftime(out, 32, "%F %T", &parts) == 0) {
        snprintf(out, 32, "-");
    }
}

void print_span(int64_t from_ms, int64_t to_ms, char out[32])
{
    if (from_ms == 0) {
        snprintf(out, 32, "-");
        return;
    }
    int64_t span = (to_ms != 0 ? to_ms : clock_wall_ms()) - from_ms;
    text_from_duration_ms(span > 0 ? span : 0, out, 32);
}

void print_number(double value, int digits, char out[32])
{
    if (isnan(value) || isinf(value)) {
        snprintf(out, 32, "%s", isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    } else if (fabs(value) < 1e15 && value == floor(value)) {
        snprintf(out, 32, "%.0f", value);
    } else {
        for (int enough = digits < EXACT_DIGITS ? digits : EXACT_DIGITS; enough <= digits; enough++) {
            snprintf(out, 32, "%.*g", enough, value);
            if (strtod(out, NULL) == value) {
                return;
            }
        }
    }
}

void print_bytes(int64_t bytes, char out[32])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) {
        snprintf(out, 32, "%lld B", (long long)bytes);
        return;
    }
    size_t unit = 0;
    double amount = (double)bytes / 1024;
    for (; amount >= 1023.95 && unit + 1 < sizeof units / sizeof units[0]; unit++) {
        amount /= 1024;
    }
    snprintf(out, 32, "%.1f %s", amount, units[unit]);
}
