/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the tables. A column reads one row and knows nothing of the others. What a node uses is in
 * the row's member "use", as top_sample_use makes it. */
#include "client/cli/top/top_columns.h"

#include <math.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "proto/base/text/json.h"

#define BAR_CELLS    8
#define FULL_PERCENT 100.0

/* --- cells of any row ----------------------------------------------------------------------------------- */

static void show_plain(const json_t *row, const char *member, const struct top_look *look, struct text *out)
{
    cell_plain(row, member, out);
}

static double number_of(const json_t *row, const char *member)
{
    const json_t *value = json_object_get(row, member);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static double time_of(const json_t *row, const char *member)
{
    int64_t wall_ms = print_time_of(row, member);
    return wall_ms > 0 ? (double)wall_ms : (double)NAN;
}

/* Longer times are larger. */
static double age_of(const json_t *row, const char *member)
{
    return -time_of(row, member);
}

/* How long it is since then. */
static void show_age(const json_t *row, const char *member, const struct top_look *look, struct text *out)
{
    int64_t from_ms = print_time_of(row, member);
    char span[32];
    if (from_ms > 0) {
        text_from_duration_ms(look->now_ms > from_ms ? look->now_ms - from_ms : 0, span, sizeof span);
        text_append(out, span);
    }
}

static void append_percent(const struct top_look *look, double percent, struct text *out)
{
    if (!isnan(percent)) {
        top_bar(look, percent / FULL_PERCENT, BAR_CELLS, out);
        text_printf(out, " %3.0f%%", percent);
    }
}

static void append_bytes(const struct top_look *look, double used, double total, struct text *out)
{
    char bytes[32];
    if (isnan(used)) {
        return;
    }
    if (total > 0) {
        top_bar(look, used / total, BAR_CELLS, out);
        text_append(out, " ");
    }
    print_bytes((int64_t)used, bytes);
    text_append(out, bytes);
}

static const char *paint_bar(const char *cell)
{
    return TOP_GREEN;
}

/* --- what nodes and ranks use --------------------------------------------------------------------------- */

static double use_of(const json_t *row, const char *member)
{
    return number_of(json_object_get(row, "use"), member);
}

static void show_use(const json_t *row, const char *member, const struct top_look *look, struct text *out)
{
    append_percent(look, use_of(row, member), out);
}

static void show_gpu_memory(const json_t *row, const char *member, const struct top_look *look,
                            struct text *out)
{
    append_bytes(look, use_of(row, member), use_of(row, "gpu_memory_total_bytes"), out);
}

static void show_memory(const json_t *row, const char *member, const struct top_look *look, struct text *out)
{
    append_bytes(look, use_of(row, member), NAN, out);
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

static json_int_t integer_of(const json_t *row, const char *member)
{
    return json_integer_value(json_object_get(row, member));
}

json_int_t top_node_used(const json_t *node)
{
    json_int_t used =
        integer_of(node, "gpus") - integer_of(node, "free_gpus") - integer_of(node, "unavailable_gpus");
    return used > 0 ? used : 0;
}

static double used_of(const json_t *row, const char *member)
{
    return (double)top_node_used(row);
}

static void show_used(const json_t *row, const char *member, const struct top_look *look, struct text *out)
{
    json_int_t used = top_node_used(row), all = integer_of(row, member);
    top_bar(look, all > 0 ? (double)used / (double)all : 0, BAR_CELLS, out);
    text_printf(out, " %lld/%lld", (long long)used, (long long)all);
}

/* Why it takes no work, else why some of its GPUs do not. */
static void show_node_reason(const json_t *row, const char *member, const struct top_look *look,
                             struct text *out)
{
    const char *why = json_string_of(row, "unavailable");
    json_int_t count = integer_of(row, "unavailable_gpus");
    cell_plain(row, member, out);
    if (out->length == 0 && count > 0) {
        text_printf(out, "%lld GPU%s unavailable: %s", (long long)count, count == 1 ? "" : "s",
                    why != NULL ? why : "");
    }
}

/* What a driver says of utilization is of the second before. */
#define HELP_GPU_USE    "mean utilization of its GPUs in one second: that of the newest sample, one each 30 s"
#define HELP_GPU_MEMORY "of all its GPUs, in that sample"
#define HELP_CPU        "of all CPUs of the node, since the sample before"

static const struct top_column node_columns[] = {
    {.title = "NAME", .member = "name", .show = show_plain},
    {.title = "STATE", .member = "state", .show = show_plain, .paint = print_paint},
    {.title = "POOL", .member = "pool", .show = show_plain, .optional = true},
    {.title = "TYPE", .member = "gpu_type", .show = show_plain},
    {.title = "GPUS",
     .help = "held by jobs, of all that the node has",
     .member = "gpus",
     .show = show_used,
     .value = used_of,
     .paint = paint_bar},
    {.title = "GPU USE",
     .help = HELP_GPU_USE,
     .member = "gpu_percent",
     .show = show_use,
     .value = use_of,
     .paint = paint_bar},
    {.title = "GPU MEMORY",
     .help = HELP_GPU_MEMORY,
     .member = "gpu_memory_bytes",
     .show = show_gpu_memory,
     .value = use_of,
     .optional = true,
     .paint = paint_bar},
    {.title = "CPU",
     .help = HELP_CPU,
     .member = "cpu_percent",
     .show = show_use,
     .value = use_of,
     .optional = true,
     .paint = paint_bar},
    {.title = "MEMORY",
     .member = "memory_bytes",
     .show = show_memory,
     .value = use_of,
     .right = true,
     .optional = true},
    {.title = "REASON", .member = "reason", .show = show_node_reason},
};

/* --- jobs ----------------------------------------------------------------------------------------------- */

/* How far an array is, then why. */
static void show_job_reason(const json_t *row, const char *member, const struct top_look *look,
                            struct text *out)
{
    const json_t *array = json_object_get(row, "array");
    if (json_is_object(array)) {
        json_int_t ended =
            integer_of(array, "succeeded") + integer_of(array, "failed") + integer_of(array, "canceled");
        text_printf(out, "%lld of %lld tasks have ended, %lld run", (long long)ended,
                    (long long)integer_of(array, "tasks"), (long long)integer_of(array, "running"));
        text_append(out, json_string_of(row, member) != NULL ? "; " : "");
    }
    cell_plain(row, member, out);
}

#define JOB_IDENTITY                                                                                         \
    {.title = "ID", .member = "id", .show = show_plain},                                                     \
        {.title = "NAME", .member = "name", .show = show_plain},                                             \
        {.title = "STATE", .member = "state", .show = show_plain, .paint = print_paint},                     \
        {.title = "OWNER", .member = "owner", .show = show_plain},                                           \
        {.title = "GPUS", .member = "gpus", .show = show_plain, .value = number_of, .right = true},          \
        {.title = "TYPE", .member = "gpu_type", .show = show_plain, .optional = true},
#define JOB_REASON {.title = "REASON", .member = "reason", .show = show_job_reason},

static const struct top_column job_columns[] = {
    JOB_IDENTITY{.title = "POOL", .member = "pool", .show = show_plain, .optional = true},
    {.title = "TIME",
     .help = "since its ranks were started for the first time",
     .member = "started_at",
     .show = show_age,
     .value = age_of,
     .right = true},
    JOB_REASON};

static const struct top_column queue_columns[] = {
    JOB_IDENTITY{
        .title = "PRIORITY", .member = "priority", .show = show_plain, .value = number_of, .right = true},
    {.title = "WAITS",
     .help = "since its submission",
     .member = "created_at",
     .show = show_age,
     .value = age_of,
     .right = true},
    JOB_REASON};

/* --- ranks ---------------------------------------------------------------------------------------------- */

static const struct top_column rank_columns[] = {
    {.title = "RANK", .member = "rank", .show = show_plain, .value = number_of, .right = true},
    {.title = "NODE", .member = "node", .show = show_plain},
    {.title = "STATE", .member = "state", .show = show_plain, .paint = print_paint},
    {.title = "DEVICES", .member = "devices", .show = show_plain},
    {.title = "GPU USE",
     .help = HELP_GPU_USE,
     .member = "gpu_percent",
     .show = show_use,
     .value = use_of,
     .paint = paint_bar},
    {.title = "GPU MEMORY",
     .help = HELP_GPU_MEMORY,
     .member = "gpu_memory_bytes",
     .show = show_gpu_memory,
     .value = use_of,
     .paint = paint_bar},
    {.title = "CPU OF NODE",
     .help = HELP_CPU,
     .member = "cpu_percent",
     .show = show_use,
     .value = use_of,
     .paint = paint_bar},
    {.title = "MEMORY OF NODE",
     .member = "memory_bytes",
     .show = show_memory,
     .value = use_of,
     .right = true,
     .optional = true},
};

#define COLUMNS_OF(columns_) .columns = (columns_), .count = sizeof(columns_) / sizeof(columns_)[0]

const struct top_table *top_table_of(enum top_table_id id)
{
    static const struct top_table tables[TOP_TABLES] = {
        [TOP_NODES] = {.name = "nodes", .key = "name", COLUMNS_OF(node_columns)},
        [TOP_JOBS] = {.name = "jobs", .key = "id", COLUMNS_OF(job_columns), .order = 7},
        [TOP_QUEUE] = {.name = "queue", .key = "id", COLUMNS_OF(queue_columns), .order = 6, .reverse = true},
        [TOP_RANKS] = {.name = "ranks", .key = "rank", COLUMNS_OF(rank_columns)},
    };
    return &tables[id];
}
