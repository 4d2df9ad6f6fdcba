/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl update`: changes the priority and the time limit of a job that has not ended. */
#include <stdint.h>
#include <string.h>

#include "client/cli/connect.h"
#include "client/cli/print.h"
#include "client/cli/resolve.h"
#include "client/cli/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"
#include "proto/wire/views.h"

#define NOT_GIVEN INT64_MIN

struct update_options {
    int64_t priority;
    const char *time_limit;
    const char *format;
};

static void describe(void *options, struct option_table *table)
{
    struct update_options *o = options;
    o->priority = NOT_GIVEN;
    option_int(table, 0, "priority", "N", "higher goes first", -LIMIT_PRIORITY, LIMIT_PRIORITY, &o->priority);
    option_text(table, 't', "time-limit", "DURATION", "from the start: 90s, 15m, 2h; or \"none\"",
                &o->time_limit);
    option_add_format(table, &o->format);
}

static bool set_limit(json_t *change, const char *text, struct err *err)
{
    int64_t ms = 0;
    if (text == NULL) {
        return true;
    }
    if (strcmp(text, "none") == 0) {
        return json_object_set_new(change, "time_limit_s", json_null()) == 0;
    }
    if (!text_to_duration_ms(text, &ms)) {
        return err_field(err, ERR_USAGE, "time-limit", "write 90s, 15m, 2h or none",
                         "--time-limit \"%s\" is not a duration", text);
    }
    return json_object_set_new(change, "time_limit_s",
                               ms % 1000 == 0 ? json_integer(ms / 1000) : json_real((double)ms / 1000)) == 0;
}

/* New reference; NULL on failure. */
static json_t *change_of(const struct update_options *options, struct err *err)
{
    autojson json_t *change = json_object();
    if (options->priority != NOT_GIVEN) {
        json_object_set_new(change, "priority", json_integer(options->priority));
    }
    if (!set_limit(change, options->time_limit, err)) {
        return NULL;
    }
    if (json_object_size(change) == 0) {
        err_field(err, ERR_USAGE, NULL, "give --priority or --time-limit", "nothing is to be changed");
        return NULL;
    }
    return give(change);
}

static bool show(json_t *json, enum print_format format, struct err *err)
{
    autotext struct text out = {0};
    struct job_view job;
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_json(json, &out);
        return print_out(&out, err);
    }
    if (!job_view_decode(json_incref(json), &job, err)) {
        return false;
    }
    char limit[32];
    text_from_duration_ms(job.time_limit_ms, limit, sizeof limit);
    print_note("job %s is %s, with priority %lld and %s%s", job.id, job_state_text(job.state),
               (long long)job.priority, job.time_limit_ms > 0 ? "a time limit of " : "no time limit",
               job.time_limit_ms > 0 ? limit : "");
    job_view_finish(&job);
    return true;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct update_options *options = call->options;
    char id[RESOLVED_BYTES];
    autojson json_t *change = change_of(options, err);
    autoapi struct api *api = NULL;
    if (change == NULL || !connect_controller(call, false, &api, err) ||
        !resolve_job(api, call->rest[0], id, err)) {
        return false;
    }
    autofree char *path = xprintf("/v1/jobs/%s", id);
    autojson json_t *job = api_patch(api, path, change, err);
    return job != NULL && show(job, print_format(options->format), err);
}

const struct verb verb_update = {
    .name = "update",
    .arguments = "ID",
    .summary = "Change the priority or the time limit of a job.",
    .details = "A new time limit counts from the start of the job: a limit that has passed already ends it.",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct update_options),
    .describe = describe,
    .run = run,
};
