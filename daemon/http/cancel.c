/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels a job: POST /v1/jobs/{id}/cancel. It promises that a job that was canceled may be canceled again.
 * How a gang is stopped is the core's part. */
#include "daemon/http/job_ask.h"
#include "daemon/http/parts.h"
#include "daemon/http/resources.h"

void cancel_job(struct request *request)
{
    static const struct job_ask_kind kind = {.status = 202, .achieved = JOB_CANCELED};
    const struct input input = {.kind = INPUT_CANCEL,
                                .cancel = {.id = request->argument, .by = identity_owner(request->who)}};
    struct err err;
    if (request_only_fields(request->json, "", &err)) {
        job_ask(request, &input, &kind);
    } else {
        request_fail(request, &err);
    }
}
