/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl hold`, `release` and `rm`: keep waiting jobs back, let them go, and remove jobs that have ended. */
#include <stdint.h>

#include "client/cli/common/answer.h"

/* --- hold and release --- */

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    return for_each_job(call, "POST", " is ", false, err);
}

const struct verb verb_hold = {
    .name = "hold",
    .arguments = "ID...",
    .summary = "Keep waiting jobs back.",
    .details = "They keep their place in the queue. A job that has GPUs cannot be held.",
    OF_JOBS,
    .rows = {rows_format},
    .run = run,
};

const struct verb verb_release = {
    .name = "release",
    .arguments = "ID...",
    .summary = "Let held jobs wait for GPUs again, or end the time in which a failed job is kept.",
    .details =
        "A job with --keep-on-failure whose rank failed goes on: with its next attempt, or as FAILED.\n"
        "An array is released with those of its tasks that are kept.",
    OF_JOBS,
    .rows = {rows_format},
    .run = run,
};

/* --- rm --- */

static bool rm_run(const struct call *call, int *ret_exit, struct err *err)
{
    return for_each_job(call, "DELETE", " is removed", false, err);
}

const struct verb verb_rm = {
    .name = "rm",
    .arguments = "ID...",
    .summary = "Remove jobs that have ended, with their output.",
    .details = "An array goes with its tasks. A live job is refused: cancel it first. Runs that jobs tracked "
               "stay.\n"
               "The controller removes old jobs by itself: see gpuctld --keep-jobs and --keep-logs.",
    OF_JOBS,
    .rows = {rows_format},
    .run = rm_run,
};
