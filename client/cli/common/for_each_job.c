/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of a verb over several jobs. What is done to one of them is left to the verb. */
#include "client/cli/common/for_each_job.h"

#include "client/cli/common/resolve.h"

#include "proto/base/cleanup.h"
#include "proto/base/json.h"

static bool ask_one(struct api *api, const struct for_each_job *each, const char *argument, json_t *jobs,
                    struct err *err)
{
    char id[RESOLVED_BYTES];
    if (!resolve_job(api, argument, id, err)) {
        return false;
    }
    json_t *job = each->ask(api, id, each->closure, err);
    return job != NULL && json_array_append_new(jobs, job) == 0;
}

static bool show(const struct call *call, const json_t *jobs, const char *said, struct err *err)
{
    autotext struct text out = {0};
    size_t i;
    json_t *job;
    if (print_is_json(call->format)) {
        print_list(call->format, "jobs", jobs, &out);
        return print_out(&out, err);
    }
    json_array_foreach (jobs, i, job) {
        const char *id = json_string_of(job, "id");
        const char *state = json_string_of(job, "state");
        print_note("job %s%s%s", id != NULL ? id : "?", said, state != NULL ? state : "");
    }
    return true;
}

bool for_each_job(const struct call *call, const struct for_each_job *each, struct err *err)
{
    autojson json_t *jobs = json_array();
    bool good = true;
    for (size_t i = 0; i < call->rest_count; i++) {
        struct err one;
        if (ask_one(call->api, each, call->rest[i], jobs, &one)) {
            continue;
        }
        if (good) {
            *err = one;
        } else {
            print_error(&one);
        }
        good = false;
    }
    return show(call, jobs, each->said, good ? err : NULL) && good;
}
