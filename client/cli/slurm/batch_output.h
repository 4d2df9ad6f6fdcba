/* SPDX-License-Identifier: Apache-2.0 */
/* The output of an ended batch job as the files that --output and --error name. */
#ifndef CLI_BATCH_OUTPUT_H
#define CLI_BATCH_OUTPUT_H

#include "client/cli/transport/api.h"
#include "client/cli/slurm/batch.h"
#include "proto/base/err.h"
#include "proto/wire/views.h"

/* Does nothing where neither was given. Without --error both streams go into the one file. */
bool batch_write_output(struct api *api, const struct batch_options *options, const struct job_view *job,
                        struct err *err);

/* Replaces %j, %J and %A by the job's id, %x by its name, %u by the user's, and %% by %; other letters are
 * refused. The caller frees it; NULL with ERR_USAGE. */
char *batch_output_path(const char *pattern, const char *id, const char *name, struct err *err);

#endif
