/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl run`: makes a job, shows its output, and exits as it did; with --detach it only makes it. */
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/controller/connect.h"
#include "client/cli/controller/any.h"
#include "client/cli/common/follow.h"
#include "client/cli/show/print.h"
#include "client/cli/jobs/submit.h"
#include "client/cli/stream/interactive.h"
#include "client/cli/stream/session.h"
#include "proto/base/text/json.h"

struct run_options {
    struct spec_options spec; /* first: spec_rows have their offsets in it */
    bool detach, interactive, terminal, any;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct run_options, detach, 'd', "detach",
             "print the id and leave the job to run, as submit does"),
    ROW_FLAG(struct run_options, interactive, 'i', "stdin", "the command reads what gpuctl's stdin gets"),
    ROW_FLAG(struct run_options, terminal, 0, "tty",
             "that, and the command has a terminal, as a shell wants it", .spec.joined = "it"),
    ROW_ANY(struct run_options, any),
    ROW_QUIET("do not tell what becomes of the job"),
    ROWS_END};

static bool is_interactive(const struct run_options *options)
{
    return options->interactive || options->terminal;
}

static bool check(const struct call *call, struct err *err)
{
    const struct run_options *options = call->options;
    if (options->detach && is_interactive(options)) {
        return err_field(err, ERR_USAGE, "detach", "leave out one of the two",
                         "--detach leaves the job alone, and -i reads for it");
    }
    return any_allowed(options->any, options->spec.key, err) &&
           session_allowed(is_interactive(options), options->terminal, err);
}

/* Without -i a command reads nothing: its stdin is empty on the nodes. */
static void note_stdin(void)
{
    struct stat status;
    int waiting = 0;
    bool known = fstat(STDIN_FILENO, &status) == 0;
    bool file = known && S_ISREG(status.st_mode) && status.st_size > lseek(STDIN_FILENO, 0, SEEK_CUR);
    bool pipe =
        known && S_ISFIFO(status.st_mode) && ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0;
    if (file || pipe) {
        print_note(
            "what is on stdin does not reach the job without -i; --file copies a file into its folder");
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

/* *ret_command: with -i, what the job is held for; else NULL. */
static bool send(const struct call *call, struct api *api, const struct jobfile *file, json_t **ret_command,
                 json_t **ret_json, struct err *err)
{
    const struct run_options *options = call->options;
    if (!is_interactive(options)) {
        return submit_send(api, file, &options->spec, call, ret_json, err);
    }
    struct notes notes = {0};
    autojson json_t *spec = submit_spec(api, file, &options->spec, call, &notes, err);
    notes_print(&notes, "bundle");
    notes_finish(&notes);
    *ret_json = spec != NULL && interactive_hold(spec, ret_command, err)
                    ? api_submit(api, spec, options->spec.key, err)
                    : NULL;
    return *ret_json != NULL;
}

static bool follow(const struct call *call, struct api *api, const struct job_view *job, json_t *command,
                   int *ret_exit, struct err *err)
{
    const struct run_options *options = call->options;
    bool quiet = call->common->quiet;
    if (!quiet) {
        print_note("job %s", job->id);
    }
    return command != NULL ? interactive_run(api, job, command, options->terminal, quiet, ret_exit, err)
                           : follow_job(api, job, quiet, ret_exit, err);
}

static bool connect(const struct call *call, const struct jobfile *file, struct api **ret_api,
                    struct err *err)
{
    const struct run_options *options = call->options;
    if (!options->any) {
        return connect_controller(call, true, ret_api, err);
    }
    autojson json_t *spec = submit_plan_spec(file, &options->spec, call, err);
    return spec != NULL && any_connect(call, spec, ret_api, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct run_options *own = call->options;
    autojobfile struct jobfile file = {0};
    autoapi struct api *api = NULL;
    autojson json_t *json = NULL;
    autojson json_t *command = NULL;
    struct job_view job;
    if (!submit_read(&own->spec, call, &file, err) || !connect(call, &file, &api, err) ||
        (!own->detach && !api_catch_interrupts(api, err)) || !send(call, api, &file, &command, &json, err) ||
        !job_view_decode(json_incref(json), &job, err)) {
        return false;
    }
    if (!call->common->quiet && !is_interactive(own)) {
        note_stdin();
    }
    bool good = own->detach ? detach(call, json, &job, err) : follow(call, api, &job, command, ret_exit, err);
    job_view_finish(&job);
    return good;
}

const struct verb verb_run = {
    .name = "run",
    .arguments = "[-f FILE] [--] [COMMAND [ARGUMENT]...]",
    .summary = "Make a job, show its output, and exit as it did.",
    .details =
        "Exits with the code of the rank that did worst (128+N for signal N), 130 when canceled, 124 "
        "at the time limit, 125 when\n"
        "gpuctl itself failed. Ctrl-C cancels the job, a second one leaves at once. Starts a "
        "controller and a node of your own\n"
        "where no controller is named. --detach prints the id and exits with 0 as soon as the job is "
        "on disk.\n"
        "With -i the command runs beside rank 0 of the job, and its output comes straight here: it is not "
        "kept as the job's. Other\n"
        "ranks have nothing to do; their GPUs are for what the command starts.\n"
        "\n"
        "Examples:\n"
        "  gpuctl run --gpus 1 -- python train.py\n"
        "  gpuctl run -it --gpus 1 -- bash          a shell with a GPU, until it ends\n"
        "  echo 3 | gpuctl run -i -- python square.py",
    .argument = ARGUMENT_COMMAND,
    .most = SIZE_MAX,
    .stop_at_positional = true,
    .reach = REACH_CONTROLLER,
    .own_failure = EXIT_OWN_FAILURE,
    .options_size = sizeof(struct run_options),
    .rows = {spec_rows, rows},
    .check = check,
    .run = run,
};
