/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl quotas`: what projects and users may use, and what they use now. Changes are quotas_set.c's. */
#include "client/cli/quotas.h"

#include <stdint.h>
#include <string.h>

#include "client/cli/connect.h"
#include "client/cli/print.h"
#include "client/cli/watch.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

#define LIMIT_SHOWN 100000

struct list_options {
    bool watch;
    const char *format;
};

static void list_describe(void *options, struct option_table *table)
{
    struct list_options *o = options;
    watch_option(table, &o->watch);
    option_add_format(table, &o->format);
}

static const struct column columns[] = {
    {"KIND", false}, {"NAME", false}, {"RUNNING", false},  {"QUEUED", false}, {"HOURS", false},
    {"TYPE", false}, {"GPUS", false}, {"BORROWED", false}, {"QUOTA", false},  {"MOST", false},
};

/* "3 of 20" */
static void add_jobs(struct grid *grid, const json_t *account, const char *count, const char *limit)
{
    const json_t *most = json_object_get(json_object_get(account, "limits"), limit);
    long long used = (long long)json_integer_value(json_object_get(account, count));
    if (most != NULL) {
        grid_addf(grid, "%lld of %lld", used, (long long)json_integer_value(most));
    } else {
        grid_addf(grid, "%lld", used);
    }
}

static void add_hours(struct grid *grid, const json_t *account)
{
    const json_t *limit = json_object_get(json_object_get(account, "limits"), "gpu_hours");
    char period[32];
    if (limit == NULL) {
        grid_add(grid, NULL);
        return;
    }
    text_from_duration_ms(1000 * json_integer_value(json_object_get(limit, "period_s")), period,
                          sizeof period);
    grid_addf(grid, "%.1f of %.15g in %s", json_number_value(json_object_get(account, "period_gpu_hours")),
              json_number_value(json_object_get(limit, "hours")), period);
}

static void add_bound(struct grid *grid, const json_t *value)
{
    if (json_is_integer(value)) {
        grid_addf(grid, "%lld", (long long)json_integer_value(value));
    } else {
        grid_add(grid, NULL);
    }
}

static void begin_row(struct grid *grid, const json_t *account)
{
    grid_add(grid, json_string_value(json_object_get(account, "kind")));
    grid_add(grid, json_string_value(json_object_get(account, "name")));
    add_jobs(grid, account, "running_jobs", "max_running_jobs");
    add_jobs(grid, account, "queued_jobs", "max_queued_jobs");
    add_hours(grid, account);
}

/* Of all types together. */
static void add_total(struct grid *grid, const json_t *account)
{
    const json_t *bounds = json_object_get(json_object_get(account, "limits"), "max_gpus");
    begin_row(grid, account);
    grid_add(grid, "all");
    add_bound(grid, json_object_get(account, "gpus"));
    grid_add(grid, NULL);
    grid_add(grid, NULL);
    add_bound(grid, json_object_get(bounds, "*"));
}

static void add_type(struct grid *grid, const json_t *account, const json_t *use)
{
    long long gpus = (long long)json_integer_value(json_object_get(use, "gpus"));
    long long entitled = (long long)json_integer_value(json_object_get(use, "entitled"));
    begin_row(grid, account);
    grid_add(grid, json_string_value(json_object_get(use, "gpu_type")));
    grid_addf(grid, "%lld", gpus);
    grid_addf(grid, "%lld", gpus - entitled);
    add_bound(grid, json_object_get(use, "quota"));
    add_bound(grid, json_object_get(use, "max_gpus"));
}

static void add_account(struct grid *grid, const json_t *account)
{
    const json_t *uses = json_object_get(account, "use");
    const json_t *bounds = json_object_get(json_object_get(account, "limits"), "max_gpus");
    size_t i;
    json_t *use;
    if (json_array_size(uses) != 1 || json_object_get(bounds, "*") != NULL) {
        add_total(grid, account);
    }
    json_array_foreach (uses, i, use) {
        add_type(grid, account, use);
    }
}

static bool list_show(struct api *api, const void *closure, struct text *out, bool *ret_last, struct err *err)
{
    const struct list_options *options = closure;
    enum print_format format = print_format(options->format);
    autojson json_t *accounts = api_list(api, "/v1/accounts", "accounts", "cursor", LIMIT_SHOWN, err);
    *ret_last = false;
    if (accounts == NULL) {
        return false;
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_list(format, "accounts", accounts, out);
        return true;
    }
    autogrid struct grid *grid = grid_create(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    json_t *account;
    json_array_foreach (accounts, i, account) {
        add_account(grid, account);
    }
    grid_print(grid, format == FORMAT_WIDE, print_width(), print_colour(), out);
    return true;
}

static bool list_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct list_options *options = call->options;
    autoapi struct api *api = NULL;
    struct watch watch = {.show = list_show, .options = options, .format = print_format(options->format)};
    return connect_controller(call, false, &api, err) && watch_run(api, &watch, options->watch, err);
}

static const struct verb verb_list = {
    .name = "list",
    .summary = "List what projects and users may use, and what they use.",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct list_options),
    .describe = list_describe,
    .run = list_run,
};

static const struct verb *const nested[] = {&verb_list, &verb_quotas_set, &verb_quotas_unset, NULL};

const struct verb verb_quotas = {
    .name = "quotas",
    .summary = "Show and set what projects and users may use.",
    .nested = nested,
};
