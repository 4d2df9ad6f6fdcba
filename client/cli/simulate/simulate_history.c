/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the jobs and nodes of a controller, of which history.h makes a trace and a fleet. */
#include "client/cli/simulate/simulate.h"

#include <string.h>

#include "client/cli/transport/pages.h"
#include "daemon/simulate/history.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/wire/views.h"

#define LIMIT_NODES 100000

/* --- jobs --- */

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
        history_add_job(closure, &view);
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
    history_end(&trace);
    *ret_trace = trace;
    return true;
}

/* --- nodes --- */

/* Lists have no devices. */
static bool add_mixed(struct api *api, const char *name, struct fleet *fleet, struct err *err)
{
    autojson json_t *node = api_get(api, err, "/v1/nodes/%s", name);
    if (node != NULL) {
        history_add_node(fleet, json_object_get(node, "devices"));
    }
    return node != NULL;
}

static bool add_node(struct api *api, const struct node_view *node, struct fleet *fleet, struct err *err)
{
    if (!history_takes_work(node->state) || node->gpus == 0) {
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
