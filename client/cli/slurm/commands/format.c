/* SPDX-License-Identifier: Apache-2.0 */
/* Writes tables as -o of Slurm's commands describes them. It promises that a value is cut to the width of its
 * field, as Slurm does, unless the field may grow. */
#include "client/cli/slurm/commands/format.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"

#define WIDTH_MOST 1000 /* characters of a field */

const struct format_column *format_find(const struct format_column *columns, char code)
{
    for (; columns->code != '\0'; columns++) {
        if (columns->code == code) {
            return columns;
        }
    }
    return NULL;
}

void format_show(const struct format_column *columns, char code, const json_t *row, struct text *out)
{
    format_find(columns, code)->show(row, out);
}

static bool refuse_code(const struct format_column *columns, char code, struct err *err)
{
    autotext struct text known = {0};
    for (const struct format_column *column = columns; column->code != '\0'; column++) {
        text_printf(&known, "%s%%%c", column != columns ? " " : "the codes are ", column->code);
    }
    if (code == '\0') {
        return err_field(err, ERR_USAGE, "format", known.bytes, "a %% of --format has no code");
    }
    return err_field(err, ERR_USAGE, "format", known.bytes, "--format: %%%c is not known", code);
}

/* One field behind its %; *at goes behind it. */
static bool read_field(const char **at, const struct format_column *columns, struct format_field *field,
                       struct err *err)
{
    for (; **at == '.' || **at == '#'; (*at)++) {
        field->right |= **at == '.';
        field->grows |= **at == '#';
    }
    for (; **at >= '0' && **at <= '9' && field->width <= WIDTH_MOST; (*at)++) {
        field->width = field->width * 10 + (size_t)(**at - '0');
    }
    if (field->width > WIDTH_MOST) {
        return err_field(err, ERR_USAGE, "format", NULL, "--format: a field has at most %d characters",
                         WIDTH_MOST);
    }
    field->column = format_find(columns, **at);
    if (field->column == NULL) {
        return refuse_code(columns, **at, err);
    }
    (*at)++;
    return true;
}

bool format_parse(const char *text, const struct format_column *columns, struct format *ret_format,
                  struct err *err)
{
    *ret_format = (struct format){0};
    while (text[strcspn(text, "%")] == '%') {
        size_t length = strcspn(text, "%");
        struct format_field field = {.before = text, .before_length = length};
        text += length + 1;
        if (!read_field(&text, columns, &field, err)) {
            return false;
        }
        if (ret_format->count == FORMAT_FIELDS) {
            return err_field(err, ERR_USAGE, "format", NULL, "--format has at most %d fields", FORMAT_FIELDS);
        }
        ret_format->fields[ret_format->count++] = field;
    }
    ret_format->after = text;
    return ret_format->count > 0 || err_field(err, ERR_USAGE, "format", "%i %t for instance",
                                              "--format has no field: a field is %% and a letter");
}

bool format_has(const struct format *format, char code)
{
    for (size_t i = 0; i < format->count; i++) {
        if (format->fields[i].column->code == code) {
            return true;
        }
    }
    return false;
}

/* --- lines --- */

static void put_value(const struct format_field *field, size_t width, char *value, struct text *out)
{
    print_disarm(value);
    size_t bytes = width > 0 ? print_cut(value, width) : strlen(value);
    value[bytes] = '\0';
    size_t length = print_measure(value);
    int blanks = (int)(width > length ? width - length : 0);
    text_printf(out, "%*s%s%*s", field->right ? blanks : 0, "", value, field->right ? 0 : blanks, "");
}

/* row NULL: the titles. */
static char *value_of(const struct format_field *field, const json_t *row)
{
    autotext struct text value = {0};
    text_append(&value, "");
    if (row != NULL) {
        field->column->show(row, &value);
    } else {
        text_append(&value, field->column->title);
    }
    return text_take(&value);
}

static void put_line(const struct format *format, const size_t *widths, const json_t *row, struct text *out)
{
    for (size_t i = 0; i < format->count; i++) {
        const struct format_field *field = &format->fields[i];
        autofree char *value = value_of(field, row);
        text_append_bytes(out, field->before, field->before_length);
        put_value(field, widths[i], value, out);
    }
    text_printf(out, "%s\n", format->after);
}

static void put_rule(const struct format *format, const size_t *widths, struct text *out)
{
    for (size_t i = 0; i < format->count; i++) {
        text_append_bytes(out, format->fields[i].before, format->fields[i].before_length);
        for (size_t dash = 0; dash < widths[i]; dash++) {
            text_append(out, "-");
        }
    }
    text_printf(out, "%s\n", format->after);
}

static size_t width_of(const struct format_field *field, const json_t *rows)
{
    size_t width = field->width, i;
    json_t *row;
    if (!field->grows) {
        return width;
    }
    size_t title = print_measure(field->column->title);
    width = title > width ? title : width;
    json_array_foreach (rows, i, row) {
        autofree char *value = value_of(field, row);
        size_t length = print_measure(value);
        width = length > width ? length : width;
    }
    return width;
}

void format_rows(const struct format *format, const json_t *rows, bool titles, struct text *out)
{
    size_t widths[FORMAT_FIELDS], i;
    json_t *row;
    for (i = 0; i < format->count; i++) {
        widths[i] = width_of(&format->fields[i], rows);
    }
    if (titles) {
        put_line(format, widths, NULL, out);
    }
    if (titles && format->rule) {
        put_rule(format, widths, out);
    }
    json_array_foreach (rows, i, row) {
        put_line(format, widths, row, out);
    }
}

/* --- values --- */

void format_span(int64_t seconds, bool all, struct text *out)
{
    long long days = seconds / 86400;
    int hours = (int)(seconds / 3600 % 24), minutes = (int)(seconds / 60 % 60), rest = (int)(seconds % 60);
    if (days > 0) {
        text_printf(out, "%lld-%02d:%02d:%02d", days, hours, minutes, rest);
    } else if (hours > 0 || all) {
        text_printf(out, all ? "%02d:%02d:%02d" : "%d:%02d:%02d", hours, minutes, rest);
    } else {
        text_printf(out, "%d:%02d", minutes, rest);
    }
}

void format_moment(int64_t wall_ms, struct text *out)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm parts;
    char moment[32];
    if (wall_ms == 0 || localtime_r(&seconds, &parts) == NULL ||
        strftime(moment, sizeof moment, "%FT%T", &parts) == 0) {
        snprintf(moment, sizeof moment, "N/A");
    }
    text_append(out, moment);
}
