/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl down`: ends the controller and nodes of the user's own instance. */
#include <stdint.h>
#include <string.h>

#include "client/cli/controller/connect.h"
#include "client/cli/transport/instance.h"
#include "client/cli/controller/orphans.h"
#include "client/cli/transport/pages.h"
#include "client/cli/show/print.h"
#include "client/cli/common/wait.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_client.h"
#include "proto/states.h"

#define LIMIT_LIVE  100000
#define LIMIT_NAMED 8 /* jobs that a message has room for */

struct down_options {
    bool force;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct down_options, force, 0, "force",
             "cancel running and waiting jobs, and wait until they have ended"),
    ROWS_END};

/* --- jobs that live --- */

static json_t *live_jobs(struct api *api, struct err *err)
{
    autotext struct text path = {0};
    text_printf(&path, "/v1/jobs?limit=%d", LIMIT_LIST_ROWS);
    pages_states(&path, false);
    return api_list(api, path.bytes, "jobs", "cursor", LIMIT_LIVE, err);
}

static bool refuse(const json_t *jobs, struct err *err)
{
    autotext struct text names = {0};
    size_t count = json_array_size(jobs);
    for (size_t i = 0; i < count && i < LIMIT_NAMED; i++) {
        text_printf(&names, "%s%s", i > 0 ? ", " : "", print_text_of(json_array_get(jobs, i), "id"));
    }
    err_set(err, ERR_CONFLICT, "%zu job%s not over: %s%s", count, count == 1 ? " is" : "s are", names.bytes,
            count > LIMIT_NAMED ? ", ..." : "");
    return err_hint(err, "wait for them with `gpuctl wait`, or cancel them with `gpuctl down --force`");
}

static bool cancel_all(struct api *api, const json_t *jobs, struct err *err)
{
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        json_t *reply = api_ask(api, "POST", NULL, err, "/v1/jobs/%s/cancel", print_text_of(job, "id"));
        if (reply == NULL && err->code != ERR_CONFLICT) {
            return false;
        }
        json_decref(reply);
    }
    return true;
}

static bool wait_all(struct api *api, const json_t *jobs, int64_t patience_ms, struct err *err)
{
    int64_t deadline_ms = clock_boot_ms() + patience_ms;
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        json_t *ended = wait_job(api, print_text_of(job, "id"), deadline_ms, err);
        if (ended == NULL) {
            return false;
        }
        json_decref(ended);
    }
    return true;
}

/* Nobody else would: kills what the node still runs, and says so to the controller. */
static bool give_up_node(struct api *api, const char *state, const char *name, int64_t number,
                         struct err *err)
{
    instance_end_agent(state, number);
    int64_t killed = orphans_end(state, number);
    print_note("%s has no agent that could end its jobs: %lld process%s killed", name, (long long)killed,
               killed == 1 ? " was" : "es were");
    autojson json_t *body = json_pack("{s:b, s:s}", "assert_dead", 1, "reason", "gpuctl down --force");
    autojson json_t *reply = api_ask(api, "POST", body, err, "/v1/nodes/%s/fence", name);
    return reply != NULL;
}

/* Of all nodes, or of those whose agents do not run. */
static bool give_up_nodes(struct api *api, const char *state, bool all, struct err *err)
{
    autojson json_t *nodes = api_list(api, "/v1/nodes", "nodes", "cursor", LIMIT_LIVE, err);
    size_t i;
    json_t *node;
    json_array_foreach (nodes, i, node) {
        const char *name = json_string_of(node, "name");
        const char *standing = json_string_of(node, "state");
        int64_t number;
        bool ours = name != NULL && strncmp(name, "node", 4) == 0 &&
                    text_to_int(name + 4, 0, LIMIT_NODES_STARTED, &number);
        bool lost = standing != NULL && strcmp(standing, node_state_text(NODE_LOST)) == 0;
        if (ours && !lost && (all || !instance_has_agent(state, number)) &&
            !give_up_node(api, state, name, number, err)) {
            return false;
        }
    }
    return nodes != NULL;
}

/* Cancels all, then waits for all, so that they end side by side; what does not end is killed. */
static bool end_jobs(struct api *api, const char *state, const json_t *jobs, struct err *err)
{
    if (!cancel_all(api, jobs, err) || !give_up_nodes(api, state, false, err)) {
        return false;
    }
    if (wait_all(api, jobs, CLIENT_FORCE_MS, err)) {
        return true;
    }
    return err->code == ERR_WAIT_TIMEOUT && give_up_nodes(api, state, true, err) &&
           wait_all(api, jobs, CLIENT_STOP_MS, err);
}

/* --- the instance --- */

/* Asks the controller to end; it tells its agents. */
static bool shut_down(struct api *api, const char *state, const struct down_options *options, struct err *err)
{
    autojson json_t *jobs = live_jobs(api, err);
    if (jobs == NULL) {
        return false;
    }
    if (json_array_size(jobs) > 0 &&
        !(options->force ? end_jobs(api, state, jobs, err) : refuse(jobs, err))) {
        return false;
    }
    struct request request = {.method = "POST",
                              .path = "/v1/shutdown",
                              .body = "{}",
                              .length = 2,
                              .content_type = "application/json"};
    return api_send(api, &request, NULL, err);
}

/* Without its controller nobody knows what the agents still run. */
static bool end_orphans(const char *state, bool force, struct err *err)
{
    int64_t agents = instance_agents(state);
    if (agents == 0) {
        print_note("nothing of your own runs in %s", state);
    } else if (force) {
        int64_t nodes = instance_nodes(state);
        for (int64_t i = 0; i < nodes; i++) {
            instance_end_agent(state, i);
            orphans_end(state, i);
        }
    } else {
        err_set(err, ERR_CONFLICT, "%lld node%s in %s without a controller, so what they run is not known",
                (long long)agents, agents == 1 ? " runs" : "s run", state);
        return err_hint(err, "`gpuctl up` brings the controller back; `gpuctl down --force` kills the nodes "
                             "and what they run");
    }
    return instance_stop(state, 0, err);
}

static bool end_instance(struct context *own, const struct down_options *options, struct err *err)
{
    autofree char *state = xstrdup(own->state);
    autoapi struct api *api = api_create(own);
    if (!shut_down(api, state, options, err) || !instance_stop(state, CLIENT_STOP_MS, err)) {
        return false;
    }
    print_note("the controller and nodes in %s have ended", state);
    return true;
}

/* A controller that is named elsewhere is none of this verb's business. */
static bool load_own(const struct common *common, struct context *ret_context, bool *ret_running,
                     struct err *err)
{
    if (!context_load_state(common, ret_context, err)) {
        return false;
    }
    struct common own = {.state = ret_context->state};
    struct context context;
    *ret_running = context_load(&own, &context, err);
    if (*ret_running) {
        context_finish(ret_context);
        *ret_context = context;
    }
    return *ret_running || err->code == ERR_UNREACHABLE;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct down_options *options = call->options;
    struct context context;
    bool running;
    autoclose int lock = -1;
    if (!context_load_state(call->common, &context, err)) {
        return false;
    }
    bool good = instance_lock(context.state, &lock, err);
    context_finish(&context);
    if (!good || !load_own(call->common, &context, &running, err)) {
        return false;
    }
    good = running ? end_instance(&context, options, err) : end_orphans(context.state, options->force, err);
    context_finish(&context);
    return good;
}

const struct verb verb_down = {
    .name = "down",
    .summary = "End the controller and nodes of your own.",
    .details =
        "Refuses while jobs live, unless --force cancels them. What has not ended 45 s later, and what "
        "nodes run whose agents are\ngone, --force kills.",
    .reach = REACH_STATE,
    .options_size = sizeof(struct down_options),
    .rows = {rows},
    .run = run,
};
