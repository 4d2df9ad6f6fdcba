/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl hold` and `gpuctl release`: keep waiting jobs back, and let them go. */
#include <stdint.h>

#include "client/cli/transport/api.h"
#include "client/cli/common/for_each_job.h"

static json_t *ask_one(struct api *api, const char *id, const void *closure, struct err *err)
{
    return api_ask(api, "POST", NULL, err, "/v1/jobs/%s/%s", id, (const char *)closure);
}

/* The name of the verb is the last part of the path. */
static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    return for_each_job(
        call, &(struct for_each_job){.ask = ask_one, .closure = call->verb->name, .said = " is "}, err);
}

const struct verb verb_hold = {
    .name = "hold",
    .arguments = "ID...",
    .summary = "Keep waiting jobs back.",
    .details = "They keep their place in the queue. A job that has GPUs cannot be held.",
    OF_JOBS,
    .rows = {rows_format},
    .run = run,
};

const struct verb verb_release = {
    .name = "release",
    .arguments = "ID...",
    .summary = "Let held jobs wait for GPUs again.",
    OF_JOBS,
    .rows = {rows_format},
    .run = run,
};
