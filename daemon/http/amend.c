/* SPDX-License-Identifier: Apache-2.0 */
/* Changes a live job: POST /v1/jobs/{id}/hold and /release, PATCH /v1/jobs/{id}. It promises that a PATCH
 * with If-Match changes the job only as its sender saw it. What a change brings about is the core's part. */
#include <string.h>

#include "daemon/http/job_ask.h"
#include "daemon/http/parts.h"
#include "daemon/http/resources.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"

static const struct job_ask_kind kind = {.status = 200, .achieved = JOB_STATE_COUNT};

static void ask_about_hold(struct request *request, enum input_kind what)
{
    const struct input input = {.kind = what,
                                .hold = {.id = request->argument, .by = identity_owner(request->who)}};
    struct err err;
    if (request_only_fields(request->json, "", &err)) {
        job_ask(request, &input, &kind);
    } else {
        request_fail(request, &err);
    }
}

void amend_hold(struct request *request)
{
    ask_about_hold(request, INPUT_HOLD);
}

void amend_release(struct request *request)
{
    ask_about_hold(request, INPUT_RELEASE);
}

bool amend_read_match(const char *header, int64_t *ret_seq, struct err *err)
{
    *ret_seq = -1;
    size_t length = header != NULL ? strlen(header) : 0;
    if (header == NULL || strcmp(header, "*") == 0) {
        return true;
    }
    autofree char *number = length > 2 ? xstrndup(header + 1, length - 2) : xstrdup("");
    return (header[0] == '"' && header[length - 1] == '"' && text_to_int(number, 0, INT64_MAX, ret_seq)) ||
           err_field(err, ERR_FIELD, "If-Match",
                     "take it from the ETag of GET /v1/jobs/{id}, quotes included",
                     "If-Match must be one ETag of the job");
}

static bool read_change(const struct request *request, struct input *input, struct err *err)
{
    const json_t *json = request->json;
    if (!request_only_fields(json, "priority time_limit_s", err) ||
        !amend_read_match(request->headers.if_match, &input->change.if_seq, err) ||
        !json_read_int(json, "priority", -LIMIT_PRIORITY, LIMIT_PRIORITY, &input->change.priority, err) ||
        !json_read_seconds(json, "time_limit_s", 0, LIMIT_TIME_MS, &input->change.time_limit_ms, err)) {
        return false;
    }
    input->change.sets_priority = json_is_number(json_object_get(json, "priority"));
    input->change.sets_time_limit = json_object_get(json, "time_limit_s") != NULL;
    return input->change.sets_priority || input->change.sets_time_limit ||
           err_field(err, ERR_FIELD, NULL, "give priority, time_limit_s, or both; null takes a limit away",
                     "nothing is to be changed");
}

void amend_change(struct request *request)
{
    struct input input = {.kind = INPUT_CHANGE,
                          .change = {.id = request->argument, .by = identity_owner(request->who)}};
    struct err err;
    if (read_change(request, &input, &err)) {
        job_ask(request, &input, &kind);
    } else {
        request_fail(request, &err);
    }
}
