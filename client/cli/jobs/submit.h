/* SPDX-License-Identifier: Apache-2.0 */
/* The request that makes a job, shared by `submit`, `run`, `plan` and `convert`. */
#ifndef CLI_SUBMIT_H
#define CLI_SUBMIT_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "client/cli/spec/jobfile.h"
#include "client/cli/spec/spec.h"
#include "client/cli/frame/verb.h"
#include "proto/base/err.h"
#include "proto/wire/views.h"

/* Before anything is started or sent: the job file of the options, if there is one, is read and checked, and
 * its notes are shown; requirements and bundle are looked at. There must be a job file or a command.
 * *ret_file starts as {0} and is the caller's also after a failure. */
bool submit_read(const struct spec_options *options, const struct call *call, struct jobfile *ret_file,
                 struct err *err);

/* The whole spec. With api NULL nothing is sent, the user's own instance plays no part, and a bundle keeps
 * its `source`. notes may be NULL. New reference. */
json_t *submit_spec(struct api *api, const struct jobfile *file, const struct spec_options *options,
                    const struct call *call, struct notes *notes, struct err *err);

/* The same as `plan` sends it: nothing of this machine goes with it. New reference. */
json_t *submit_plan_spec(const struct jobfile *file, const struct spec_options *options,
                         const struct call *call, struct err *err);

/* The positional arguments are the command. *ret_job is the controller's answer, the caller's. */
bool submit_send(struct api *api, const struct jobfile *file, const struct spec_options *options,
                 const struct call *call, json_t **ret_job, struct err *err);

/* Prints the id of a job that was made; job is the decoded json. */
bool submit_show(const struct call *call, const json_t *json, const struct job_view *job, struct err *err);

#endif
