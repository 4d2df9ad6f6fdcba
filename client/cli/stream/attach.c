/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl attach`: shows a job that was made before as `gpuctl run` shows its own. */
#include "client/cli/common/follow.h"
#include "client/cli/common/jobs.h"
#include "client/cli/frame/verb.h"

static const struct option_row rows[] = {ROW_QUIET("do not tell what becomes of the job"), ROWS_END};

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    struct job_view job;
    if (!api_catch_interrupts(call->api, err) || !ranks_get_job(call->api, call->id, true, &job, err)) {
        return false;
    }
    bool good = follow_attach(call->api, &job, call->common->quiet, ret_exit, err);
    job_view_finish(&job);
    return good;
}

const struct verb verb_attach = {
    .name = "attach",
    .arguments = "JOB",
    .summary = "Show a job's output as it comes, and exit as it did.",
    .details =
        "It is what run shows of its own job: the output from its begin, and what becomes of the job. "
        "Exit codes are those of\n"
        "run. Ctrl-C ends gpuctl with 130 and leaves the job alone. For a shell in the job: gpuctl exec "
        "-it JOB.",
    OF_A_JOB,
    .own_failure = EXIT_OWN_FAILURE,
    .rows = {rows},
    .run = run,
};
