/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl submit`: makes a job and prints its id. */
#include "client/cli/jobs/submit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/spec/short_forms.h"
#include "client/cli/common/answer.h"
#include "client/cli/bundle/attach.h"
#include "client/cli/bundle/bundle.h"
#include "client/cli/controller/any.h"
#include "client/cli/controller/connect.h"
#include "client/cli/show/print.h"
#include "client/cli/spec/environment.h"
#include "client/cli/spec/multi_document.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/wire/views.h"

/* Adds the parts that are read from this machine when the job is sent. */
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
                                       .host_id = host_id,
                                       .one_job = call->verb == &verb_run || call->verb == &verb_notebook};
    autojson json_t *spec = spec_build(options, &around, call->rest, call->rest_count, err);
    if (spec == NULL || !after_fill(api, spec, NULL, NULL, err) ||
        !fill(api, file, options, spec, notes, err) ||
        (file->name != NULL && !jobfile_check(file, spec, err))) {
        return NULL;
    }
    return give(spec);
}

json_t *submit_plan_spec(const struct jobfile *file, const struct spec_options *options,
                         const struct call *call, struct err *err)
{
    autojson json_t *spec = submit_spec(NULL, file, options, call, NULL, err);
    after_pretend(spec); /* they may be beginnings of ids, or names; a plan does not look at them */
    return spec != NULL && bundle_name(spec, err) ? give(spec) : NULL;
}

static bool needs_command(const struct spec_options *options, const struct call *call, struct err *err)
{
    if (options->job_file != NULL || call->rest_count > 0) {
        return true;
    }
    err_set(err, ERR_USAGE, "there is no command");
    return err_hint(err, "write [--] COMMAND [ARGUMENT]..., or -f FILE; see --help");
}

/* The checks before anything is started or sent. */
static bool check(const struct spec_options *options, const struct call *call, const struct jobfile *file,
                  struct err *err)
{
    if (options->job_file != NULL) {
        notes_print(&file->notes, file->name);
    }
    bool travels = options->requirements != NULL || options->python_version != NULL ||
                   options->bundle != NULL || options->python_paths.count > 0;
    if (options->job_file == NULL && !travels) {
        return true;
    }
    autojson json_t *checked = submit_spec(NULL, file, options, call, NULL, err);
    return checked != NULL;
}

bool submit_read(const struct spec_options *options, const struct call *call, struct jobfile *ret_file,
                 struct err *err)
{
    *ret_file = (struct jobfile){0};
    return needs_command(options, call, err) &&
           (options->job_file == NULL ||
            jobfile_read(options->job_file, options->ignore_unsupported, ret_file, err)) &&
           check(options, call, ret_file, err);
}

/* One job or several, in the order in which they can be submitted. */
static bool read_multi_document(const struct spec_options *options, const struct call *call,
                                struct multi_document *jobs, struct err *err)
{
    if (!needs_command(options, call, err)) {
        return false;
    }
    if (options->job_file == NULL) {
        multi_document_single(jobs);
    } else if (!multi_document_read(options->job_file, options->ignore_unsupported, jobs, err)) {
        return false;
    }
    if (jobs->count > 1 && call->rest_count > 0) {
        return err_field(err, ERR_USAGE, "command", "leave it out",
                         "%s describes %zu jobs, which have commands of their own", options->job_file,
                         jobs->count);
    }
    for (size_t i = 0; i < jobs->count; i++) {
        if (!check(options, call, &jobs->files[i], err)) {
            return false;
        }
    }
    return multi_document_sort(jobs, err);
}

bool submit_send(struct api *api, const struct jobfile *file, const struct spec_options *options,
                 const struct call *call, json_t **ret_job, struct err *err)
{
    struct notes notes = {0};
    autojson json_t *spec = submit_spec(api, file, options, call, &notes, err);
    notes_print(&notes, "bundle");
    notes_finish(&notes);
    *ret_job = spec != NULL ? api_submit(api, spec, options->key, err) : NULL;
    return *ret_job != NULL;
}

bool submit_show(const struct call *call, const json_t *json, const struct job_view *job, struct err *err)
{
    if (job->state == JOB_CANCELED) {
        print_note("job %s is CANCELED already; `gpuctl get %s` says why", job->id, job->id);
    }
    return answer_member(call, json, "id", err);
}

/* Notes and shows a job that was made. */
static bool take_job(struct multi_document *jobs, size_t index, const json_t *json, const struct call *call,
                     struct err *err)
{
    struct job_view job;
    if (!job_view_decode(json_deep_copy(json), &job, err)) {
        return false;
    }
    snprintf(jobs->ids[index], sizeof jobs->ids[index], "%s", job.id);
    bool good = submit_show(call, json, &job, err);
    job_view_finish(&job);
    return good;
}

static bool send_one(struct api *api, struct multi_document *jobs, const struct call *call, struct err *err)
{
    autojson json_t *json = NULL;
    return submit_send(api, &jobs->files[0], call->options, call, &json, err) &&
           take_job(jobs, 0, json, call, err);
}

/* --- several -------------------------------------------------------------------------------------------- */

/* Jobs that are sent in one request: a piece of the order. */
struct batch {
    size_t first, count;
    struct text lines;
};

/* Adds the job as a line; *ret_full: it has no room. */
static bool add_line(struct api *api, struct multi_document *jobs, size_t index, const struct call *call,
                     struct batch *batch, bool *ret_full, struct err *err)
{
    struct notes notes = {0};
    multi_document_name(jobs, index);
    autojson json_t *spec = submit_spec(api, &jobs->files[index], call->options, call, &notes, err);
    notes_print(&notes, "bundle");
    notes_finish(&notes);
    if (spec == NULL) {
        return false;
    }
    autofree char *line = json_text(spec);
    *ret_full = batch->count > 0 && batch->lines.length + strlen(line) >= LIMIT_BATCH_BYTES;
    if (!*ret_full) {
        text_append(&batch->lines, line);
        text_append(&batch->lines, "\n");
        batch->count++;
    }
    return true;
}

/* As many as do not follow each other. */
static bool fill_batch(struct api *api, struct multi_document *jobs, const struct call *call,
                       struct batch *batch, struct err *err)
{
    bool full = false;
    while (!full && batch->first + batch->count < jobs->count) {
        size_t index = jobs->order[batch->first + batch->count];
        if (multi_document_waits(jobs, index)) {
            break;
        }
        if (!add_line(api, jobs, index, call, batch, &full, err)) {
            return false;
        }
    }
    return true;
}

/* What became of one job. */
static bool take_part(struct multi_document *jobs, size_t index, const json_t *part, const struct call *call,
                      struct err *err)
{
    const json_t *job = json_object_get(part, "job");
    if (job != NULL) {
        return take_job(jobs, index, job, call, err);
    }
    autofree char *problem = json_text(json_object_get(part, "error"));
    problem_decode(problem, strlen(problem), (int)json_integer_value(json_object_get(part, "status")), err);
    return jobfile_place(&jobs->files[index], err);
}

/* Shows all jobs that were made, and all errors; the last error is the verb's. */
static bool take_answer(struct multi_document *jobs, const struct batch *batch, const json_t *answer,
                        const struct call *call, struct err *err)
{
    const json_t *parts = json_object_get(answer, "jobs");
    bool good = true;
    if (json_array_size(parts) != batch->count) {
        return err_set(err, ERR_INTERNAL, "the controller's answer is of %zu jobs, and %zu were sent",
                       json_array_size(parts), batch->count);
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct err refusal;
        if (!take_part(jobs, jobs->order[batch->first + i], json_array_get(parts, i), call, &refusal)) {
            if (!good) {
                print_error(err);
            }
            good = false;
            *err = refusal;
        }
    }
    return good;
}

/* A key that was given is made another one for each batch. */
static bool send_batch(struct api *api, struct multi_document *jobs, const struct batch *batch,
                       const struct call *call, struct err *err)
{
    const struct spec_options *options = call->options;
    autofree char *key = options->key != NULL ? xprintf("%s.%zu", options->key, batch->first) : NULL;
    autojson json_t *answer = api_submit_batch(api, &batch->lines, key, err);
    return answer != NULL && take_answer(jobs, batch, answer, call, err);
}

static bool send_several(struct api *api, struct multi_document *jobs, const struct call *call,
                         struct err *err)
{
    bool good = true;
    for (size_t sent = 0; good && sent < jobs->count;) {
        struct batch batch = {.first = sent};
        good = fill_batch(api, jobs, call, &batch, err) && send_batch(api, jobs, &batch, call, err);
        sent += batch.count;
        text_finish(&batch.lines);
    }
    return good;
}

struct submit_options {
    struct spec_options spec; /* first: spec_rows have their offsets in it */
    bool any;
};

static const struct option_row rows[] = {ROW_ANY(struct submit_options, any), ROW_FORMAT, ROWS_END};

static bool allowed(const struct call *call, struct err *err)
{
    const struct submit_options *options = call->options;
    return any_allowed(options->any, options->spec.key, err);
}

static bool connect(const struct call *call, const struct multi_document *jobs, struct api **ret_api,
                    struct err *err)
{
    const struct submit_options *options = call->options;
    if (!options->any) {
        return connect_controller(call, true, ret_api, err);
    }
    if (jobs->count > 1) {
        return err_field(err, ERR_USAGE, "any", "name the controller with --context",
                         "%s describes %zu jobs, and --any is for one", options->spec.job_file, jobs->count);
    }
    autojson json_t *spec = submit_plan_spec(&jobs->files[0], &options->spec, call, err);
    return spec != NULL && any_connect(call, spec, ret_api, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    autoseveral struct multi_document jobs = {0};
    autoapi struct api *api = NULL;
    return read_multi_document(call->options, call, &jobs, err) && connect(call, &jobs, &api, err) &&
           multi_document_resolve(&jobs, api, err) &&
           (jobs.count == 1 ? send_one(api, &jobs, call, err) : send_several(api, &jobs, call, err));
}

const struct verb verb_submit = {
    .name = "submit",
    .arguments = "[-f FILE] [--] [COMMAND [ARGUMENT]...]",
    .summary = "Make a job, or the several of a file, and print ids.",
    .details =
        "A file may hold several jobs, with lines \"---\" between them. They are sent together. One follows\n"
        "another by its name: \"after: [prepare]\".\n"
        "Starts a controller and a node of your own where no controller is named.",
    .argument = ARGUMENT_COMMAND,
    .most = SIZE_MAX,
    .stop_at_positional = true,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct submit_options),
    .rows = {spec_rows, rows},
    .check = allowed,
    .run = run,
};
