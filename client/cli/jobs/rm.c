/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl rm`: removes jobs that have ended. */
#include "client/cli/common/for_each_job.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

static json_t *remove_one(struct api *api, const char *id, const void *closure, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s", id);
    return api_change(api, "DELETE", path, NULL, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct for_each_job each = {.ask = remove_one, .said = " is removed"};
    return for_each_job(call, &each, err);
}

const struct verb verb_rm = {
    .name = "rm",
    .arguments = "ID...",
    .summary = "Remove jobs that have ended, with their output.",
    .details = "An array goes with its tasks. A job that is live is refused: cancel it first. Runs in the "
               "tracking server "
               "stay.\n"
               "The controller removes old jobs by itself: see gpuctld --keep-jobs and --keep-logs.",
    OF_JOBS,
    .describe = verb_describe_format,
    .run = run,
};
