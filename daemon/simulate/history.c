/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what of a controller's history a replay sees. It promises that a job counts with the time that its
 * ranks had their GPUs, however long it waited between its attempts. Reading jobs and nodes is left to the
 * callers: gpuctl asks the API, the controller its database. */
#include "daemon/simulate/history.h"

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

static char *copy(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

void history_add_job(struct trace *trace, const struct job_view *view)
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

void history_end(struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        trace->jobs[i].line = trace->count - i;
    }
    trace_sort(trace);
}

bool history_takes_work(enum node_state state)
{
    return state == NODE_READY || state == NODE_SUSPECT;
}

void history_add_node(struct fleet *fleet, const json_t *devices)
{
    autojson json_t *counts = json_object();
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
}
