/* SPDX-License-Identifier: Apache-2.0 */
/* Says which ranks a job has. */
#include "client/cli/common/ranks.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/json.h"

bool ranks_get_job(struct api *api, const char *id, bool retry, struct job_view *ret_job, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s", id);
    autotext struct text body = {0};
    if (!api_send(api, &(struct request){.method = "GET", .path = path, .retry = retry}, &body, err)) {
        return false;
    }
    json_t *json = json_parse(body.bytes, body.length, err);
    return json != NULL && job_view_decode(json, ret_job, err);
}

bool ranks_by_node(const struct job_view *job)
{
    autojson json_t *spec = job->spec != NULL ? json_parse(job->spec, strlen(job->spec), NULL) : NULL;
    const char *mode = NULL;
    json_read_text(spec, "launch_mode", &mode, NULL);
    return mode != NULL && strcmp(mode, launch_mode_text(LAUNCH_NODE)) == 0;
}

int64_t ranks_count(const struct job_view *job)
{
    return ranks_by_node(job) && job->placement_count > 0 ? (int64_t)job->placement_count : job->gpus;
}

bool ranks_check(const struct job_view *job, int64_t rank, struct err *err)
{
    int64_t count = ranks_count(job);
    if (rank < count) {
        return true;
    }
    autofree char *hint =
        count == 1 ? xstrdup("its only rank is 0") : xprintf("its ranks are 0 to %lld", (long long)count - 1);
    return err_field(err, ERR_USAGE, "rank", hint, "job %s has no rank %lld", job->id, (long long)rank);
}
