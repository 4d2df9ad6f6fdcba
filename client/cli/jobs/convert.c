/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl convert`: shows the job that a job file or a batch script is translated to. It sends nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/slurm/batch.h"
#include "client/cli/show/print.h"
#include "client/cli/jobs/submit.h"
#include "client/cli/spec/yaml_write.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

struct convert_options {
    const char *format;
    bool strict;
};

static const struct option_row rows[] = {
    ROW_CHOICE(struct convert_options, format, 'o', "output", "FORMAT", "how to show it", "yaml|json",
               .absent_text = "yaml"),
    ROW_FLAG(struct convert_options, strict, 0, "strict",
             "refuse what run and sbatch would refuse, instead of noting it"),
    ROWS_END};

/* The options of `run`, with none of them given. */
static json_t *from_jobfile(const char *path, bool ignore, struct err *err)
{
    struct spec_options options = {0};
    option_rows_default(spec_rows, &options);
    options.job_file = path;
    options.ignore_unsupported = ignore;
    struct call none = {0};
    autojobfile struct jobfile file = {0};
    struct notes notes = {0};
    json_t *spec = submit_read(&options, &none, &file, err)
                       ? submit_spec(NULL, &file, &options, &none, &notes, err)
                       : NULL;
    notes_print(&notes, "bundle");
    notes_finish(&notes);
    return spec;
}

static json_t *from_script(const char *path, const char *text, size_t length, bool ignore, struct err *err)
{
    static const struct batch_options none;
    struct notes notes = {0};
    struct batch batch;
    if (!batch_parse(path, text, length, &none, &batch, err)) {
        return NULL;
    }
    json_t *spec = batch_spec(&batch, NULL, 0, NULL, ignore, &notes, err);
    notes_print(&notes, path);
    notes_finish(&notes);
    batch_finish(&batch);
    return spec;
}

static json_t *convert(const char *path, bool ignore, struct err *err)
{
    autofree char *text = NULL;
    size_t length;
    if (!file_read(path, LIMIT_SUBMIT_BYTES, &text, &length, err)) {
        return NULL;
    }
    return batch_is_script(text) ? from_script(path, text, length, ignore, err)
                                 : from_jobfile(path, ignore, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct convert_options *options = call->options;
    autojson json_t *spec = convert(call->rest[0], !options->strict, err);
    autotext struct text out = {0};
    if (spec == NULL) {
        return false;
    }
    if (strcmp(options->format, "json") == 0) {
        autofree char *text = json_dumps(spec, JSON_INDENT(2));
        text_printf(&out, "%s\n", text);
    } else if (!yaml_write(spec, &out, err)) {
        return false;
    }
    return print_out(&out, err);
}

const struct verb verb_convert = {
    .name = "convert",
    .arguments = "FILE",
    .summary = "Show the job that a YAML file or a batch script is understood as.",
    .details = "FILE is a job file of our own form or of Databricks' air, or a batch script for Slurm. What "
               "it writes can be "
               "run: gpuctl run -f.\n"
               "On stderr stands a line for each thing that was left out or means something else here. "
               "Nothing is sent.",
    .argument = ARGUMENT_FILE,
    .least = 1,
    .most = 1,
    .reach = REACH_NOTHING,
    .options_size = sizeof(struct convert_options),
    .rows = {rows},
    .run = run,
};
