/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl cancel`: ends jobs. */
#include "client/cli/cancel.h"

#include <stdint.h>

#include "client/cli/each_job.h"
#include "client/cli/print.h"
#include "client/cli/wait.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

struct cancel_options {
    bool wait;
    const char *format;
};

static void describe(void *options, struct option_table *table)
{
    struct cancel_options *o = options;
    option_flag(table, 0, "wait", "until they have ended", &o->wait);
    option_add_format(table, &o->format);
}

json_t *cancel_job(struct api *api, const char *id, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s/cancel", id);
    return api_post(api, path, NULL, NULL, err);
}

static json_t *cancel_one(struct api *api, const char *id, const void *closure, struct err *err)
{
    const struct cancel_options *options = closure;
    json_t *job = cancel_job(api, id, err);
    if (job == NULL || !options->wait) {
        return job;
    }
    json_decref(job);
    return wait_job(api, id, -1, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct cancel_options *options = call->options;
    const struct each_job each = {.ask = cancel_one,
                                  .closure = options,
                                  .format = options->format,
                                  .said = ": cancel is asked for; now it is "};
    return each_job(call, &each, err);
}

const struct verb verb_cancel = {
    .name = "cancel",
    .arguments = "ID...",
    .summary = "End jobs.",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = SIZE_MAX,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct cancel_options),
    .describe = describe,
    .run = run,
};
