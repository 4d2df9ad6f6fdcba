/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl pools`: lists the pools, and says which of the reserved ones lend. */
#include <stdint.h>

#include "client/cli/connect.h"
#include "client/cli/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

#define LIMIT_SHOWN 100000

/* --- list --- */

struct list_options {
    const char *format;
};

static void list_describe(void *options, struct option_table *table)
{
    struct list_options *o = options;
    option_add_format(table, &o->format);
}

static const struct column columns[] = {{"NAME", false}, {"KIND", false}, {"LENDS", false},
                                        {"TYPE", false}, {"GPUS", false}, {"FREE", false}};

static void add_pool(struct grid *grid, const json_t *pool)
{
    size_t i;
    json_t *type;
    json_array_foreach (json_object_get(pool, "types"), i, type) {
        grid_add(grid, json_string_value(json_object_get(pool, "name")));
        grid_add(grid, json_string_value(json_object_get(pool, "kind")));
        grid_add(grid, json_is_true(json_object_get(pool, "lend")) ? "yes" : "no");
        grid_add(grid, json_string_value(json_object_get(type, "gpu_type")));
        grid_addf(grid, "%lld", (long long)json_integer_value(json_object_get(type, "gpus")));
        grid_addf(grid, "%lld", (long long)json_integer_value(json_object_get(type, "free")));
    }
}

static bool list_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct list_options *options = call->options;
    enum print_format format = print_format(options->format);
    autoapi struct api *api = NULL;
    autotext struct text out = {0};
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    autojson json_t *pools = api_list(api, "/v1/pools", "pools", "cursor", LIMIT_SHOWN, err);
    if (pools == NULL) {
        return false;
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_list(format, "pools", pools, &out);
        return print_out(&out, err);
    }
    autogrid struct grid *grid = grid_create(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    json_t *pool;
    json_array_foreach (pools, i, pool) {
        add_pool(grid, pool);
    }
    grid_print(grid, true, print_width(), false, &out);
    return print_out(&out, err);
}

static const struct verb verb_list = {
    .name = "list",
    .summary = "List the pools with their GPUs.",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct list_options),
    .describe = list_describe,
    .run = list_run,
};

/* --- set --- */

struct set_options {
    bool lend;
    const char *format;
};

static void set_describe(void *options, struct option_table *table)
{
    struct set_options *o = options;
    option_flag(table, 0, "lend",
                "jobs that ask for on-demand GPUs may borrow what is free; else they may not", &o->lend);
    option_add_format(table, &o->format);
}

static bool set_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct set_options *options = call->options;
    enum print_format format = print_format(options->format);
    autoapi struct api *api = NULL;
    autotext struct text path = {0};
    autotext struct text out = {0};
    autojson json_t *body = json_pack("{s:b}", "lend", options->lend);
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    text_append(&path, "/v1/pools/");
    api_part(&path, call->rest[0]);
    autojson json_t *pool = api_change(api, "PUT", path.bytes, body, err);
    if (pool == NULL) {
        return false;
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_json(pool, &out);
        return print_out(&out, err);
    }
    print_note("pool %s %s", call->rest[0], options->lend ? "lends" : "does not lend");
    return true;
}

static const struct verb verb_set = {
    .name = "set",
    .arguments = "NAME --lend | --no-lend",
    .summary = "Say whether a reserved pool lends what is free.",
    .details = "What was borrowed is given back when work that is entitled to it wants it.",
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct set_options),
    .describe = set_describe,
    .run = set_run,
};

static const struct verb *const nested[] = {&verb_list, &verb_set, NULL};

const struct verb verb_pools = {
    .name = "pools",
    .summary = "List the pools; let reserved ones lend.",
    .nested = nested,
};
