/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl usage`: who used which GPUs for how long, how much of that they were idle, and what it cost. */
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/common/watch.h"
#include "client/cli/transport/api.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"

#define DAY_MS         86400000LL
#define SECONDS_A_HOUR 3600.0
#define JOULES_A_KWH   3600000.0

struct usage_options {
    int64_t since_ms, until_ms; /* so long ago */
    const char *by, *step, *project, *owner;
    bool csv;
};

static const struct option_row rows[] = {
    ROW_DURATION(struct usage_options, since_ms, 0, "since", "from so long ago on (default 1d)",
                 .absent = DAY_MS),
    ROW_DURATION(struct usage_options, until_ms, 0, "until", "up to so long ago (default: now)"),
    ROW_TEXT(struct usage_options, by, 0, "by", "NAME,...",
             "divide by project, owner, pool, gpu_type, reserved (default owner)", .absent_text = "owner"),
    ROW_CHOICE(struct usage_options, step, 0, "step", "STEP", "divide by time, too", "hour|day"),
    ROW_TEXT(struct usage_options, project, 0, "project", "NAME", "only that of this project"),
    ROW_TEXT(struct usage_options, owner, 0, "owner", "NAME", "only that of this person"),
    ROW_FLAG(struct usage_options, csv, 0, "csv", "as CSV, with seconds and joules"),
    ROW_WATCH,
    ROW_FORMAT,
    ROWS_END};

/* --- cells ---------------------------------------------------------------------------------------------- */

static double number_of(const json_t *row, const char *member)
{
    return json_number_value(json_object_get(row, member));
}

static void show_hours(const json_t *row, const char *member, struct text *out)
{
    text_printf(out, "%.2f", number_of(row, member) / SECONDS_A_HOUR);
}

/* Of the time in which somebody knew how the GPUs were used. */
static void show_idle(const json_t *row, const char *member, struct text *out)
{
    double measured = number_of(row, "measured_gpu_seconds");
    if (measured > 0) {
        text_printf(out, "%.0f %%", 100 * number_of(row, member) / measured);
    }
}

static void show_energy(const json_t *row, const char *member, struct text *out)
{
    if (number_of(row, member) > 0) {
        text_printf(out, "%.2f", number_of(row, member) / JOULES_A_KWH);
    }
}

static void show_cost(const json_t *row, const char *member, struct text *out)
{
    text_printf(out, "%.2f", number_of(row, member));
}

static const struct column names[] = {
    COLUMN("AT", "at", cell_time),          COLUMN("PROJECT", "project", cell_plain),
    COLUMN("USER", "owner", cell_plain),    COLUMN("POOL", "pool", cell_plain),
    COLUMN("TYPE", "gpu_type", cell_plain), COLUMN("RESERVED", "reserved", cell_yes),
};

static const struct column sums[] = {
    COLUMN("GPU H", "gpu_seconds", show_hours),  COLUMN("IDLE", "idle_gpu_seconds", show_idle),
    COLUMN("KWH", "energy_joules", show_energy), COLUMN("RUNS", "attempts", cell_plain),
    COLUMN("COST", "cost", show_cost),
};

#define NAME_COUNT (sizeof names / sizeof names[0])
#define SUM_COUNT  (sizeof sums / sizeof sums[0])

/* Whether the answer has the column: the time only with a step, a name that was asked for, the cost where
 * there are prices. */
static bool has_column(const json_t *usage, const struct column *column)
{
    const json_t *first = json_array_get(json_object_get(usage, "usage"), 0);
    if (strcmp(column->member, "at") == 0) {
        return !json_is_null(json_object_get(usage, "step_s"));
    }
    return json_object_get(first, column->member) != NULL;
}

static size_t choose_columns(const json_t *usage, struct column ret_columns[NAME_COUNT + SUM_COUNT])
{
    size_t count = 0;
    for (size_t i = 0; i < NAME_COUNT + SUM_COUNT; i++) {
        const struct column *column = i < NAME_COUNT ? &names[i] : &sums[i - NAME_COUNT];
        if (has_column(usage, column)) {
            ret_columns[count++] = *column;
        }
    }
    return count;
}

/* --- CSV ------------------------------------------------------------------------------------------------ */

/* Names have no commas and quotes. */
static void put_cell(const json_t *value, struct text *out)
{
    if (json_is_string(value)) {
        text_append(out, json_string_value(value));
    } else if (json_is_boolean(value)) {
        text_append(out, json_is_true(value) ? "true" : "false");
    } else if (json_is_integer(value)) {
        text_printf(out, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        text_printf(out, "%.6g", json_real_value(value));
    }
}

static void put_csv(const json_t *usage, struct text *out)
{
    const json_t *lines = json_object_get(usage, "usage");
    const char *separator = "", *member;
    size_t i;
    json_t *line, *value;
    json_object_foreach (json_array_get(lines, 0), member, value) {
        text_printf(out, "%s%s", separator, member);
        separator = ",";
    }
    text_append(out, "\n");
    json_array_foreach (lines, i, line) {
        separator = "";
        json_object_foreach (line, member, value) {
            text_append(out, separator);
            put_cell(value, out);
            separator = ",";
        }
        text_append(out, "\n");
    }
}

/* --- the verb ------------------------------------------------------------------------------------------- */

static void put_total(const json_t *usage, struct text *out)
{
    const json_t *total = json_object_get(usage, "total");
    const char *currency = json_string_of(usage, "currency");
    text_append(out, "in all: ");
    show_hours(total, "gpu_seconds", out);
    text_append(out, " GPU h");
    if (json_object_get(total, "cost") != NULL) {
        text_append(out, ", ");
        show_cost(total, "cost", out);
        text_printf(out, "%s%s", currency != NULL ? " " : "", currency != NULL ? currency : "");
    }
    text_append(out, "\n");
}

static void print_table(const struct call *call, const json_t *usage, struct text *out)
{
    const json_t *lines = json_object_get(usage, "usage");
    struct column columns[NAME_COUNT + SUM_COUNT];
    const struct listing listing = {
        .name = "usage", .columns = columns, .count = choose_columns(usage, columns), .uncut = true};
    if (json_array_size(lines) > 0) {
        list_print(call, &listing, lines, out);
    }
    put_total(usage, out);
}

static bool show(const struct call *call, struct text *out, bool *ret_last, struct err *err)
{
    const struct usage_options *options = call->options;
    autotext struct text path = {0};
    int64_t now_ms = clock_wall_ms();
    text_append(&path, "/v1/usage");
    pages_number(&path, "since", now_ms - options->since_ms);
    pages_number(&path, "until", options->until_ms > 0 ? now_ms - options->until_ms : NOT_GIVEN);
    api_query(&path, "by", options->by);
    api_query(&path, "step", options->step);
    api_query(&path, "project", options->project);
    api_query(&path, "owner", options->owner);
    autojson json_t *usage = api_read(call->api, path.bytes, err);
    if (usage != NULL && options->csv) {
        put_csv(usage, out);
        return true;
    }
    return answer_document(call, usage, print_table, out);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    return watch_run(call, show, err);
}

const struct verb verb_usage = {
    .name = "usage",
    .summary = "Show who used which GPUs for how long.",
    .details =
        "A job uses its GPUs from the moment that they are its own until they are free again. Times are "
        "whole hours of UTC.\nIDLE is the part of the measured time in which a GPU was used less than 5 %. "
        "It and the energy are known\nonce the job has ended. COST follows from gpuctld --prices.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct usage_options),
    .rows = {rows},
    .run = run,
};
