/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl sbatch`: submits a batch script for Slurm. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/spec/short_forms.h"
#include "client/cli/bundle/attach.h"
#include "client/cli/slurm/batch.h"
#include "client/cli/controller/connect.h"
#include "client/cli/show/print.h"
#include "client/cli/common/wait.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"
#include "proto/wire/views.h"

struct sbatch_options {
    struct batch_options batch; /* first, as batch_rows have it */
    struct option_list files;
    bool ignore;
    const char *key;
};

static const struct option_row rows[] = {
    ROW_LIST(struct sbatch_options, files, 0, "file", "LOCAL[:REMOTE]", "copy a file into the job's folder"),
    ROW_FLAG(struct sbatch_options, ignore, 0, "ignore-unsupported", "leave out what cannot be honoured"),
    ROW_TEXT(struct sbatch_options, key, 0, "key", "KEY",
             "Idempotency-Key: the same key never makes two jobs"),
    ROWS_END};

static bool read_script(const struct call *call, struct batch *ret_batch, struct err *err)
{
    const struct sbatch_options *options = call->options;
    bool wrapped = options->batch.wrap != NULL, named = call->rest_count > 0;
    if ((wrapped && named) || (!wrapped && !named && isatty(STDIN_FILENO) == 1)) {
        return err_field(err, ERR_USAGE, NULL, "write SCRIPT [ARGUMENT]..., or --wrap COMMAND",
                         wrapped ? "a script and --wrap exclude each other" : "there is no script");
    }
    return batch_read(wrapped ? NULL : named ? call->rest[0] : "/dev/stdin", &options->batch, ret_batch, err);
}

/* Checks what otherwise only the controller would find wrong. */
static bool check(const json_t *spec, struct err *err)
{
    struct job_spec decoded;
    if (!job_spec_decode(json_deep_copy(spec), LIMIT_LEASE_MIN_MS, &decoded, err)) {
        return false;
    }
    job_spec_finish(&decoded);
    return true;
}

static json_t *make_spec(struct api *api, const struct batch *batch, const struct call *call, struct err *err)
{
    const struct sbatch_options *options = call->options;
    autofree char *here = api_context(api)->embedded ? getcwd(NULL, 0) : NULL;
    struct notes notes = {0};
    size_t skip = call->rest_count > 0;
    autojson json_t *spec =
        batch_spec(batch, call->rest + skip, call->rest_count - skip, here, options->ignore, &notes, err);
    notes_print(&notes, batch->name);
    notes_finish(&notes);
    bool good = spec != NULL && after_fill(api, spec, NULL, NULL, err) &&
                attach_files(api, &options->files, spec, err) && check(spec, err);
    return good ? give(spec) : NULL;
}

static bool show(const struct batch *batch, const char *id, struct err *err)
{
    autotext struct text out = {0};
    text_printf(&out, batch->options.parsable ? "%s\n" : "Submitted batch job %s\n", id);
    return print_out(&out, err) && (fflush(stdout) == 0 || err_errno(err, "cannot write the id"));
}

/* --wait */
static bool wait_end(struct api *api, const struct batch *batch, const char *id, int *ret_exit,
                     struct err *err)
{
    struct job_view job;
    json_t *json = wait_job(api, id, -1, err);
    if (json == NULL || !job_view_decode(json, &job, err)) {
        return false;
    }
    print_note("job %s %s%s%s", job.id, job_state_text(job.state), job.reason != NULL ? ": " : "",
               job.reason != NULL ? job.reason : "");
    *ret_exit = (int)job.exit_code;
    struct err unwritten;
    if (!batch_write_output(api, &batch->options, &job, &unwritten)) { /* the job's end stands */
        print_note("%s; `gpuctl logs %s` has the output", unwritten.text, job.id);
    }
    job_view_finish(&job);
    return true;
}

static bool submit(const struct batch *batch, const struct call *call, int *ret_exit, struct err *err)
{
    const struct sbatch_options *options = call->options;
    autoapi struct api *api = NULL;
    if (!connect_controller(call, true, &api, err)) {
        return false;
    }
    autojson json_t *spec = make_spec(api, batch, call, err);
    autojson json_t *json = spec != NULL ? api_submit(api, spec, options->key, err) : NULL;
    const char *id = NULL;
    if (json == NULL || !json_need_text(json, "id", &id, err) || !show(batch, id, err)) {
        return false;
    }
    if (batch->options.wait &&
        !wait_end(api, batch, id, ret_exit, err)) { /* codes are the job's from here on */
        print_error(err);
        *ret_exit = EXIT_OWN_FAILURE;
    }
    return true;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    struct batch batch;
    if (!read_script(call, &batch, err)) {
        return false;
    }
    bool good = submit(&batch, call, ret_exit, err);
    batch_finish(&batch);
    return good;
}

const struct verb verb_sbatch = {
    .name = "sbatch",
    .arguments = "[SCRIPT [ARGUMENT]...]",
    .summary = "Submit a batch script that was written for Slurm.",
    .details = "Options are Slurm's, here or on #SBATCH lines of the script; here wins. Without SCRIPT it is "
               "read from stdin. The script runs\n"
               "on every node of the job, and srun in it starts the tasks of that node. `gpuctl convert "
               "SCRIPT` shows what is made of it. With\n"
               "--wait it exits as the job did, and with 125 when gpuctl could not tell.",
    .argument = ARGUMENT_COMMAND,
    .most = SIZE_MAX,
    .stop_at_positional = true,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct sbatch_options),
    .rows = {batch_rows, rows},
    .run = run,
};
