/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl nodes`: lists nodes, takes them out of service and back, and says when they go away. */
#include <stdint.h>
#include <string.h>

#include "client/cli/connect.h"
#include "client/cli/moment.h"
#include "client/cli/nodes_join.h"
#include "client/cli/print.h"
#include "client/cli/watch.h"
#include "client/cli/windows.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/json.h"
#include "proto/limits.h"
#include "proto/wire/views.h"

#define HELD_NOTE                                                                                            \
    "\nMost nodes are silent, so nothing is given to others for that: see whether the controller's own "     \
    "network "                                                                                               \
    "works.\nOf those that are dead, say so: gpuctl nodes fence NODE --i-assert-dead\n"

/* --- list --- */

struct list_options {
    bool quiet, watch;
    const char *format;
};

static void list_describe(void *options, struct option_table *table)
{
    struct list_options *o = options;
    option_flag(table, 'q', "quiet", "names alone", &o->quiet);
    watch_option(table, &o->watch);
    option_add_format(table, &o->format);
}

static const struct column columns[] = {
    {"NAME", false},   {"STATE", false}, {"POOL", false},    {"KIND", true},    {"TYPE", false},
    {"GPUS", false},   {"FREE", false},  {"HEARD", false},   {"ADDRESS", true}, {"ISOLATION", true},
    {"VERSION", true}, {"LABELS", true}, {"EXPIRES", false}, {"WINDOW", false}, {"REASON", false},
};

/* "from ..." while it is to come, "until ..." while it is on. */
static void add_window(struct grid *grid, const struct node_view *node)
{
    char at[32];
    if (node->window_until_ms == 0) {
        grid_add(grid, NULL);
        return;
    }
    bool on = node->window_from_ms <= clock_wall_ms();
    print_time(on ? node->window_until_ms : node->window_from_ms, at);
    grid_addf(grid, "%s %s%s", on ? "until" : "from", at, node->window_hard ? ", hard" : "");
}

/* "disk=ssd,zone=a"; empty where there are none. */
static void write_labels(const char *labels, struct text *out)
{
    autojson json_t *object = labels != NULL ? json_parse(labels, strlen(labels), NULL) : NULL;
    const char *key;
    json_t *value;
    json_object_foreach (object, key, value) {
        const char *text = json_string_value(value);
        text_printf(out, "%s%s=%s", out->length > 0 ? "," : "", key, text != NULL ? text : "");
    }
}

static void add_labels(struct grid *grid, const struct node_view *node)
{
    autotext struct text labels = {0};
    write_labels(node->labels, &labels);
    grid_add(grid, labels.bytes);
}

/* Why it takes no work, else why not all of it does. */
static void add_reason(struct grid *grid, const struct node_view *node)
{
    if (node->reason != NULL || node->unavailable_gpus == 0) {
        grid_add(grid, node->reason);
        return;
    }
    grid_addf(grid, "%lld GPU%s unavailable: %s%s", (long long)node->unavailable_gpus,
              node->unavailable_gpus == 1 ? "" : "s", node->unavailable != NULL ? node->unavailable : "",
              node->unavailable_gpus == 1 ? "" : "; and others");
}

static void add_row(struct grid *grid, const struct node_view *node)
{
    char age[32], expires[32];
    print_time(node->expires_ms, expires);
    text_from_duration_ms(node->heartbeat_age_ms, age, sizeof age);
    grid_add(grid, node->name);
    grid_add(grid, node_state_text(node->state));
    grid_add(grid, node->pool);
    grid_add(grid, pool_kind_text(node->pool_kind));
    grid_add(grid, node->gpu_type);
    grid_addf(grid, "%lld", (long long)node->gpus);
    grid_addf(grid, "%lld", (long long)node->free_gpus);
    if (node->heartbeat_age_ms >= 0) {
        grid_addf(grid, "%s ago", age);
    } else {
        grid_add(grid, NULL);
    }
    grid_add(grid, node->address);
    grid_add(grid, isolation_text(node->isolation));
    grid_add(grid, node->version);
    add_labels(grid, node);
    grid_add(grid, expires);
    add_window(grid, node);
    add_reason(grid, node);
}

static bool show_table(const json_t *nodes, bool wide, struct text *out, struct err *err)
{
    autogrid struct grid *grid = grid_create(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    json_t *item;
    json_array_foreach (nodes, i, item) {
        struct node_view node;
        if (!node_view_decode(json_incref(item), &node, err)) {
            return false;
        }
        add_row(grid, &node);
        node_view_finish(&node);
    }
    grid_print(grid, wide, print_width(), print_colour(), out);
    return true;
}

static void show_names(const json_t *nodes, struct text *out)
{
    size_t i;
    json_t *node;
    json_array_foreach (nodes, i, node) {
        const char *name = json_string_value(json_object_get(node, "name"));
        text_printf(out, "%s\n", name != NULL ? name : "");
    }
}

static bool list_show(struct api *api, const void *closure, struct text *out, bool *ret_last, struct err *err)
{
    const struct list_options *options = closure;
    enum print_format format = print_format(options->format);
    autojson json_t *reply = api_get(api, "/v1/nodes", err);
    json_t *nodes = json_object_get(reply, "nodes");
    *ret_last = false;
    if (!json_is_array(nodes)) {
        return reply == NULL ? false : err_set(err, ERR_IO, "the controller's list of nodes is no list");
    }
    if (options->quiet) {
        show_names(nodes, out);
        return true;
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_list(format, "nodes", nodes, out);
        return true;
    }
    if (!show_table(nodes, format == FORMAT_WIDE, out, err)) {
        return false;
    }
    if (json_is_true(json_object_get(reply, "leases_held"))) {
        text_append(out, HELD_NOTE);
    }
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
    .summary = "List the nodes.",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct list_options),
    .describe = list_describe,
    .run = list_run,
};

/* --- show --- */

struct show_options {
    const char *format;
};

static void show_describe(void *options, struct option_table *table)
{
    struct show_options *o = options;
    option_add_format(table, &o->format);
}

static void add_fact(struct grid *grid, const char *name, const char *value)
{
    grid_add(grid, name);
    grid_add(grid, value);
}

/* A line for each: "GPU 0    A10  GPU-a1b2  group 0", and why no job can get it. */
static void add_devices(struct grid *grid, const char *devices)
{
    autojson json_t *array = devices != NULL ? json_parse(devices, strlen(devices), NULL) : NULL;
    size_t i;
    json_t *device;
    json_array_foreach (array, i, device) {
        const char *uuid = json_string_value(json_object_get(device, "uuid"));
        const char *type = json_string_value(json_object_get(device, "type"));
        const char *reason = json_string_value(json_object_get(device, "unavailable"));
        const json_t *group = json_object_get(device, "group");
        autotext struct text near = {0};
        if (group != NULL) {
            text_printf(&near, "  group %lld", (long long)json_integer_value(group));
        }
        grid_addf(grid, "GPU %lld", (long long)json_integer_value(json_object_get(device, "index")));
        grid_addf(grid, "%s  %s%s%s%s", type != NULL ? type : "", uuid != NULL ? uuid : "",
                  group != NULL ? near.bytes : "", reason != NULL ? "  unavailable: " : "",
                  reason != NULL ? reason : "");
    }
}

static void show_facts(const struct node_view *node, struct text *out)
{
    static const struct column facts[] = {{"FACT", false}, {"VALUE", false}};
    autogrid struct grid *grid = grid_create(facts, sizeof facts / sizeof facts[0]);
    autotext struct text labels = {0};
    write_labels(node->labels, &labels);
    add_fact(grid, "name", node->name);
    add_fact(grid, "state", node_state_text(node->state));
    add_fact(grid, "reason", node->reason);
    grid_add(grid, "pool");
    grid_addf(grid, "%s, %s", node->pool, pool_kind_text(node->pool_kind));
    grid_add(grid, node->slots ? "slots" : "GPUs");
    grid_addf(grid, "%lld of %lld free", (long long)node->free_gpus, (long long)node->gpus);
    add_fact(grid, "labels", labels.bytes);
    add_fact(grid, "address", node->address);
    add_fact(grid, "host", node->host_id);
    add_fact(grid, "isolation", isolation_text(node->isolation));
    add_fact(grid, "version", node->version);
    add_devices(grid, node->devices);
    grid_print(grid, false, 0, print_colour(), out);
}

static bool show_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct show_options *options = call->options;
    enum print_format format = print_format(options->format);
    autoapi struct api *api = NULL;
    autotext struct text path = {0}, out = {0};
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    text_append(&path, "/v1/nodes/");
    api_part(&path, call->rest[0]);
    autojson json_t *json = api_get(api, path.bytes, err);
    struct node_view node;
    if (json == NULL) {
        return false;
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_json(json, &out);
        return print_out(&out, err);
    }
    if (!node_view_decode(json_incref(json), &node, err)) {
        return false;
    }
    show_facts(&node, &out);
    node_view_finish(&node);
    return print_out(&out, err);
}

static const struct verb verb_show = {
    .name = "show",
    .arguments = "NAME",
    .summary = "Show one node with its labels and devices.",
    .argument = ARGUMENT_NODE,
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct show_options),
    .describe = show_describe,
    .run = show_run,
};

/* --- drain, resume, fence, expire --- */

struct change_options {
    const char *reason;
    bool assert_dead;
    const char *format;
};

/* Posts the body, which it takes over, and shows the answer. */
static bool change(const struct call *call, const char *verb, json_t *body, struct err *err)
{
    const struct change_options *options = call->options;
    enum print_format format = print_format(options->format);
    autojson json_t *sent = body;
    autoapi struct api *api = NULL;
    autotext struct text path = {0};
    if (options->reason != NULL && json_object_set_new(sent, "reason", json_string(options->reason)) != 0) {
        return err_field(err, ERR_USAGE, "reason", NULL, "--reason is not UTF-8");
    }
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    text_append(&path, "/v1/nodes/");
    api_part(&path, call->rest[0]);
    text_printf(&path, "/%s", verb);
    autojson json_t *node = api_post(api, path.bytes, sent, NULL, err);
    if (node == NULL) {
        return false;
    }
    autotext struct text out = {0};
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_json(node, &out);
    } else {
        const char *state = json_string_value(json_object_get(node, "state"));
        print_note("node %s: %s%s%s", call->rest[0], verb, state != NULL ? "; now it is " : "",
                   state != NULL ? state : "");
    }
    return print_out(&out, err);
}

static void drain_describe(void *options, struct option_table *table)
{
    struct change_options *o = options;
    option_text(table, 0, "reason", "TEXT", "shown to people", &o->reason);
    option_add_format(table, &o->format);
}

static bool drain_run(const struct call *call, int *ret_exit, struct err *err)
{
    return change(call, "drain", json_object(), err);
}

static const struct verb verb_drain = {
    .name = "drain",
    .arguments = "NAME",
    .summary = "Give a node no new work; what runs there goes on.",
    .argument = ARGUMENT_NODE,
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct change_options),
    .describe = drain_describe,
    .run = drain_run,
};

static void resume_describe(void *options, struct option_table *table)
{
    struct change_options *o = options;
    option_add_format(table, &o->format);
}

static bool resume_run(const struct call *call, int *ret_exit, struct err *err)
{
    return change(call, "resume", json_object(), err);
}

static const struct verb verb_resume = {
    .name = "resume",
    .arguments = "NAME",
    .summary = "Give a drained node work again.",
    .argument = ARGUMENT_NODE,
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct change_options),
    .describe = resume_describe,
    .run = resume_run,
};

static void fence_describe(void *options, struct option_table *table)
{
    struct change_options *o = options;
    option_flag(table, 0, "i-assert-dead", "nothing of it runs any more: I have made sure", &o->assert_dead);
    option_text(table, 0, "reason", "TEXT", "shown to people", &o->reason);
    option_add_format(table, &o->format);
}

static bool fence_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct change_options *options = call->options;
    if (!options->assert_dead) {
        return err_field(err, ERR_USAGE, "i-assert-dead",
                         "switch the machine off, then repeat this with --i-assert-dead",
                         "fencing %s gives its jobs to other nodes; if they still run there, they run twice",
                         call->rest[0]);
    }
    return change(call, "fence", json_pack("{s:b}", "assert_dead", 1), err);
}

static const struct verb verb_fence = {
    .name = "fence",
    .arguments = "NAME --i-assert-dead",
    .summary = "Declare a node dead: its jobs go to others.",
    .argument = ARGUMENT_NODE,
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct change_options),
    .describe = fence_describe,
    .run = fence_run,
};

static bool expire_run(const struct call *call, int *ret_exit, struct err *err)
{
    json_t *at = json_null();
    if (strcmp(call->rest[1], "never") != 0) {
        int64_t wall_ms;
        if (!moment_read("TIME", call->rest[1], "write it as 2026-11-21T09:30:00Z, +2h or never", &wall_ms,
                         err)) {
            return false;
        }
        at = moment_json(wall_ms);
    }
    return change(call, "expire", json_pack("{s:o}", "at", at), err);
}

static const struct verb verb_expire = {
    .name = "expire",
    .arguments = "NAME TIME|+DURATION|never",
    .summary = "Say when a node goes away: it gets only work that ends before.",
    .argument = ARGUMENT_NODE,
    .least = 2,
    .most = 2,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct change_options),
    .describe = resume_describe,
    .run = expire_run,
};

static const struct verb *const nested[] = {
    &verb_list,      &verb_show,         &verb_drain,   &verb_resume,
    &verb_fence,     &verb_expire,       &verb_windows, &verb_nodes_join_command,
    &verb_nodes_add, &verb_nodes_remove, NULL};

const struct verb verb_nodes = {
    .name = "nodes",
    .summary = "List and show nodes; have machines join; drain, resume, fence and remove nodes; say when "
               "they go away.",
    .nested = nested,
};
