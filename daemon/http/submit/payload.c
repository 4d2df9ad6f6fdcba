/* SPDX-License-Identifier: Apache-2.0 */
/* Serves GET /v1/jobs/{id}/function: the payload that a submission has brought in its spec, as it was. Its
 * end is the key that opens the results, so it is for the owner alone, as a blob is. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

static bool refuse_others(const struct request *request, const struct job_facts *job, struct err *err)
{
    struct job_record record;
    autorows struct rows rows = reader_job(request->server->reader, job->id, err);
    if (!rows_job(&rows, &record)) {
        return !rows.failed && job_missing(request, err);
    }
    return strcmp(record.birth.owner, identity_owner(request->who)) == 0 ||
           err_set(err, ERR_FORBIDDEN, "the function of job %s is for its owner alone", job->id);
}

bool jobs_function(struct request *request, struct err *err)
{
    struct job_facts job;
    uint8_t *bytes;
    size_t length;
    if (!job_find(request, &job, err) || !refuse_others(request, &job, err)) {
        return false;
    }
    autojson json_t *spec = specs_get(request->server->specs, job.key, err);
    if (spec == NULL) {
        return false;
    }
    const char *text = json_string_of(json_object_get(spec, "function"), "inline");
    if (text == NULL) {
        err_set(err, ERR_CONFLICT, "the spec of job %s has no function in it", job.id);
        return err_hint(err,
                        "one of more than 32 KiB is a blob, which the spec names: GET /v1/blobs/{sha256}");
    }
    if (!text_from_base64(text, strlen(text), &bytes, &length)) {
        return err_set(err, ERR_IO, "the function of job %s cannot be read", job.id);
    }
    request_reply(request, 200, "application/octet-stream", (char *)bytes, length);
    return true;
}
