/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job waits, and when it will start, in plain words. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include <jansson.h>

#include "proto/base/text.h"

/* Appends what an Explanation or a Plan of the API says, an aligned line for each part. now_ms is the wall
 * clock. */
void explain_print(const json_t *answer, int64_t now_ms, struct text *out);

#endif
