/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl hold` and `gpuctl release`: keep waiting jobs back, and let them go. */
#include <stdint.h>
#include <string.h>

#include "client/cli/connect.h"
#include "client/cli/print.h"
#include "client/cli/resolve.h"
#include "client/cli/verb.h"
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

/* Asks for one and adds what the controller says of it. */
static bool ask_one(struct api *api, const char *argument, const char *what, json_t *jobs, struct err *err)
{
    char id[RESOLVED_BYTES];
    if (!resolve_job(api, argument, id, err)) {
        return false;
    }
    autofree char *path = xprintf("/v1/jobs/%s/%s", id, what);
    json_t *job = api_post(api, path, NULL, NULL, err);
    return job != NULL && json_array_append_new(jobs, job) == 0;
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
        print_note("job %s is %s", id != NULL ? id : "?", state != NULL ? state : "?");
    }
    return true;
}

/* Goes on after a failure; the first error is the verb's. */
static bool ask_all(const struct call *call, const char *what, struct err *err)
{
    const struct hold_options *options = call->options;
    autoapi struct api *api = NULL;
    autojson json_t *jobs = json_array();
    bool good = true;
    if (!connect_controller(call, false, &api, err)) {
        return false;
    }
    for (size_t i = 0; i < call->rest_count; i++) {
        struct err one;
        if (ask_one(api, call->rest[i], what, jobs, &one)) {
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
