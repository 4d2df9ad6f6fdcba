/* SPDX-License-Identifier: Apache-2.0 */
/* The runs with which jobs track, as the API lists them and as people read of them. */
#ifndef CLI_RUNS_H
#define CLI_RUNS_H

#include <jansson.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/text.h"

/* The runs of a job, the newest first. The caller owns the array; NULL on failure. */
json_t *runs_get(struct api *api, const char *id, struct err *err);

/* Appends "MLflow run ID in experiment NAME at URL". */
void runs_say(const json_t *run, struct text *out);

#endif
