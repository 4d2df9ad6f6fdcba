/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a job, for all verbs that do. */
#ifndef CLI_WAIT_H
#define CLI_WAIT_H

#include <jansson.h>
#include <stdint.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"

/* The job once it is terminal, a new reference. A controller that is away is waited for. deadline_ms is
 * CLOCK_BOOTTIME, -1 for none; ERR_WAIT_TIMEOUT after it. */
/* Is the job, or what tells of it, in a state that is final? */
bool wait_is_over(const json_t *job);
json_t *wait_job(struct api *api, const char *id, int64_t deadline_ms, struct err *err);

#endif
