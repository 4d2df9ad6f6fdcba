/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a line of metrics may say and how the API shows it. Lines come from users' processes, so they may
 * hold anything: it promises that a line is either understood wholly or not at all, and that what it writes
 * is valid JSON in either case. Which lines are shown is left to metrics.c. */
#include "daemon/blob/metric_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

#define LAST_WALL_MS 253402300799999 /* of the year 9999 */

/* --- reading -------------------------------------------------------------------------------------------- */

static bool is_value(const json_t *value)
{
    static const char *const not_finite[] = {"NaN", "Infinity", "-Infinity"};
    const char *text = json_string_value(value);
    for (size_t i = 0; text != NULL && i < sizeof not_finite / sizeof *not_finite; i++) {
        if (strcmp(text, not_finite[i]) == 0) {
            return true;
        }
    }
    return json_is_number(value);
}

/* jansson has seen to it that it is UTF-8. */
static bool is_name(const char *name)
{
    size_t characters = 0;
    for (const char *at = name; *at != '\0'; at++) {
        characters += ((unsigned char)*at & 0xC0) != 0x80;
    }
    return characters > 0 && characters <= LIMIT_METRIC_NAME;
}

static bool read_point(struct metric_line *line)
{
    const json_t *step = json_object_get(line->json, "step");
    line->kind = METRIC_POINT;
    line->value = json_object_get(line->json, "value");
    line->has_step = json_is_integer(step);
    line->step = json_integer_value(step);
    return is_name(line->name) && is_value(line->value) &&
           (line->has_step || step == NULL || json_is_null(step));
}

static bool read_progress(struct metric_line *line, const json_t *progress)
{
    struct err err;
    double fraction = json_number_value(progress);
    line->kind = METRIC_PROGRESS;
    line->value = json_is_number(progress) ? progress : NULL;
    return (json_is_null(progress) || json_is_number(progress)) && fraction >= 0 && fraction <= 1 &&
           json_read_text(line->json, "text", &line->text, &err);
}

static bool read_members(struct metric_line *line)
{
    struct err err;
    const json_t *progress = json_object_get(line->json, "progress");
    line->rank = line->at_ms = -1;
    if (!json_read_int(line->json, "rank", 0, LIMIT_GPUS - 1, &line->rank, &err) || line->rank < 0 ||
        !json_read_seconds(line->json, "time", 0, LAST_WALL_MS, &line->at_ms, &err) || line->at_ms < 0 ||
        !json_read_text(line->json, "metric", &line->name, &err)) {
        return false;
    }
    return line->name != NULL ? read_point(line) : progress != NULL && read_progress(line, progress);
}

bool metric_line_read(const char *bytes, size_t length, struct metric_line *ret_line)
{
    struct err err;
    struct metric_line line = {.json = json_parse(bytes, length, &err)};
    if (line.json == NULL || !json_is_object(line.json) || !read_members(&line)) {
        metric_line_finish(&line);
        return false;
    }
    *ret_line = line;
    return true;
}

void metric_line_finish(struct metric_line *line)
{
    json_decref(line->json);
    line->json = NULL;
}

/* --- writing -------------------------------------------------------------------------------------------- */

/* The fewest digits that read back as the same number, and as one with a fraction. */
static void append_real(double value, struct text *out)
{
    char digits[32];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    text_append(out, digits);
    text_append(out, strpbrk(digits, ".e") == NULL ? ".0" : "");
}

static void append_value(const json_t *value, struct text *out)
{
    if (json_is_integer(value)) {
        text_append_int(out, json_integer_value(value));
    } else if (json_is_real(value)) {
        append_real(json_real_value(value), out);
    } else if (json_is_string(value)) {
        text_json_string(out, json_string_value(value), json_string_length(value));
    } else {
        text_append(out, "null");
    }
}

static void append_point(const struct metric_line *line, struct text *out)
{
    text_append(out, ",\"name\":");
    text_json_string(out, line->name, strlen(line->name));
    text_append(out, ",\"value\":");
    append_value(line->value, out);
    if (line->has_step) {
        text_append(out, ",\"step\":");
        text_append_int(out, line->step);
    }
}

static void append_progress(const struct metric_line *line, struct text *out)
{
    text_append(out, ",\"fraction\":");
    append_value(line->value, out);
    text_append(out, ",\"text\":");
    if (line->text != NULL) {
        text_json_string(out, line->text, strlen(line->text));
    } else {
        text_append(out, "null");
    }
}

void metric_line_encode(const struct metric_line *line, struct text *out)
{
    char at[32];
    text_append(out, "{\"rank\":");
    if (line->rank >= 0) {
        text_append_int(out, line->rank);
    } else {
        text_append(out, "null");
    }
    if (line->kind == METRIC_POINT) {
        append_point(line, out);
    } else {
        append_progress(line, out);
    }
    clock_format_wall(line->at_ms, at, sizeof at);
    text_append(out, ",\"time\":\"");
    text_append(out, at);
    text_append(out, "\"}");
}
