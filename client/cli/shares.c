/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl shares`: what projects and their users have used, against what is theirs. */
#include <stdint.h>

#include "client/cli/connect.h"
#include "client/cli/print.h"
#include "client/cli/watch.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

#define LIMIT_SHOWN 100000

struct shares_options {
    bool watch;
    const char *format;
};

static void shares_describe(void *options, struct option_table *table)
{
    struct shares_options *o = options;
    watch_option(table, &o->watch);
    option_add_format(table, &o->format);
}

static const struct column columns[] = {
    {"PROJECT", false}, {"USER", false},  {"GPUS", false},   {"QUEUED", false},
    {"USED", false},    {"SHARE", false}, {"TARGET", false}, {"TURN", false},
};

static void add_percent(struct grid *grid, const json_t *value)
{
    grid_addf(grid, "%.1f %%", 100 * json_number_value(value));
}

/* "2 h 05 min later" */
static void add_turn(struct grid *grid, double delay_s)
{
    char span[32];
    double size_s = delay_s < 0 ? -delay_s : delay_s;
    text_from_duration_ms((int64_t)(size_s * 1000), span, sizeof span);
    if (size_s < 1) {
        grid_add(grid, NULL);
    } else {
        grid_addf(grid, "%s %s", span, delay_s < 0 ? "earlier" : "later");
    }
}

static void add_row(struct grid *grid, const char *project, const char *user, const json_t *account)
{
    grid_add(grid, project);
    grid_add(grid, user);
    grid_addf(grid, "%lld", (long long)json_integer_value(json_object_get(account, "gpus")));
    grid_addf(grid, "%lld", (long long)json_integer_value(json_object_get(account, "queued_jobs")));
    grid_addf(grid, "%.1f GPU h", json_number_value(json_object_get(account, "used_gpu_hours")));
    add_percent(grid, json_object_get(account, "share"));
    add_percent(grid, json_object_get(account, "target"));
    add_turn(grid, json_number_value(json_object_get(account, "delay_s")));
}

static void add_project(struct grid *grid, const json_t *account)
{
    const char *name = json_string_value(json_object_get(account, "name"));
    size_t i;
    json_t *user;
    add_row(grid, name, NULL, account);
    json_array_foreach (json_object_get(account, "users"), i, user) {
        add_row(grid, name, json_string_value(json_object_get(user, "name")), user);
    }
}

/* Users as a whole have no share: they share within their projects. */
static json_t *projects_of(const json_t *accounts)
{
    json_t *projects = json_array();
    size_t i;
    json_t *account;
    json_array_foreach (accounts, i, account) {
        if (json_object_get(account, "share") != NULL) {
            json_array_append(projects, account);
        }
    }
    return projects;
}

static bool shares_show(struct api *api, const void *closure, struct text *out, bool *ret_last,
                        struct err *err)
{
    const struct shares_options *options = closure;
    enum print_format format = print_format(options->format);
    autojson json_t *accounts = api_list(api, "/v1/accounts", "accounts", "cursor", LIMIT_SHOWN, err);
    *ret_last = false;
    if (accounts == NULL) {
        return false;
    }
    autojson json_t *projects = projects_of(accounts);
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_list(format, "projects", projects, out);
        return true;
    }
    autogrid struct grid *grid = grid_create(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    json_t *project;
    json_array_foreach (projects, i, project) {
        add_project(grid, project);
    }
    grid_print(grid, format == FORMAT_WIDE, print_width(), print_colour(), out);
    return true;
}

static bool shares_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct shares_options *options = call->options;
    autoapi struct api *api = NULL;
    struct watch watch = {.show = shares_show, .options = options, .format = print_format(options->format)};
    return connect_controller(call, false, &api, err) && watch_run(api, &watch, options->watch, err);
}

const struct verb verb_shares = {
    .name = "shares",
    .summary = "Show what projects and users have used, against their fair shares.",
    .details =
        "Past use counts half after the controller's --share-half-life. SHARE is the part of all use that "
        "was "
        "this one's,\nTARGET the part that its weight gives it. TURN is by how much its waiting jobs are "
        "put off or brought forward:\nan hour for each doubling, three at most; for users within a project "
        "half of that.",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct shares_options),
    .describe = shares_describe,
    .run = shares_run,
};
