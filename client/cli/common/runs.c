/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for the runs of a job, and puts a run into words. The verbs choose the runs that they show. */
#include "client/cli/common/runs.h"

#include "client/cli/show/print.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"

json_t *runs_get(struct api *api, const char *id, struct err *err)
{
    autojson json_t *answer = api_get(api, err, "/v1/jobs/%s/runs", id);
    if (answer == NULL || pages_list(answer, "runs", err) == NULL) {
        return NULL;
    }
    return json_incref(json_object_get(answer, "runs"));
}

void runs_say(const json_t *run, struct text *out)
{
    const char *experiment = json_string_of(run, "experiment");
    const char *uri = json_string_of(run, "tracking_uri");
    const char *url = json_string_of(run, "url");
    const char *place = url != NULL ? url : uri;
    text_printf(out, "MLflow run %s", print_text_of(run, "run_id"));
    if (experiment != NULL) {
        text_printf(out, " in experiment %s", experiment);
    }
    if (place != NULL) {
        text_printf(out, " at %s", place);
    }
}
