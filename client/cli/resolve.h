/* SPDX-License-Identifier: Apache-2.0 */
/* The ids that people shorten. */
#ifndef CLI_RESOLVE_H
#define CLI_RESOLVE_H

#include <stdbool.h>

#include "client/cli/api.h"
#include "proto/base/err.h"
#include "proto/base/text.h"

/* The whole id of the one job that starts with the prefix; a whole id costs no request. ERR_NOT_FOUND, or
 * ERR_AMBIGUOUS, which lists the matches. */
bool resolve_job(struct api *api, const char *prefix, char ret_id[ID_LENGTH + 1], struct err *err);

#endif
