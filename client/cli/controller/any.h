/* SPDX-License-Identifier: Apache-2.0 */
/* --any: a job goes to that of the user's controllers which would start it first. */
#ifndef CLI_ANY_H
#define CLI_ANY_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/frame/verb.h"
#include "client/cli/transport/api.h"
#include "proto/base/err.h"

#define ROW_ANY(struct_, member_)                                                                            \
    ROW_FLAG(struct_, member_, 0, "any",                                                                     \
             "on that controller of `gpuctl context` which would start it first, after a plan of each")

/* Of the options, before anything is sent. key: that of the submission, or NULL. */
bool any_allowed(bool any, const char *key, struct err *err);

/* The connection to that controller. spec is the job's, as a plan is asked for it. Notes say what each has
 * answered. */
bool any_connect(const struct call *call, const json_t *spec, struct api **ret_api, struct err *err);

#endif
