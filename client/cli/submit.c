/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl submit`: makes a job and prints its id. */
#include "client/cli/submit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/attach.h"
#include "client/cli/bundle.h"
#include "client/cli/connect.h"
#include "client/cli/environment.h"
#include "client/cli/follow.h"
#include "client/cli/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/json.h"
#include "proto/views.h"

struct submit_options {
    struct spec_options spec;
    const char *format;
};

static void describe(void *options, struct option_table *table)
{
    struct submit_options *o = options;
    spec_describe(&o->spec, table);
    option_add_format(table, &o->format);
}

static void finish(void *options)
{
    struct submit_options *o = options;
    spec_finish(&o->spec);
}

/* What is read from here when the job is sent. */
static bool fill(struct api *api, const struct jobfile *file, const struct spec_options *options,
                 json_t *spec, struct notes *notes, struct err *err)
{
    bool own_packages = options->requirements != NULL || options->python_version != NULL;
    bool own_bundle = options->bundle != NULL || options->python_paths.count > 0;
    const char *field = options->bundle != NULL ? "bundle" : jobfile_bundle_field(file);
    if (!environment_fill(api, options, spec, err)) {
        return own_packages ? false : jobfile_place(file, err);
    }
    if (!attach_files(api, &options->files, spec, err)) {
        return false;
    }
    if (!bundle_fill(api, spec, field, notes, err)) {
        return own_bundle ? false : jobfile_place(file, err);
    }
    return file->name == NULL || attach_sources(api, file->folder, spec, err) || jobfile_place(file, err);
}

json_t *submit_spec(struct api *api, const struct jobfile *file, const struct spec_options *options,
                    const struct call *call, struct notes *notes, struct err *err)
{
    char host_id[65];
    file_host_id(host_id);
    autofree char *here = api != NULL && api_context(api)->embedded ? getcwd(NULL, 0) : NULL;
    struct spec_surroundings around = {.base = file->spec,
                                       .here = here,
                                       .reserved = getenv("DATABRICKS_USE_RESERVED_GPU_POOL"),
                                       .host_id = host_id};
    autojson json_t *spec = spec_build(options, &around, call->rest, call->rest_count, err);
    if (spec == NULL || !fill(api, file, options, spec, notes, err) ||
        (file->name != NULL && !jobfile_check(file, spec, err))) {
        return NULL;
    }
    return give(spec);
}

bool submit_read(const struct spec_options *options, const struct call *call, struct jobfile *ret_file,
                 struct err *err)
{
    *ret_file = (struct jobfile){0};
    if (options->job_file == NULL && call->rest_count == 0) {
        err_set(err, ERR_USAGE, "there is no command");
        return err_hint(err, "write [--] COMMAND [ARGUMENT]..., or -f FILE; see --help");
    }
    if (options->job_file != NULL) {
        if (!jobfile_read(options->job_file, options->ignore_unsupported, ret_file, err)) {
            return false;
        }
        notes_print(&ret_file->notes, ret_file->name);
    }
    bool travels = options->requirements != NULL || options->python_version != NULL ||
                   options->bundle != NULL || options->python_paths.count > 0;
    if (options->job_file == NULL && !travels) {
        return true;
    }
    autojson json_t *checked = submit_spec(NULL, ret_file, options, call, NULL, err);
    return checked != NULL;
}

bool submit_send(struct api *api, const struct jobfile *file, const struct spec_options *options,
                 const struct call *call, json_t **ret_job, struct err *err)
{
    struct notes notes = {0};
    autojson json_t *spec = submit_spec(api, file, options, call, &notes, err);
    notes_print(&notes, "bundle");
    notes_finish(&notes);
    *ret_job = spec != NULL ? api_post(api, "/v1/jobs", spec, options->key, err) : NULL;
    return *ret_job != NULL;
}

static bool show(const struct submit_options *options, json_t *json, struct err *err)
{
    autotext struct text out = {0};
    struct job_view job;
    if (!job_view_decode(json_incref(json), &job, err)) {
        return false;
    }
    switch (print_format(options->format)) {
    case FORMAT_JSON:
    case FORMAT_JSONL:
        print_json(json, &out);
        break;
    case FORMAT_TABLE:
    case FORMAT_WIDE:
        text_printf(&out, "%s\n", job.id);
        if (follow_waits(job.state) && job.reason != NULL) {
            print_note("job %s waits: %s", job.id, job.reason);
        }
        break;
    }
    job_view_finish(&job);
    return print_out(&out, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct submit_options *options = call->options;
    autojobfile struct jobfile file = {0};
    autoapi struct api *api = NULL;
    autojson json_t *job = NULL;
    return submit_read(&options->spec, call, &file, err) && connect_controller(call, true, &api, err) &&
           submit_send(api, &file, &options->spec, call, &job, err) && show(options, job, err);
}

const struct verb verb_submit = {
    .name = "submit",
    .arguments = "[-f FILE] [--] [COMMAND [ARGUMENT]...]",
    .summary = "Make a job and print its id.",
    .details = "Starts a controller and a node of your own where no controller is named.",
    .argument = ARGUMENT_COMMAND,
    .most = SIZE_MAX,
    .stop_at_positional = true,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct submit_options),
    .describe = describe,
    .finish = finish,
    .run = run,
};
