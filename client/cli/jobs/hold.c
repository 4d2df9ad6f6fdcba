/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl cancel`, `hold`, `release` and `rm`: end jobs, keep waiting jobs back, let them go, and remove jobs
 * that have ended. */
#include <stdint.h>

#include "client/cli/common/answer.h"

/* --- cancel --- */

struct cancel_options {
    bool wait;
};

static const struct option_row cancel_rows[] = {
    ROW_FLAG(struct cancel_options, wait, 0, "wait", "until they have ended"), ROW_FORMAT, ROWS_END};

static bool cancel_run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct cancel_options *options = call->options;
    return for_each_job(call, "POST", ": cancel is asked for; now it is ", options->wait, err);
}

const struct verb verb_cancel = {
    .name = "cancel",
    .arguments = "ID...",
    .summary = "End jobs.",
    OF_JOBS,
    .options_size = sizeof(struct cancel_options),
    .rows = {cancel_rows},
    .run = cancel_run,
};

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
    .summary = "Let held jobs wait for GPUs again.",
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
