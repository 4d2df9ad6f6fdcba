/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl cancel`: ends jobs. */
#include <stdint.h>

#include "client/cli/common/for_each_job.h"
#include "client/cli/common/wait.h"
#include "proto/base/json.h"

struct cancel_options {
    bool wait;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct cancel_options, wait, 0, "wait", "until they have ended"), ROW_FORMAT, ROWS_END};

static json_t *cancel_one(struct api *api, const char *id, const void *closure, struct err *err)
{
    const struct cancel_options *options = closure;
    json_t *job = api_ask(api, "POST", NULL, err, "/v1/jobs/%s/cancel", id);
    if (job == NULL || !options->wait) {
        return job;
    }
    json_decref(job);
    return wait_job(api, id, -1, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct for_each_job each = {
        .ask = cancel_one, .closure = call->options, .said = ": cancel is asked for; now it is "};
    return for_each_job(call, &each, err);
}

const struct verb verb_cancel = {
    .name = "cancel",
    .arguments = "ID...",
    .summary = "End jobs.",
    OF_JOBS,
    .options_size = sizeof(struct cancel_options),
    .rows = {rows},
    .run = run,
};
