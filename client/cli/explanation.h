/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job waits, and when it will start, in plain words. */
#ifndef CLI_EXPLANATION_H
#define CLI_EXPLANATION_H

#include <jansson.h>

#include "proto/base/text.h"

/* Appends what an Explanation or a Plan of the API says, an aligned line for each part. now_ms is the wall
 * clock. */
void explanation_print(const json_t *answer, int64_t now_ms, struct text *out);

/* Appends "start    " and a padded name of a line. */
void explanation_label(struct text *out, const char *name);

#endif
