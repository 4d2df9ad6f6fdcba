/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl retry`: submits jobs that have ended again, and prints the ids of the new ones. */
#include "client/cli/common/answer.h"
#include "client/cli/common/jobs.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

static bool retry_one(const struct call *call, const char *argument, struct err *err)
{
    char id[RESOLVED_BYTES];
    if (!resolve_job(call->api, argument, id, err)) {
        return false;
    }
    autojson json_t *job = api_ask(call->api, "POST", NULL, err, "/v1/jobs/%s/retry", id);
    return job != NULL && answer_member(call, job, "id", err);
}

/* Goes on after a failure, so that one wrong id keeps no other job from it; the first error is the verb's. */
static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    bool good = true;
    for (size_t i = 0; i < call->rest_count; i++) {
        struct err one;
        if (retry_one(call, call->rest[i], &one)) {
            continue;
        }
        if (good) {
            *err = one;
        } else {
            print_error(&one);
        }
        good = false;
    }
    return good;
}

const struct verb verb_retry = {
    .name = "retry",
    .arguments = "ID...",
    .summary = "Submit jobs that have ended again, and print the new ids.",
    .details = "A new job has the spec of the old one, with its bundle and its files, and is yours. An array "
               "runs again as a whole.",
    OF_JOBS,
    .rows = {rows_format},
    .run = run,
};
