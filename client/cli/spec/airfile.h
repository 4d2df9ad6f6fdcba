/* SPDX-License-Identifier: Apache-2.0 */
/* Job files in the form of Databricks' `air` command line, as job specs of ours. */
#ifndef CLI_AIRFILE_H
#define CLI_AIRFILE_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/show/notes.h"
#include "proto/base/text/yaml_read.h"
#include "proto/base/err.h"

/* By its top-level fields: compute and experiment_name are those that every such file has. */
bool airfile_is_one(const json_t *json);

/* Fills spec. What cannot be honoured is refused, or with ignore noted. folder is the job file's own. The
 * error names the field in the file. */
bool airfile_translate(const struct yaml *yaml, bool ignore, const char *folder, json_t *spec,
                       struct notes *notes, struct err *err);

#endif
