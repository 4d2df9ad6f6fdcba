/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl port-forward`: a port of this machine leads to one beside a rank of a running job. */
#include <stdint.h>
#include <string.h>

#include "client/cli/frame/verb.h"
#include "client/cli/show/print.h"
#include "client/cli/stream/forward.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/states.h"

struct forward_options {
    int64_t rank;
};

static const struct option_row rows[] = {ROW_INT(struct forward_options, rank, 0, "rank", "N",
                                                 "the rank beside which it listens (default: 0)", 0,
                                                 LIMIT_GPUS - 1),
                                         ROWS_END};

/* "6006" or "8080:6006"; port 0 of this machine: any that is free. */
static bool ports_read(const char *text, int64_t *ret_local, int64_t *ret_remote)
{
    const char *colon = strchr(text, ':');
    autofree char *local = colon != NULL ? xstrndup(text, (size_t)(colon - text)) : xstrdup(text);
    return text_to_int(colon != NULL ? colon + 1 : text, 1, UINT16_MAX, ret_remote) &&
           text_to_int(local, 0, UINT16_MAX, ret_local);
}

/* --- the verb ------------------------------------------------------------------------------------------- */

static bool check(const struct call *call, struct err *err)
{
    int64_t local, remote;
    if (ports_read(call->rest[1], &local, &remote)) {
        return true;
    }
    err_set(err, ERR_USAGE, "\"%s\" names no port", call->rest[1]);
    return err_hint(err, "6006 is port 6006 of both, 8080:6006 is port 8080 here and 6006 in the job");
}

/* Before anybody connects: a job that does not run is better named now. */
static bool check_runs(const struct call *call, struct err *err)
{
    autojson json_t *job = api_get(call->api, err, "/v1/jobs/%s", call->id);
    const char *state = job != NULL ? json_string_of(job, "state") : NULL;
    return job != NULL && ((state != NULL && strcmp(state, job_state_text(JOB_RUNNING)) == 0) ||
                           err_set(err, ERR_CONFLICT, "job %s does not run: it is %s", call->id,
                                   state != NULL ? state : "unknown"));
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct forward_options *options = call->options;
    struct forward forward = {.api = call->api, .job_id = call->id, .rank = options->rank};
    ports_read(call->rest[1], &forward.local, &forward.remote);
    if (!check_runs(call, err)) {
        return false;
    }
    bool good = forward_open(&forward, err);
    if (good) {
        print_note("127.0.0.1:%lld leads to port %lld in job %s; Ctrl-C ends it", (long long)forward.local,
                   (long long)forward.remote, call->id);
        good = forward_run(&forward, err);
    }
    if (forward.ended) {
        print_note("job %s has ended", call->id);
    }
    forward_close(&forward);
    return good;
}

const struct verb verb_port_forward = {
    .name = "port-forward",
    .arguments = "JOB [LOCAL:]REMOTE",
    .summary = "Reach a port in a running job through one of this machine.",
    .details = "It listens on 127.0.0.1 alone, and leads to 127.0.0.1 of the rank's node. LOCAL 0 takes any "
               "free port. It\n"
               "is your own job, or you are an administrator.\n"
               "\n"
               "Examples:\n"
               "  gpuctl port-forward x7k2 6006          http://127.0.0.1:6006 is the job's TensorBoard\n"
               "  gpuctl port-forward x7k2 8080:8888",
    .argument = ARGUMENT_JOB,
    .least = 2,
    .most = 2,
    .reach = REACH_CONTROLLER,
    .need = NEED_JOB,
    .options_size = sizeof(struct forward_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
