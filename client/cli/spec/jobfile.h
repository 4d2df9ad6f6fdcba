/* SPDX-License-Identifier: Apache-2.0 */
/* A job that is written down in a YAML file: in the fields of POST /v1/jobs, or in the form of Databricks'
 * `air`. */
#ifndef CLI_JOBFILE_H
#define CLI_JOBFILE_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/show/notes.h"
#include "proto/base/text/yaml_read.h"
#include "proto/base/err.h"

struct jobfile {
    char *name;   /* as it was given; NULL: there is no file */
    char *folder; /* that it lies in: local files are named from there */
    struct yaml yaml;
    json_t *spec; /* for spec_build; an entry of files and the bundle may still have a "source" */
    struct notes notes;
};

/* With ignore, what cannot be honoured is noted; else it is refused. ERR_USAGE names file and line. */
bool jobfile_read(const char *path, bool ignore, struct jobfile *ret_file, struct err *err);
/* The same of a text that was read from there. */
bool jobfile_parse(const char *path, const char *bytes, size_t length, bool ignore, struct jobfile *ret_file,
                   struct err *err);
void jobfile_finish(struct jobfile *file);

static inline void cleanup_jobfile(struct jobfile *file)
{
    jobfile_finish(file);
}
#define autojobfile __attribute__((cleanup(cleanup_jobfile)))

/* Would a controller take this spec, as far as one can tell from here? The error names the line of the file
 * that the field came from. */
bool jobfile_check(const struct jobfile *file, const json_t *spec, struct err *err);

/* The field that names the folder which travels with the job. */
const char *jobfile_bundle_field(const struct jobfile *file);

/* Puts file and line in front of an error about a field; returns false. */
bool jobfile_place(const struct jobfile *file, struct err *err);

/* Any text as the name of a job: what a name cannot have becomes '-'. The caller frees it. */
char *jobfile_job_name(const char *text);

/* One text as a command of bash. New reference. */
json_t *jobfile_shell(const char *text);

/* Scalars of the object or array become the text that they were written as: env, labels, command. */
void jobfile_spell_out(const struct yaml *yaml, const char *field, json_t *values);

#endif
