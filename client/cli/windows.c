/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl nodes window`: makes, lists and removes maintenance windows. */
#include "client/cli/windows.h"

#include <stdint.h>
#include <string.h>

#include "client/cli/connect.h"
#include "client/cli/moment.h"
#include "client/cli/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"
#include "proto/wire/views.h"

#define MOMENT_HINT "write it as 2026-11-21T09:30:00Z or +2h"

/* --- list --- */

struct list_options {
    bool quiet;
    const char *format;
};

static void list_describe(void *options, struct option_table *table)
{
    struct list_options *o = options;
    option_flag(table, 'q', "quiet", "ids alone", &o->quiet);
    option_add_format(table, &o->format);
}

static const struct column columns[] = {{"ID", false},    {"NODES", false}, {"FROM", false},
                                        {"UNTIL", false}, {"HARD", false},  {"REASON", false},
                                        {"OWNER", true},  {"CREATED", true}};

/* "a b c", "pool mine" or "all". */
static void add_whose(struct grid *grid, const json_t *item, const struct window_view *window)
{
    autotext struct text whose = {0};
    const json_t *nodes = json_object_get(item, "nodes");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const char *name = json_string_value(json_array_get(nodes, i));
        text_printf(&whose, "%s%s", i > 0 ? " " : "", name != NULL ? name : "?");
    }
    if (window->pool != NULL) {
        text_printf(&whose, "pool %s", window->pool);
    }
    grid_add(grid, whose.length > 0 ? whose.bytes : "all");
}

static bool add_row(struct grid *grid, json_t *item, struct err *err)
{
    struct window_view window;
    char from[32], until[32], created[32];
    if (!window_view_decode(json_incref(item), &window, err)) {
        return false;
    }
    print_time(window.from_ms, from);
    print_time(window.until_ms, until);
    print_time(window.created_ms, created);
    grid_add(grid, window.id);
    add_whose(grid, item, &window);
    grid_add(grid, from);
    grid_add(grid, until);
    grid_add(grid, window.hard ? "yes" : "no");
    grid_add(grid, window.reason);
    grid_add(grid, window.owner);
    grid_add(grid, created);
    window_view_finish(&window);
    return true;
}

static bool show_table(const json_t *windows, bool wide, struct text *out, struct err *err)
{
    autogrid struct grid *grid = grid_create(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    json_t *item;
    json_array_foreach (windows, i, item) {
        if (!add_row(grid, item, err)) {
            return false;
        }
    }
    grid_print(grid, wide, print_width(), false, out);
    return true;
}

static const char *id_of(const json_t *windows, size_t index)
{
    const char *id = json_string_value(json_object_get(json_array_get(windows, index), "id"));
    return id != NULL ? id : "";
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
    autojson json_t *windows = api_list(api, "/v1/windows", "windows", "cursor", LIMIT_WINDOWS, err);
    if (windows == NULL) {
        return false;
    }
    for (size_t i = 0; options->quiet && i < json_array_size(windows); i++) {
        text_printf(&out, "%s\n", id_of(windows, i));
    }
    if (!options->quiet && (format == FORMAT_JSON || format == FORMAT_JSONL)) {
        print_list(format, "windows", windows, &out);
    } else if (!options->quiet && !show_table(windows, format == FORMAT_WIDE, &out, err)) {
        return false;
    }
    return print_out(&out, err);
}

static const struct verb verb_list = {
    .name = "list",
    .summary = "List the windows that are not over.",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct list_options),
    .describe = list_describe,
    .run = list_run,
};

/* --- add --- */

struct add_options {
    const char *pool, *from, *until, *reason;
    bool all, hard;
    const char *format;
};

static void add_describe(void *options, struct option_table *table)
{
    struct add_options *o = options;
    option_text(table, 0, "pool", "NAME", "all nodes of a pool, also those that come later", &o->pool);
    option_flag(table, 0, "all", "all nodes, also those that come later", &o->all);
    option_text(table, 0, "from", "TIME", "2026-11-21T09:30:00Z or +2h (default: now)", &o->from);
    option_text(table, 0, "until", "TIME", "when the nodes take work again", &o->until);
    option_flag(table, 0, "hard", "stop what still runs, its grace before the beginning", &o->hard);
    option_text(table, 0, "reason", "TEXT", "shown to people", &o->reason);
    option_add_format(table, &o->format);
}

/* Whose window it is: exactly one of the three ways. */
static bool put_whose(const struct call *call, json_t *body, struct err *err)
{
    const struct add_options *options = call->options;
    if ((call->rest_count > 0) + (options->pool != NULL) + options->all != 1) {
        return err_field(err, ERR_USAGE, "NAME", NULL, "name nodes, or give --pool, or --all");
    }
    if (options->all) {
        json_object_set_new(body, "all", json_true());
    } else if (options->pool != NULL) {
        json_object_set_new(body, "pool", json_string(options->pool));
    } else {
        json_t *names = json_array();
        for (size_t i = 0; i < call->rest_count; i++) {
            json_array_append_new(names, json_string(call->rest[i]));
        }
        json_object_set_new(body, "nodes", names);
    }
    return true;
}

static bool put_times(const struct add_options *options, json_t *body, struct err *err)
{
    int64_t from_ms, until_ms;
    if (options->until == NULL) {
        return err_field(err, ERR_USAGE, "until", "say when the nodes take work again", "--until is missing");
    }
    if (!moment_read("from", options->from != NULL ? options->from : "+0s", MOMENT_HINT, &from_ms, err) ||
        !moment_read("until", options->until, MOMENT_HINT, &until_ms, err)) {
        return false;
    }
    json_object_set_new(body, "from", moment_json(from_ms));
    json_object_set_new(body, "until", moment_json(until_ms));
    return true;
}

static json_t *make_body(const struct call *call, struct err *err)
{
    const struct add_options *options = call->options;
    autojson json_t *body = json_pack("{s:b}", "hard", options->hard);
    if (!put_whose(call, body, err) || !put_times(options, body, err)) {
        return NULL;
    }
    if (options->reason != NULL && json_object_set_new(body, "reason", json_string(options->reason)) != 0) {
        err_field(err, ERR_USAGE, "reason", NULL, "--reason is not UTF-8");
        return NULL;
    }
    return json_incref(body);
}

static bool add_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct add_options *options = call->options;
    enum print_format format = print_format(options->format);
    autoapi struct api *api = NULL;
    autotext struct text out = {0};
    autojson json_t *body = make_body(call, err);
    if (body == NULL || !connect_controller(call, false, &api, err)) {
        return false;
    }
    autojson json_t *window = api_post(api, "/v1/windows", body, NULL, err);
    if (window == NULL) {
        return false;
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_json(window, &out);
    } else {
        const char *id = json_string_value(json_object_get(window, "id"));
        text_printf(&out, "%s\n", id != NULL ? id : "");
    }
    return print_out(&out, err);
}

static const struct verb verb_add = {
    .name = "add",
    .arguments = "NAME...|--pool POOL|--all --until TIME",
    .summary = "Give nodes no work for a time, and print the window's id.",
    .details = "Before the window, its nodes get only jobs that end before it: by their time limit. Jobs "
               "that have none\n"
               "are kept off nodes whose window begins within 24 hours, unless no other nodes could ever "
               "hold them.\n"
               "What runs when it begins may end, or with --hard is stopped and goes back to the queue, "
               "which costs no\n"
               "retry. When it ends the nodes take work again by themselves.",
    .argument = ARGUMENT_NODE,
    .most = LIMIT_WINDOW_NODES,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct add_options),
    .describe = add_describe,
    .run = add_run,
};

/* --- remove --- */

/* The whole id of which this is the beginning, in *ret_id, which the caller frees. */
static bool resolve(struct api *api, const char *prefix, char **ret_id, struct err *err)
{
    autojson json_t *windows = api_list(api, "/v1/windows", "windows", "cursor", LIMIT_WINDOWS, err);
    const char *found = NULL;
    for (size_t i = 0; i < json_array_size(windows); i++) {
        if (strncmp(id_of(windows, i), prefix, strlen(prefix)) == 0) {
            if (found != NULL) {
                return err_field(err, ERR_USAGE, "ID", "write more of it",
                                 "more than one window begins with %s", prefix);
            }
            found = id_of(windows, i);
        }
    }
    if (windows == NULL) {
        return false;
    }
    if (found == NULL) {
        return err_field(err, ERR_NOT_FOUND, "ID", "see gpuctl nodes window list",
                         "no present or future window has the id %s", prefix);
    }
    *ret_id = xstrdup(found);
    return true;
}

static bool remove_run(const struct call *call, int *ret_exit, struct err *err)
{
    autoapi struct api *api = NULL;
    autofree char *id = NULL;
    autotext struct text path = {0};
    if (!connect_controller(call, false, &api, err) || !resolve(api, call->rest[0], &id, err)) {
        return false;
    }
    text_append(&path, "/v1/windows/");
    api_part(&path, id);
    const struct request request = {.method = "DELETE", .path = path.bytes};
    if (!api_send(api, &request, NULL, err)) {
        return false;
    }
    print_note("window %s is removed", id);
    return true;
}

static const struct verb verb_remove = {
    .name = "remove",
    .arguments = "ID",
    .summary = "Remove a window; its nodes take work again if it is on.",
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .run = remove_run,
};

static const struct verb *const nested[] = {&verb_list, &verb_add, &verb_remove, NULL};

const struct verb verb_windows = {
    .name = "window",
    .summary = "Add, list and remove maintenance windows.",
    .nested = nested,
};
