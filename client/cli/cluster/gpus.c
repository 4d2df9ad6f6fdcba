/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl gpus`: lists each GPU of all nodes with what it does and who holds it. */
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/common/watch.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

#define ONE_GIB 1073741824.0

struct gpus_options {
    const char *node, *pool, *gpu_type, *state, *owner;
    bool csv;
};

static const struct option_row rows[] = {
    ROW_TEXT(struct gpus_options, node, 'n', "node", "NAME", "only those of this node"),
    ROW_TEXT(struct gpus_options, pool, 0, "pool", "NAME", "only those of nodes in this pool"),
    ROW_TEXT(struct gpus_options, gpu_type, 0, "gpu-type", "TYPE", "only those of this type"),
    ROW_TEXT(struct gpus_options, state, 's', "state", "STATE,...",
             "only those that are allocated, unavailable, silent, drained or free"),
    ROW_TEXT(struct gpus_options, owner, 0, "owner", "NAME", "only those that jobs of this person hold"),
    ROW_FLAG(struct gpus_options, csv, 0, "csv", "as CSV, with all that is known"),
    ROW_QUIET("UUIDs alone"),
    ROW_WATCH,
    ROW_FORMAT,
    ROWS_END};

/* --- cells ---------------------------------------------------------------------------------------------- */

static void show_holder(const json_t *gpu, const char *member, struct text *out)
{
    cell_plain(json_object_get(gpu, "holder"), member, out);
}

static void show_since(const json_t *gpu, const char *member, struct text *out)
{
    const json_t *holder = json_object_get(gpu, "holder");
    if (json_is_object(holder)) {
        cell_time(holder, member, out);
    }
}

/* A number of the sample with its unit; nothing where the GPU does not tell. */
static void show_number(const json_t *gpu, const char *member, const char *unit, struct text *out)
{
    const json_t *value = json_object_get(json_object_get(gpu, "sample"), member);
    if (json_is_integer(value)) {
        text_append_int(out, json_integer_value(value));
        text_append(out, unit);
    }
}

static void show_percent(const json_t *gpu, const char *member, struct text *out)
{
    show_number(gpu, member, " %", out);
}

static void show_celsius(const json_t *gpu, const char *member, struct text *out)
{
    show_number(gpu, member, " C", out);
}

static void show_watts(const json_t *gpu, const char *member, struct text *out)
{
    show_number(gpu, member, " W", out);
}

/* "20.5/80 GiB" */
static void show_memory(const json_t *gpu, const char *member, struct text *out)
{
    const json_t *sample = json_object_get(gpu, "sample");
    const json_t *used = json_object_get(sample, member);
    const json_t *total = json_object_get(sample, "memory_total_bytes");
    if (json_is_integer(used) && json_is_integer(total)) {
        text_printf(out, "%.1f/%.0f GiB", json_number_value(used) / ONE_GIB,
                    json_number_value(total) / ONE_GIB);
    }
}

static const struct column columns[] = {
    COLUMN("NODE", "node", cell_plain),
    COLUMN("GPU", "index", cell_plain),
    WIDE_COLUMN("UUID", "uuid", cell_plain),
    COLUMN("TYPE", "gpu_type", cell_plain),
    WIDE_COLUMN("POOL", "pool", cell_plain),
    COLUMN("STATE", "state", cell_plain),
    COLUMN("UTIL", "utilization_percent", show_percent),
    COLUMN("MEM", "memory_bytes", show_memory),
    COLUMN("TEMP", "temperature_c", show_celsius),
    WIDE_COLUMN("POWER", "power_w", show_watts),
    COLUMN("JOB", "job", show_holder),
    WIDE_COLUMN("NAME", "name", show_holder),
    WIDE_COLUMN("RANK", "rank", show_holder),
    COLUMN("OWNER", "owner", show_holder),
    WIDE_COLUMN("PROJECT", "project", show_holder),
    WIDE_COLUMN("SINCE", "since", show_since),
    WIDE_COLUMN("NODE STATE", "node_state", cell_plain),
    WIDE_COLUMN("UNAVAILABLE", "unavailable", cell_plain),
};

static const struct listing gpus = {.name = "gpus", LIST_COLUMNS(columns), .key = "uuid"};

/* --- CSV ------------------------------------------------------------------------------------------------ */

/* The columns, and the member that has them; NULL: the GPU itself. */
static const struct {
    const char *within, *member;
} fields[] = {
    {NULL, "node"},
    {NULL, "index"},
    {NULL, "uuid"},
    {NULL, "gpu_type"},
    {NULL, "slot"},
    {NULL, "pool"},
    {NULL, "pool_kind"},
    {NULL, "node_state"},
    {NULL, "state"},
    {NULL, "unavailable"},
    {"holder", "job"},
    {"holder", "name"},
    {"holder", "owner"},
    {"holder", "project"},
    {"holder", "rank"},
    {"holder", "since"},
    {"sample", "age_s"},
    {"sample", "utilization_percent"},
    {"sample", "memory_bytes"},
    {"sample", "memory_total_bytes"},
    {"sample", "power_w"},
    {"sample", "temperature_c"},
};
#define FIELD_COUNT (sizeof fields / sizeof fields[0])

/* Reasons of nodes may have commas and quotes. */
static void put_quoted(const char *text, struct text *out)
{
    if (strpbrk(text, ",\"") == NULL) {
        text_append(out, text);
        return;
    }
    text_append(out, "\"");
    for (; *text != '\0'; text++) {
        const char twice[3] = {*text, *text == '"' ? '"' : '\0'};
        text_append(out, twice);
    }
    text_append(out, "\"");
}

static void put_line(const json_t *gpu, struct text *out)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        autotext struct text cell = {0};
        const json_t *holder = fields[i].within != NULL ? json_object_get(gpu, fields[i].within) : gpu;
        cell_plain(holder, fields[i].member, &cell);
        text_append(out, i > 0 ? "," : "");
        if (cell.length > 0) {
            print_disarm(cell.bytes);
            put_quoted(cell.bytes, out);
        }
    }
    text_append(out, "\n");
}

static void put_csv(const json_t *items, struct text *out)
{
    size_t i;
    json_t *gpu;
    for (i = 0; i < FIELD_COUNT; i++) {
        text_printf(out, "%s%s", i > 0 ? "," : "", fields[i].member);
    }
    text_append(out, "\n");
    json_array_foreach (items, i, gpu) {
        put_line(gpu, out);
    }
}

/* --- the verb ------------------------------------------------------------------------------------------- */

static bool show(const struct call *call, struct text *out, bool *ret_last, struct err *err)
{
    const struct gpus_options *options = call->options;
    autotext struct text path = {0};
    text_append(&path, "/v1/gpus");
    api_query(&path, "node", options->node);
    api_query(&path, "pool", options->pool);
    api_query(&path, "gpu_type", options->gpu_type);
    api_query(&path, "state", options->state);
    api_query(&path, "owner", options->owner);
    autojson json_t *items = api_list(call->api, path.bytes, "gpus", "cursor", LIMIT_LISTED, err);
    *ret_last = false;
    if (items != NULL && options->csv) {
        put_csv(items, out);
    } else if (items != NULL) {
        list_print(call, &gpus, items, out);
    }
    return items != NULL;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    return watch_run(call, show, err);
}

const struct verb verb_gpus = {
    .name = "gpus",
    .summary = "List each GPU with what it does and who holds it.",
    .details =
        "UTIL, MEM and TEMP are the newest that the node has said. Holders are some seconds old at most; "
        "users see those\nof their own jobs. UNAVAILABLE of -o wide says why no job can get a GPU.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct gpus_options),
    .rows = {rows},
    .run = run,
};
