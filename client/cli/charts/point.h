/* SPDX-License-Identifier: Apache-2.0 */
/* One logged value, and one word of progress, as the API gives them and as people read them. */
#ifndef CLI_POINT_H
#define CLI_POINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct point {
    const char *name; /* borrowed from the JSON */
    int64_t rank;     /* -1: not known, of what MLflow's clients have logged */
    double value;     /* may be NaN or infinite */
    bool stepped;     /* a step was given */
    int64_t step;
    int64_t at_ms; /* wall clock; 0: not known */
};

/* Reads an object of the API's list `metrics`. ERR_FIELD where a member is missing or wrong. */
bool point_read(const json_t *json, struct point *ret_point, struct err *err);

/* Appends "TIME  NAME  rank 0  step 3  0.25" and a line end. */
void point_line(const struct point *point, struct text *out);
/* The same for the data of an event `progress`: "TIME  progress  rank 0  50%  epoch 3". */
bool point_progress_line(const json_t *progress, struct text *out, struct err *err);

#endif
