/* SPDX-License-Identifier: Apache-2.0 */
/* Reads logged values and writes lines about them. It promises to read every number that the API can spell,
 * those that JSON cannot hold included, and that names and texts of jobs cannot steer a terminal. */
#include "client/cli/charts/point.h"

#include <math.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

#define NAME_WIDTH 12
#define DIGITS     6

/* A number, or the name of one that JSON has no spelling for. */
static bool read_value(const json_t *json, double *ret_value, struct err *err)
{
    const json_t *value = json_object_get(json, "value");
    const char *text = json_string_value(value);
    if (json_is_number(value)) {
        *ret_value = json_number_value(value);
    } else if (text != NULL && strcmp(text, "NaN") == 0) {
        *ret_value = (double)NAN;
    } else if (text != NULL && strcmp(text, "Infinity") == 0) {
        *ret_value = (double)INFINITY;
    } else if (text != NULL && strcmp(text, "-Infinity") == 0) {
        *ret_value = -(double)INFINITY;
    } else {
        return err_field(err, ERR_FIELD, "value", NULL, "value must be a number, \"NaN\" or \"Infinity\"");
    }
    return true;
}

static bool read_time(const json_t *json, int64_t *ret_at_ms, struct err *err)
{
    const char *text = NULL;
    *ret_at_ms = 0;
    if (!json_read_text(json, "time", &text, err)) {
        return false;
    }
    return text == NULL || text_to_wall_ms(text, ret_at_ms) ||
           err_field(err, ERR_FIELD, "time", NULL, "time must be written as RFC 3339 has it");
}

bool point_read(const json_t *json, struct point *ret_point, struct err *err)
{
    struct point point = {.stepped = json_is_integer(json_object_get(json, "step"))};
    bool ranked = !json_is_null(json_object_get(json, "rank"));
    point.rank = -1;
    if (!json_need_text(json, "name", &point.name, err) ||
        (ranked && !json_need_int(json, "rank", 0, INT64_MAX, &point.rank, err)) ||
        !json_read_int(json, "step", INT64_MIN, INT64_MAX, &point.step, err) ||
        !read_value(json, &point.value, err) || !read_time(json, &point.at_ms, err)) {
        return false;
    }
    *ret_point = point;
    return true;
}

static void append_time(int64_t at_ms, struct text *out)
{
    char at[32];
    print_time(at_ms, at);
    text_append(out, at);
}

/* Two spaces and the text, made harmless. */
static void append_foreign(const char *foreign, int width, struct text *out)
{
    autofree char *copy = xstrdup(foreign);
    print_disarm(copy);
    text_printf(out, "  %-*s", width, copy);
}

void point_line(const struct point *point, struct text *out)
{
    char value[32];
    print_number(point->value, DIGITS, value);
    append_time(point->at_ms, out);
    append_foreign(point->name, NAME_WIDTH, out);
    if (point->rank >= 0) {
        text_printf(out, "  rank %lld", (long long)point->rank);
    }
    if (point->stepped) {
        text_printf(out, "  step %lld", (long long)point->step);
    }
    text_printf(out, "  %s\n", value);
}

bool point_progress_line(const json_t *progress, struct text *out, struct err *err)
{
    const json_t *fraction = json_object_get(progress, "fraction");
    const char *text = NULL;
    int64_t rank = 0, at_ms = 0;
    if (!json_need_int(progress, "rank", 0, INT64_MAX, &rank, err) ||
        !json_read_text(progress, "text", &text, err) || !read_time(progress, &at_ms, err)) {
        return false;
    }
    append_time(at_ms, out);
    append_foreign("progress", NAME_WIDTH, out);
    text_printf(out, "  rank %lld", (long long)rank);
    if (json_is_number(fraction)) {
        text_printf(out, "  %.0f%%", 100 * json_number_value(fraction));
    }
    if (text != NULL && text[0] != '\0') {
        append_foreign(text, 0, out);
    }
    text_append(out, "\n");
    return true;
}
