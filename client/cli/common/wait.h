/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a job, for all verbs that do. */
#ifndef CLI_WAIT_H
#define CLI_WAIT_H

#include <jansson.h>
#include <stdint.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"

/* Is the job, or the answer about it, in a state that is final? */
bool wait_is_over(const json_t *job);
/* Waits until the job is terminal; returns it as a new reference. A controller that is away is waited for.
 * deadline_ms is CLOCK_BOOTTIME, -1 for none; ERR_WAIT_TIMEOUT after it. */
json_t *wait_job(struct api *api, const char *id, int64_t deadline_ms, struct err *err);

#endif
