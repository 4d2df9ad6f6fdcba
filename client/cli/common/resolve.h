/* SPDX-License-Identifier: Apache-2.0 */
/* Ids that people shorten. */
#ifndef CLI_RESOLVE_H
#define CLI_RESOLVE_H

#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "client/cli/frame/verb.h"
#include "proto/base/err.h"

/* The whole id of the one job that starts with the prefix; a whole id costs no request. What stands behind a
 * dot, the number of a task, stays. ERR_NOT_FOUND, or ERR_AMBIGUOUS, which lists the matches. */
bool resolve_job(struct api *api, const char *prefix, char ret_id[RESOLVED_BYTES], struct err *err);

#endif
