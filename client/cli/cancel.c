/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl cancel`: ends jobs. */
#include "client/cli/cancel.h"

#include <stdint.h>

#include "client/cli/connect.h"
#include "client/cli/print.h"
#include "client/cli/resolve.h"
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

/* Cancels one and adds what the controller says of it. */
static bool cancel_one(struct api *api, const char *argument, bool wait, json_t *jobs, struct err *err)
{
    char id[RESOLVED_BYTES];
    if (!resolve_job(api, argument, id, err)) {
        return false;
    }
    json_t *job = cancel_job(api, id, err);
    if (job != NULL && wait) {
        json_decref(job);
        job = wait_job(api, id, -1, err);
    }
    if (job == NULL) {
        return false;
    }
    json_array_append_new(jobs, job);
    return true;
}

static bool show(const json_t *jobs, enum print_format format, struct err *err)
{
    autotext struct text out = {0};
    size_t i;
    json_t *job;
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_list(format, "jobs", jobs, &out);
        return print_out(&out, err);
    }
    json_array_foreach (jobs, i, job) {
        const char *id = json_string_value(json_object_get(job, "id"));
        const char *state = json_string_value(json_object_get(job, "state"));
        print_note("job %s: cancel is asked for; now it is %s", id != NULL ? id : "?",
                   state != NULL ? state : "?");
    }
    return true;
}

/* Goes on after a failure, so that one wrong id keeps no other job alive; the first error is the verb's. */
static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct cancel_options *options = call->options;
    autoapi struct api *api = NULL;
    autojson json_t *jobs = json_array();
    bool good = true;
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    for (size_t i = 0; i < call->rest_count; i++) {
        struct err one;
        if (cancel_one(api, call->rest[i], options->wait, jobs, &one)) {
            continue;
        }
        if (good) {
            *err = one;
        } else {
            print_error(&one);
        }
        good = false;
    }
    return show(jobs, print_format(options->format), good ? err : NULL) && good;
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
