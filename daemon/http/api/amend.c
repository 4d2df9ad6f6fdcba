/* SPDX-License-Identifier: Apache-2.0 */
/* Changes a live job: POST /v1/jobs/{id}/cancel, /hold and /release, PATCH /v1/jobs/{id}. It promises that a
 * job that was canceled may be canceled again, and that a PATCH with If-Match changes the job only as its
 * sender saw it. What a change brings about is the core's part. */
#include <string.h>

#include "daemon/http/api/job_ask.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/limits.h"

static const struct job_ask_kind change = {.status = 200, .achieved = JOB_STATE_COUNT};
static const struct job_ask_kind cancel = {.status = 202, .achieved = JOB_CANCELED};

bool amend_ask(struct request *request, struct err *err)
{
    const char *by = identity_owner(request->who);
    struct input input = {.kind = (enum input_kind)request->route->what};
    if (input.kind == INPUT_CANCEL) {
        input.cancel.id = request->argument;
        input.cancel.by = by;
    } else {
        input.hold.id = request->argument;
        input.hold.by = by;
    }
    return request_only_fields(request->json, "", err) &&
           job_ask(request, &input, input.kind == INPUT_CANCEL ? &cancel : &change, err);
}

/* The seq that an If-Match header names; -1: any, or there is no header. */
static bool read_match(const char *header, int64_t *ret_seq, struct err *err)
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
        !read_match(request->headers.if_match, &input->change.if_seq, err) ||
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

bool amend_change(struct request *request, struct err *err)
{
    struct input input = {.kind = INPUT_CHANGE,
                          .change = {.id = request->argument, .by = identity_owner(request->who)}};
    return read_change(request, &input, err) && job_ask(request, &input, &change, err);
}
