/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl get --timing`: where the time of a job's starts went. */
#ifndef CLI_TIMING_H
#define CLI_TIMING_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/text/text.h"

/* What the controller says of it, as GET /v1/jobs/{id}/timing does, for people: a table for each attempt, the
 * newest first; wide: with what each moment means. */
void timing_print(const json_t *answer, bool wide, struct text *out);

#endif
