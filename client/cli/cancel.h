/* SPDX-License-Identifier: Apache-2.0 */
/* Ending a job, for all verbs that do. */
#ifndef CLI_CANCEL_H
#define CLI_CANCEL_H

#include <jansson.h>

#include "client/cli/api.h"
#include "proto/base/err.h"

/* The job as it is right after; new reference. ERR_CONFLICT when it has ended otherwise. */
json_t *cancel_job(struct api *api, const char *id, struct err *err);

#endif
