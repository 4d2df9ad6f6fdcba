/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl run`: makes a job, shows its output, and exits as it did; with --detach it only makes it. */
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/controller/connect.h"
#include "client/cli/common/follow.h"
#include "client/cli/show/print.h"
#include "client/cli/jobs/submit.h"
#include "proto/base/text/json.h"

struct run_options {
    struct spec_options spec; /* first: spec_rows have their offsets in it */
    bool detach;
};

static const struct option_row rows[] = {ROW_FLAG(struct run_options, detach, 'd', "detach",
                                                  "print the id and leave the job to run, as submit does"),
                                         ROW_QUIET("do not tell what becomes of the job"), ROWS_END};

/* A command reads nothing: its stdin is empty on the nodes. */
static void note_stdin(void)
{
    struct stat status;
    int waiting = 0;
    bool known = fstat(STDIN_FILENO, &status) == 0;
    bool file = known && S_ISREG(status.st_mode) && status.st_size > lseek(STDIN_FILENO, 0, SEEK_CUR);
    bool pipe =
        known && S_ISFIFO(status.st_mode) && ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0;
    if (file || pipe) {
        print_note("what is on stdin does not reach the job; --file copies a file into its folder");
    }
}

/* Leaves the job to the controller. */
static bool detach(const struct call *call, const json_t *json, const struct job_view *job, struct err *err)
{
    if (!submit_show(call, json, job, err)) {
        return false;
    }
    if (!call->common->quiet) {
        print_note("`gpuctl logs -f %s` follows it, `gpuctl cancel %s` ends it", job->id, job->id);
    }
    return true;
}

static bool follow(const struct call *call, struct api *api, const struct job_view *job, int *ret_exit,
                   struct err *err)
{
    if (!call->common->quiet) {
        print_note("job %s", job->id);
    }
    return follow_job(api, job, call->common->quiet, ret_exit, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct run_options *own = call->options;
    const struct spec_options *options = &own->spec;
    autojobfile struct jobfile file = {0};
    autoapi struct api *api = NULL;
    autojson json_t *json = NULL;
    struct job_view job;
    if (!submit_read(options, call, &file, err) || !connect_controller(call, true, &api, err) ||
        (!own->detach && !api_catch_interrupts(api, err)) ||
        !submit_send(api, &file, options, call, &json, err) ||
        !job_view_decode(json_incref(json), &job, err)) {
        return false;
    }
    if (!call->common->quiet) {
        note_stdin();
    }
    bool good = own->detach ? detach(call, json, &job, err) : follow(call, api, &job, ret_exit, err);
    job_view_finish(&job);
    return good;
}

const struct verb verb_run = {
    .name = "run",
    .arguments = "[-f FILE] [--] [COMMAND [ARGUMENT]...]",
    .summary = "Make a job, show its output, and exit as it did.",
    .details = "Exits with the code of the rank that did worst (128+N for signal N), 130 when canceled, 124 "
               "at the time limit, 125 when\n"
               "gpuctl itself failed. Ctrl-C cancels the job, a second one leaves at once. Starts a "
               "controller and a node of your own\n"
               "where no controller is named. --detach prints the id and exits with 0 as soon as the job is "
               "on disk.",
    .argument = ARGUMENT_COMMAND,
    .most = SIZE_MAX,
    .stop_at_positional = true,
    .reach = REACH_CONTROLLER,
    .own_failure = EXIT_OWN_FAILURE,
    .options_size = sizeof(struct run_options),
    .rows = {spec_rows, rows},
    .run = run,
};
