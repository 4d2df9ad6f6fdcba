/* SPDX-License-Identifier: Apache-2.0 */
/* srun outside of a job: makes a job of the command, shows its output, and exits as it did. The job is the
 * one that sbatch makes of a script whose only line is srun and the command, so tasks and variables are the
 * same. */
#include <libgen.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/bundle/attach.h"
#include "client/cli/common/follow.h"
#include "client/cli/controller/connect.h"
#include "client/cli/slurm/batch.h"
#include "client/cli/slurm/commands/commands.h"
#include "client/cli/spec/short_forms.h"
#include "client/cli/stream/interactive.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

#define SCRIPT     "#!/bin/sh\nexec srun \"$@\"\n"
#define SCRIPT_PTY "#!/bin/sh\nexec \"$@\"\n" /* one process, on the first node, as in Slurm */

struct srun_options {
    struct batch_options batch; /* first: the rows of sbatch have their offsets in it */
    struct option_list files;
    const char *mpi, *cpu_bind, *distribution;
    bool terminal, label, unbuffered, overlap, exact, kill_on_bad_exit;
};

static const struct option_row job_rows[] = {
#define X(member, letter, name, value, help, fate, remark)                                                   \
    ROW_TEXT(struct batch_options, member, letter, name, value, help),
    JOB_TEXTS(X)
#undef X
#define X(member, letter, name, help, fate, remark)                                                          \
    ROW_FLAG(struct batch_options, member, letter, name, help),
        JOB_FLAGS(X)
#undef X
            ROWS_END};

static const struct option_row rows[] = {
    ROW_FLAG(struct srun_options, terminal, 0, "pty", "one task, in a terminal that is this one"),
    ROW_LIST(struct srun_options, files, 0, "file", "LOCAL[:REMOTE]", "copy a file into the job's folder"),
    ROW_FLAG(struct srun_options, label, 'l', "label", "output of several nodes names its node anyway"),
    ROW_FLAG(struct srun_options, unbuffered, 'u', "unbuffered", "so it is anyway"),
    ROW_FLAG(struct srun_options, kill_on_bad_exit, 'K', "kill-on-bad-exit", "so it is anyway"),
    ROW_FLAG(struct srun_options, overlap, 0, "overlap", NOT_HERE),
    ROW_FLAG(struct srun_options, exact, 0, "exact", NOT_HERE),
    ROW_TEXT(struct srun_options, mpi, 0, "mpi", "TYPE", NOT_HERE),
    ROW_TEXT(struct srun_options, cpu_bind, 0, "cpu-bind", "HOW", NOT_HERE),
    ROW_TEXT(struct srun_options, distribution, 'm', "distribution", "HOW", NOT_HERE),
    ROW_FLAG(struct common, quiet, 'Q', "quiet", "do not tell what becomes of the job", .is_common = true),
    ROWS_END};

static bool check(const struct call *call, struct err *err)
{
    const struct srun_options *options = call->options;
    return !options->terminal || isatty(STDIN_FILENO) == 1 ||
           err_field(err, ERR_USAGE, "pty", "leave out --pty", "stdin is no terminal");
}

/* --- the job --- */

static void note_left_out(const struct srun_options *options, struct notes *notes)
{
    if (options->mpi != NULL) {
        notes_add(notes, "--mpi is left out: programs find each other by MASTER_ADDR and MASTER_PORT");
    }
    if (options->cpu_bind != NULL || options->distribution != NULL) {
        notes_add(notes, "--%s is left out", options->cpu_bind != NULL ? "cpu-bind" : "distribution");
    }
}

static json_t *make_spec(struct api *api, const struct call *call, struct err *err)
{
    const struct srun_options *options = call->options;
    const char *script = options->terminal ? SCRIPT_PTY : SCRIPT;
    autofree char *here = api_context(api)->embedded ? getcwd(NULL, 0) : NULL;
    autofree char *program = xstrdup(call->rest[0]);
    struct notes notes = {0};
    struct batch batch;
    if (!batch_parse(basename(program), script, strlen(script), &options->batch, &batch, err)) {
        return NULL;
    }
    autojson json_t *spec = batch_spec(&batch, call->rest, call->rest_count, here, false, &notes, err);
    note_left_out(options, &notes);
    if (!call->common->quiet) {
        notes_print(&notes, "srun");
    }
    notes_finish(&notes);
    batch_finish(&batch);
    bool good = spec != NULL && after_fill(api, spec, NULL, NULL, err) &&
                attach_files(api, &options->files, spec, err);
    return good ? give(spec) : NULL;
}

static bool submit(struct api *api, const struct call *call, int *ret_exit, struct err *err)
{
    const struct srun_options *options = call->options;
    bool quiet = call->common->quiet;
    autojson json_t *spec = make_spec(api, call, err);
    autojson json_t *command = NULL;
    if (spec == NULL || (options->terminal && !interactive_hold(spec, &command, err))) {
        return false;
    }
    autojson json_t *json = api_submit(api, spec, NULL, err);
    struct job_view job;
    if (json == NULL || !job_view_decode(json_incref(json), &job, err)) {
        return false;
    }
    bool good = command != NULL ? interactive_run(api, &job, command, true, quiet, ret_exit, err)
                                : follow_job(api, &job, quiet, ret_exit, err);
    job_view_finish(&job);
    return good;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    autoapi struct api *api = NULL;
    return connect_controller(call, true, &api, err) && api_catch_interrupts(api, err) &&
           submit(api, call, ret_exit, err);
}

const struct verb command_srun = {
    .name = "srun",
    .arguments = "COMMAND [ARGUMENT]...",
    .summary = "Run a command as a job of gpuctl, as Slurm's srun does.",
    .details = "It exits as the job did. Ctrl-C cancels the job. The command reads nothing from here but "
               "with --pty. Inside of a "
               "batch script\n"
               "another srun starts the tasks: see gpuctl-sbatch(1). --version says which gpuctl this is.",
    .argument = ARGUMENT_COMMAND,
    .least = 1,
    .most = SIZE_MAX,
    .stop_at_positional = true,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct srun_options),
    .rows = {job_rows, rows},
    .check = check,
    .run = run,
};
