/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl plan`: what a job would meet if it were submitted now. Nothing is sent along and nothing is stored.
 */
#include <stdint.h>
#include <stdlib.h>

#include "client/cli/bundle/bundle.h"
#include "client/cli/controller/connect.h"
#include "client/cli/jobs/explain.h"
#include "client/cli/show/print.h"
#include "client/cli/jobs/submit.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/json.h"

static bool show(const struct call *call, json_t *answer, struct err *err)
{
    autotext struct text out = {0};
    if (print_is_json(call->format)) {
        print_json(answer, &out);
    } else {
        explain_print(answer, clock_wall_ms(), &out);
    }
    return print_out(&out, err);
}

/* What a submission of this spec would be told; the caller's. */
static json_t *ask(struct api *api, const struct jobfile *file, const struct spec_options *options,
                   const struct call *call, struct err *err)
{
    autojson json_t *spec = submit_spec(NULL, file, options, call, NULL, err);
    return spec != NULL && bundle_name(spec, err) ? api_ask(api, "POST", spec, err, "/v1/plan") : NULL;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct spec_options *options = call->options;
    autojobfile struct jobfile file = {0};
    autoapi struct api *api = NULL;
    if (!submit_read(options, call, &file, err) || !connect_controller(call, true, &api, err)) {
        return false;
    }
    autojson json_t *answer = ask(api, &file, options, call, err);
    *ret_exit = json_is_false(json_object_get(answer, "admitted")) ? EXIT_FAILURE : EXIT_SUCCESS;
    return answer != NULL && show(call, answer, err);
}

const struct verb verb_plan = {
    .name = "plan",
    .arguments = "[-f FILE] [--] [COMMAND [ARGUMENT]...]",
    .summary = "Say when a job would start if it were submitted now, and submit nothing.",
    .details = "Takes the options of submit. What travels with the job is not sent. Starts a controller and "
               "a node of\n"
               "your own where no controller is named. Exits with 1 where the job would be refused.\n"
               "\n"
               "Examples:\n"
               "  gpuctl plan --gpus 8 --gpu-type H100 -- python train.py\n"
               "  gpuctl plan -f job.yaml --time 2h\n"
               "  gpuctl plan --gpus 8 -o json -- true | jq .smallest_change",
    .argument = ARGUMENT_COMMAND,
    .most = SIZE_MAX,
    .stop_at_positional = true,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct spec_options),
    .rows = {spec_rows, rows_format},
    .run = run,
};
