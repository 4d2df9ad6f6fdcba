/* SPDX-License-Identifier: Apache-2.0 */
/* What `submit` and `run` share: the request that makes a job. */
#ifndef CLI_SUBMIT_H
#define CLI_SUBMIT_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/api.h"
#include "client/cli/spec.h"
#include "client/cli/verb.h"
#include "proto/base/err.h"

/* The positional arguments are the command. *ret_job is the controller's answer, the caller's. */
bool submit_job(struct api *api, const struct spec_options *options, const struct call *call,
                json_t **ret_job, struct err *err);

#endif
