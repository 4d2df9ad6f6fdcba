/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl up`: starts a controller and nodes of the user's own on this machine. */
#include <stdint.h>

#include "client/cli/transport/context.h"
#include "client/cli/transport/instance.h"
#include "client/cli/show/print.h"
#include "client/cli/controller/start.h"
#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_client.h"

static const struct option_row rows[] = {
    ROW_INT(struct start_options, nodes, 0, "nodes", "N", "how many (default 1)", 1, LIMIT_NODES_STARTED,
            .absent = 1),
    ROW_INT(struct start_options, cpu_slots, 0, "cpu-slots", "K",
            "CPU slots of each node instead of GPUs (default: the cores)", 1, LIMIT_NODE_DEVICES),
    ROW_TEXT(struct start_options, devices, 0, "devices", "LIST",
             "GPUs, as in 0,1,2,3, divided between the nodes; or none"),
    ROW_TEXT(struct start_options, gpu_type, 0, "gpu-type", "NAME", "name of their type in jobs"),
    ROW_TEXT(struct start_options, python, 0, "python", "FILE", "the Python of jobs that name none"),
    ROW_DURATION(struct start_options, idle_exit_ms, 0, "idle-exit",
                 "end after this long without jobs (default 10m, 0 for never)",
                 .absent = DEFAULT_IDLE_EXIT_MS),
    ROW_FORMAT,
    ROWS_END};

static bool show(const struct call *call, const char *state, bool started, struct err *err)
{
    autofree char *url = instance_url(state);
    autofree char *token_file = instance_token_file(state);
    autotext struct text out = {0};
    if (url == NULL) {
        return err_set(err, ERR_UNREACHABLE, "the controller in %s ended as soon as it had started", state);
    }
    if (print_is_json(call->format)) {
        autojson json_t *shown = json_pack("{s:s, s:s, s:s, s:b}", "url", url, "token_file", token_file,
                                           "state_dir", state, "started", started);
        print_json(shown, &out);
    } else {
        print_note("%s", started
                             ? "started"
                             : "running already, as it was started; gpuctl down ends it, for other options");
        text_printf(&out, "url         %s\ntoken file  %s\nstate       %s\n", url, token_file, state);
    }
    return print_out(&out, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    struct context context;
    bool started = false;
    if (!context_load_state(call->common, &context, err)) {
        return false;
    }
    bool good = start_instance(context.state, call->options, &started, err) &&
                show(call, context.state, started, err);
    context_finish(&context);
    return good;
}

const struct verb verb_up = {
    .name = "up",
    .summary = "Start a controller and nodes of your own on this machine.",
    .details = "What runs already is left alone; where a controller has died, all its nodes are started "
               "again.  `gpuctl run` and `gpuctl submit` do this by themselves "
               "where no controller is named.",
    .reach = REACH_STATE,
    .options_size = sizeof(struct start_options),
    .rows = {rows},
    .run = run,
};
