/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a trace and a fleet of the jobs and nodes of a controller. It promises that a job counts with the
 * time that its ranks had their GPUs, however long it waited between its attempts. */
#include "client/cli/simulate/simulate.h"

#include <string.h>

#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/wire/views.h"

#define LIMIT_NODES 100000

/* --- jobs --- */

static char *copy(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

static void add_job(struct trace *trace, const struct job_view *view)
{
    if (view->started_ms == 0 || view->ended_ms == 0) {
        trace->not_run++;
        return;
    }
    int64_t span_ms = view->ran_ms > 0 ? view->ran_ms : view->ended_ms - view->started_ms;
    trace_add(trace, &(struct trace_job){.submit_ms = view->created_ms,
                                         .duration_ms = span_ms > 0 ? span_ms : 0,
                                         .gpus = view->gpus,
                                         .limit_ms = view->time_limit_ms,
                                         .priority = view->priority,
                                         .gpu_type = copy(view->gpu_type),
                                         .project = copy(view->project),
                                         .owner = copy(view->owner),
                                         .name = copy(view->name)});
}

static bool take_jobs(const json_t *page, void *closure, struct err *err)
{
    const json_t *jobs = pages_list(page, "jobs", err);
    size_t i;
    json_t *item;
    json_array_foreach (jobs, i, item) {
        struct job_view view;
        if (!job_view_decode(json_incref(item), &view, err)) {
            return false;
        }
        add_job(closure, &view);
        job_view_finish(&view);
    }
    return jobs != NULL;
}

static void make_path(int64_t since_ms, struct text *path)
{
    text_printf(path, "/v1/jobs?limit=%d", LIMIT_LIST_ROWS);
    pages_states(path, true);
    if (since_ms > 0) {
        pages_number(path, "since", clock_wall_ms() - since_ms);
    }
}

/* The list begins with the newest. */
static void number_lines(struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        trace->jobs[i].line = trace->count - i;
    }
}

bool simulate_history(struct api *api, int64_t since_ms, struct trace *ret_trace, struct err *err)
{
    struct trace trace = {0};
    autotext struct text path = {0};
    make_path(since_ms, &path);
    bool good = pages_each(api, path.bytes, "cursor", take_jobs, &trace, err);
    if (good && trace.count == 0) {
        good = err_field(err, ERR_FIELD, "history",
                         since_ms > 0 ? "look further back with --since" : "name a file with a trace",
                         "the controller has no job that ran and has ended");
    }
    if (!good) {
        trace_finish(&trace);
        return false;
    }
    number_lines(&trace);
    trace_sort(&trace);
    *ret_trace = trace;
    return true;
}

/* --- nodes --- */

/* A node with several types counts as one node a type: a gang is of one. */
static bool add_mixed(struct api *api, const char *name, struct fleet *fleet, struct err *err)
{
    autojson json_t *node = api_get(api, err, "/v1/nodes/%s", name);
    if (node == NULL) {
        return false;
    }
    autojson json_t *counts = json_object();
    const json_t *devices = json_object_get(node, "devices");
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const char *type = json_string_of(json_array_get(devices, i), "type");
        json_int_t count = type != NULL ? json_integer_value(json_object_get(counts, type)) : 0;
        json_object_set_new(counts, type, json_integer(count + 1));
    }
    const char *type;
    json_t *count;
    json_object_foreach (counts, type, count) {
        fleet_add(fleet, 1, json_integer_value(count), type);
    }
    return true;
}

static bool add_node(struct api *api, const struct node_view *node, struct fleet *fleet, struct err *err)
{
    if ((node->state != NODE_READY && node->state != NODE_SUSPECT) || node->gpus == 0) {
        return true;
    }
    if (node->gpu_type != NULL && strcmp(node->gpu_type, "mixed") == 0) {
        return add_mixed(api, node->name, fleet, err);
    }
    fleet_add(fleet, 1, node->gpus, node->gpu_type);
    return true;
}

static bool add_nodes(struct api *api, const json_t *nodes, struct fleet *fleet, struct err *err)
{
    size_t i;
    json_t *item;
    json_array_foreach (nodes, i, item) {
        struct node_view node;
        if (!node_view_decode(json_incref(item), &node, err)) {
            return false;
        }
        bool good = add_node(api, &node, fleet, err);
        node_view_finish(&node);
        if (!good) {
            return false;
        }
    }
    return fleet->count > 0 || err_field(err, ERR_FIELD, "nodes", "name the cluster with --nodes",
                                         "the controller has no node with GPUs that takes work");
}

bool simulate_fleet(struct api *api, struct fleet *ret_fleet, struct err *err)
{
    struct fleet fleet = {0};
    autojson json_t *nodes = api_list(api, "/v1/nodes", "nodes", "cursor", LIMIT_NODES, err);
    if (nodes == NULL || !add_nodes(api, nodes, &fleet, err)) {
        fleet_finish(&fleet);
        return false;
    }
    *ret_fleet = fleet;
    return true;
}
