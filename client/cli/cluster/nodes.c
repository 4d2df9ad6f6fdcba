/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl nodes`: lists nodes, takes them out of service and back, and says when they go away. */
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/transport/api.h"
#include "client/cli/transport/pages.h"
#include "client/cli/show/moment.h"
#include "client/cli/common/watch.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"

#define HELD_NOTE                                                                                            \
    "\nMost nodes are silent, so nothing is given to others for that: see whether the controller's own "     \
    "network "                                                                                               \
    "works.\nOf those that are dead, say so: gpuctl nodes fence NODE --i-assert-dead\n"

/* --- list --- */

static const struct option_row list_rows[] = {ROW_QUIET("names alone"), ROW_WATCH, ROW_FORMAT, ROWS_END};

/* "from ..." while it is to come, "until ..." while it is on. */
static void show_window(const json_t *node, const char *member, struct text *out)
{
    const json_t *window = json_object_get(node, member);
    if (json_is_object(window)) {
        bool on = print_time_of(window, "from") <= clock_wall_ms();
        text_append(out, on ? "until " : "from ");
        cell_time(window, on ? "until" : "from", out);
        text_append(out, json_is_true(json_object_get(window, "hard")) ? ", hard" : "");
    }
}

/* "disk=ssd,zone=a"; empty where there are none. */
static void show_labels(const json_t *node, const char *member, struct text *out)
{
    const char *key;
    json_t *value;
    json_object_foreach (json_object_get(node, member), key, value) {
        const char *text = json_string_value(value);
        text_printf(out, "%s%s=%s", out->length > 0 ? "," : "", key, text != NULL ? text : "");
    }
}

/* Why it takes no work, else why not all of it does. */
static void show_reason(const json_t *node, const char *member, struct text *out)
{
    const char *why = json_string_of(node, "unavailable");
    long long count = (long long)json_integer_value(json_object_get(node, "unavailable_gpus"));
    cell_plain(node, member, out);
    if (json_string_of(node, member) == NULL && count > 0) {
        text_printf(out, "%lld GPU%s unavailable: %s%s", count, count == 1 ? "" : "s", why != NULL ? why : "",
                    count == 1 ? "" : "; and others");
    }
}

static void show_age(const json_t *node, const char *member, struct text *out)
{
    cell_seconds(node, member, out);
    text_append(out, out->length > 0 ? " ago" : "");
}

static const struct column columns[] = {
    COLUMN("NAME", "name", cell_plain),
    COLUMN("STATE", "state", cell_plain),
    COLUMN("POOL", "pool", cell_plain),
    WIDE_COLUMN("KIND", "pool_kind", cell_plain),
    COLUMN("TYPE", "gpu_type", cell_plain),
    COLUMN("GPUS", "gpus", cell_plain),
    COLUMN("FREE", "free_gpus", cell_plain),
    WIDE_COLUMN("CPUS", "cpus", cell_number),
    WIDE_COLUMN("FREE CPUS", "free_cpus", cell_number),
    WIDE_COLUMN("MEMORY", "memory_bytes", cell_bytes),
    WIDE_COLUMN("FREE MEMORY", "free_memory_bytes", cell_bytes),
    COLUMN("HEARD", "beat_age_s", show_age),
    WIDE_COLUMN("ADDRESS", "address", cell_plain),
    WIDE_COLUMN("ISOLATION", "isolation", cell_plain),
    WIDE_COLUMN("VERSION", "version", cell_plain),
    WIDE_COLUMN("LABELS", "labels", show_labels),
    COLUMN("EXPIRES", "expires_at", cell_time),
    COLUMN("WINDOW", "window", show_window),
    COLUMN("REASON", "reason", show_reason),
};

static const struct listing nodes = {.name = "nodes", LIST_COLUMNS(columns), .key = "name"};

/* What the pages say together. */
struct found {
    json_t *nodes;
    bool leases_held;
};

static bool take_page(const json_t *page, void *closure, struct err *err)
{
    struct found *found = closure;
    const json_t *items = pages_list(page, "nodes", err);
    for (size_t i = 0; i < json_array_size(items); i++) {
        json_array_append(found->nodes, json_array_get(items, i));
    }
    found->leases_held = json_is_true(json_object_get(page, "leases_held"));
    return items != NULL;
}

static bool list_show(const struct call *call, struct text *out, bool *ret_last, struct err *err)
{
    autojson json_t *items = json_array();
    struct found found = {.nodes = items};
    *ret_last = false;
    if (!pages_each(call->api, "/v1/nodes", "cursor", take_page, &found, err)) {
        return false;
    }
    list_print(call, &nodes, items, out);
    bool table = !call->common->quiet && !print_is_json(call->format);
    text_append(out, table && found.leases_held ? HELD_NOTE : "");
    return true;
}

static bool list_nodes(const struct call *call, int *ret_exit, struct err *err)
{
    return watch_run(call, list_show, err);
}

static const struct verb verb_list = {
    .name = "list",
    .summary = "List the nodes.",
    OF_THE_CONTROLLER,
    .rows = {list_rows},
    .run = list_nodes,
};

/* --- show --- */

static void show_pool(const json_t *node, const char *member, struct text *out)
{
    cell_plain(node, member, out);
    text_append(out, ", ");
    cell_plain(node, "pool_kind", out);
}

static void show_free(const json_t *node, const char *member, struct text *out)
{
    cell_plain(node, member, out);
    text_append(out, " of ");
    cell_plain(node, "gpus", out);
    text_append(out, " free");
}

static void show_free_cpus(const json_t *node, const char *member, struct text *out)
{
    cell_number(node, member, out);
    text_append(out, " of ");
    cell_number(node, "cpus", out);
    text_append(out, " free");
}

static void show_free_memory(const json_t *node, const char *member, struct text *out)
{
    cell_bytes(node, member, out);
    text_append(out, " of ");
    cell_bytes(node, "memory_bytes", out);
    text_append(out, " free");
}

static const struct column facts[] = {
    COLUMN("name", "name", cell_plain),
    COLUMN("state", "state", cell_plain),
    COLUMN("reason", "reason", cell_plain),
    COLUMN("pool", "pool", show_pool),
    COLUMN("GPUs", "free_gpus", show_free),
    COLUMN("CPUs", "free_cpus", show_free_cpus),
    COLUMN("memory", "free_memory_bytes", show_free_memory),
    COLUMN("labels", "labels", show_labels),
    COLUMN("expires", "expires_at", cell_time),
    COLUMN("address", "address", cell_plain),
    COLUMN("host", "host_id", cell_plain),
    COLUMN("isolation", "isolation", cell_plain),
    COLUMN("version", "version", cell_plain),
};

/* A line for each: "GPU 0    A10  GPU-a1b2  group 0", and why no job can get it. */
static void add_devices(struct grid *grid, const json_t *devices)
{
    size_t i;
    json_t *device;
    json_array_foreach (devices, i, device) {
        const char *uuid = json_string_of(device, "uuid");
        const char *type = json_string_of(device, "type");
        const char *reason = json_string_of(device, "unavailable");
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

static void print_node(const struct call *call, const json_t *node, struct text *out)
{
    autogrid struct grid *grid = grid_create(print_facts, 2);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        bool slots = facts[i].show == show_free && json_is_true(json_object_get(node, "slots"));
        grid_add(grid, slots ? "slots" : facts[i].title);
        grid_add_cell(grid, &facts[i], node);
    }
    add_devices(grid, json_object_get(node, "devices"));
    grid_print(grid, false, 0, print_colour(), out);
}

static bool show_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *node = api_get(call->api, err, "/v1/nodes/%s", call->rest[0]);
    return answer_show(call, node, print_node, err);
}

static const struct verb verb_show = {
    .name = "show",
    .arguments = "NAME",
    .summary = "Show one node with its labels and devices.",
    OF_A_NODE,
    .rows = {rows_format},
    .run = show_run,
};

/* --- drain, resume, fence, expire --- */

struct change_options {
    const char *reason;
    bool assert_dead;
};

/* The name of the verb is the last part of the path. */
static bool change(const struct call *call, const json_t *body, struct err *err)
{
    const char *verb = call->verb->name;
    autojson json_t *node = api_ask(call->api, "POST", body, err, "/v1/nodes/%s/%s", call->rest[0], verb);
    const char *state = json_string_of(node, "state");
    return answer_note(call, node, err, "node %s: %s%s%s", call->rest[0], verb,
                       state != NULL ? "; now it is " : "", state != NULL ? state : "");
}

static bool change_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *body = json_object();
    option_send(call->verb->rows[0], call->options, body);
    return change(call, body, err);
}

static const struct option_row drain_rows[] = {
    ROW_TEXT(struct change_options, reason, 0, "reason", "TEXT", "shown to people", .sent_as = "reason"),
    ROW_FORMAT, ROWS_END};

static const struct verb verb_drain = {
    .name = "drain",
    .arguments = "NAME",
    .summary = "Give a node no new work; what runs there goes on.",
    OF_A_NODE,
    .options_size = sizeof(struct change_options),
    .rows = {drain_rows},
    .run = change_run,
};

static const struct verb verb_resume = {
    .name = "resume",
    .arguments = "NAME",
    .summary = "Give a drained node work again.",
    OF_A_NODE,
    .rows = {rows_format},
    .run = change_run,
};

static const struct option_row fence_rows[] = {
    ROW_FLAG(struct change_options, assert_dead, 0, "i-assert-dead",
             "nothing of it runs any more: I have made sure", .sent_as = "assert_dead"),
    ROW_TEXT(struct change_options, reason, 0, "reason", "TEXT", "shown to people", .sent_as = "reason"),
    ROW_FORMAT, ROWS_END};

static bool fence_check(const struct call *call, struct err *err)
{
    const struct change_options *options = call->options;
    return options->assert_dead ||
           err_field(err, ERR_USAGE, "i-assert-dead",
                     "switch the machine off, then repeat this with --i-assert-dead",
                     "fencing %s gives its jobs to other nodes; if they still run there, they run twice",
                     call->rest[0]);
}

static const struct verb verb_fence = {
    .name = "fence",
    .arguments = "NAME --i-assert-dead",
    .summary = "Declare a node dead: its jobs go to others.",
    OF_A_NODE,
    .options_size = sizeof(struct change_options),
    .rows = {fence_rows},
    .check = fence_check,
    .run = change_run,
};

/* The moment, or null for "never"; NULL: it is neither. */
static json_t *moment_of(const struct call *call, struct err *err)
{
    int64_t wall_ms;
    if (strcmp(call->rest[1], "never") == 0) {
        return json_null();
    }
    bool good =
        moment_read("TIME", call->rest[1], "write it as 2026-11-21T09:30:00Z, +2h or never", &wall_ms, err);
    return good ? moment_json(wall_ms) : NULL;
}

static bool expire_check(const struct call *call, struct err *err)
{
    autojson json_t *moment = moment_of(call, err);
    return moment != NULL;
}

static bool expire_run(const struct call *call, int *ret_exit, struct err *err)
{
    autojson json_t *body = json_pack("{s:o}", "at", moment_of(call, err));
    return change(call, body, err);
}

static const struct verb verb_expire = {
    .name = "expire",
    .arguments = "NAME TIME|+DURATION|never",
    .summary = "Say when a node goes away: it gets only work that ends before.",
    .argument = ARGUMENT_NODE,
    .least = 2,
    .most = 2,
    OF_THE_CONTROLLER,
    .rows = {rows_format},
    .check = expire_check,
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
