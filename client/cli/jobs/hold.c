/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl cancel`, `hold` and `release`: end jobs, keep waiting jobs back, and let them go. */
#include <stdint.h>

#include "client/cli/common/answer.h"
#include "client/cli/common/wait.h"
#include "client/cli/transport/api.h"
#include "proto/base/json.h"

/* --- cancel --- */

struct cancel_options {
    bool wait;
};

static const struct option_row cancel_rows[] = {
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

static bool cancel_run(const struct call *call, int *ret_exit, struct err *err)
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
    .rows = {cancel_rows},
    .run = cancel_run,
};

/* --- hold and release --- */

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
