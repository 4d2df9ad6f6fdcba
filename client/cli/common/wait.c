/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl wait`: waits for jobs and exits as the worst of them did. */
#include "client/cli/common/wait.h"

#include <stdint.h>

#include "client/cli/common/jobs.h"
#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_client.h"
#include "proto/wire/views.h"

struct wait_options {
    int64_t timeout_ms; /* -1: not given */
};

static const struct option_row rows[] = {ROW_DURATION(struct wait_options, timeout_ms, 't', "timeout",
                                                      "give up after this, with exit code 8",
                                                      .absent = NOT_GIVEN),
                                         ROW_FORMAT, ROWS_END};

bool wait_is_over(const json_t *job)
{
    enum job_state state;
    const char *text = json_string_of(job, "state");
    return text != NULL && job_state_from_text(text, &state) && job_state_terminal(state);
}

/* How long the next request may wait. */
static int64_t patience_ms(int64_t deadline_ms)
{
    int64_t longest = LIMIT_WAIT_S * 1000;
    int64_t left = deadline_ms < 0 ? longest : deadline_ms - clock_boot_ms();
    return left < 0 ? 0 : left < longest ? left : longest;
}

static json_t *ask(struct api *api, const char *id, int64_t wait_ms, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s?wait=%lldms", id, (long long)wait_ms);
    struct request request = {.method = "GET", .path = path, .timeout_ms = wait_ms + CLIENT_REPLY_MS};
    return api_send_json(api, &request, err);
}

json_t *wait_job(struct api *api, const char *id, int64_t deadline_ms, struct err *err)
{
    int64_t pause = CLIENT_BACKOFF_MS;
    for (;;) {
        int64_t patience = patience_ms(deadline_ms);
        autojson json_t *job = ask(api, id, patience, err);
        if (job != NULL && wait_is_over(job)) {
            return give(job);
        }
        if (job == NULL && !err_retryable(err->code)) {
            return NULL;
        }
        if (deadline_ms >= 0 && clock_boot_ms() >= deadline_ms) {
            err_set(err, ERR_WAIT_TIMEOUT, "job %s has not ended in time", id);
            return NULL;
        }
        if (job == NULL) {
            api_lost(api, err);
            api_pause(api, pause);
            pause = api_next_pause(pause);
        } else {
            pause = CLIENT_BACKOFF_MS;
        }
    }
}

/* --- the verb --- */

static bool wait_one(struct api *api, const char *argument, int64_t deadline_ms, json_t *jobs, int *worst,
                     struct err *err)
{
    char id[RESOLVED_BYTES];
    if (!resolve_job(api, argument, id, err)) {
        return false;
    }
    json_t *json = wait_job(api, id, deadline_ms, err);
    struct job_view job;
    if (json == NULL || !job_view_decode(json_incref(json), &job, err)) {
        json_decref(json);
        return false;
    }
    json_array_append_new(jobs, json);
    print_note("job %s %s%s%s", job.id, job_state_text(job.state), job.reason != NULL ? ": " : "",
               job.reason != NULL ? job.reason : "");
    *worst = job.exit_code > *worst ? (int)job.exit_code : *worst;
    job_view_finish(&job);
    return true;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct wait_options *options = call->options;
    int64_t deadline_ms = options->timeout_ms != NOT_GIVEN ? clock_boot_ms() + options->timeout_ms : -1;
    autojson json_t *jobs = json_array();
    for (size_t i = 0; i < call->rest_count; i++) {
        if (!wait_one(call->api, call->rest[i], deadline_ms, jobs, ret_exit, err)) {
            return false;
        }
    }
    autotext struct text out = {0};
    if (print_is_json(call->format)) {
        print_list(call->format, "jobs", jobs, &out);
    }
    return print_out(&out, err);
}

const struct verb verb_wait = {
    .name = "wait",
    .arguments = "ID...",
    .summary = "Wait for jobs and exit as the worst of them did.",
    .details = "Exits with 8 when --timeout passes first, and with 125 when gpuctl itself failed.",
    OF_JOBS,
    .own_failure = EXIT_OWN_FAILURE,
    .options_size = sizeof(struct wait_options),
    .rows = {rows},
    .run = run,
};
