/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that a job waits beside, because their nodes go away before it could end. */
#ifndef HTTP_DEPARTING_H
#define HTTP_DEPARTING_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct reader;

/* How many GPUs of the type, NULL for any, are on nodes that take work but not this job's: they expire, are
 * in a maintenance window, or leave before it has run for its time limit and had its grace; a limit of 0 is
 * none.
 */
bool departing_count(struct reader *reader, const char *gpu_type, int64_t time_limit_ms, int64_t grace_ms,
                     int64_t wall_ms, int64_t *ret_gpus, struct err *err);

#endif
