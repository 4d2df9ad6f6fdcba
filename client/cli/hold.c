/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl hold` and `gpuctl release`: keep waiting jobs back, and let them go. */
#include <stdint.h>

#include "client/cli/api.h"
#include "client/cli/each_job.h"
#include "client/cli/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

struct hold_options {
    const char *format;
};

static void describe(void *options, struct option_table *table)
{
    struct hold_options *o = options;
    option_add_format(table, &o->format);
}

/* The closure is the last part of the path. */
static json_t *ask_one(struct api *api, const char *id, const void *closure, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s/%s", id, (const char *)closure);
    return api_post(api, path, NULL, NULL, err);
}

static bool ask_all(const struct call *call, const char *what, struct err *err)
{
    const struct hold_options *options = call->options;
    const struct each_job each = {.ask = ask_one, .closure = what, .format = options->format, .said = " is "};
    return each_job(call, &each, err);
}

static bool run_hold(const struct call *call, int *ret_exit, struct err *err)
{
    return ask_all(call, "hold", err);
}

static bool run_release(const struct call *call, int *ret_exit, struct err *err)
{
    return ask_all(call, "release", err);
}

const struct verb verb_hold = {
    .name = "hold",
    .arguments = "ID...",
    .summary = "Keep waiting jobs back.",
    .details = "They keep their place in the queue. A job that has GPUs cannot be held.",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = SIZE_MAX,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct hold_options),
    .describe = describe,
    .run = run_hold,
};

const struct verb verb_release = {
    .name = "release",
    .arguments = "ID...",
    .summary = "Let held jobs wait for GPUs again.",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = SIZE_MAX,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct hold_options),
    .describe = describe,
    .run = run_release,
};
