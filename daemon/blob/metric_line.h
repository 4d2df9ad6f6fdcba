/* SPDX-License-Identifier: Apache-2.0 */
/* One line of a metrics stream, as a rank wrote it: a point or a progress. */
#ifndef BLOB_METRIC_LINE_H
#define BLOB_METRIC_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text/text.h"

enum metric_kind {
    METRIC_POINT,    /* name, value, step */
    METRIC_PROGRESS, /* value as fraction, text */
};

/* Strings and the value are borrowed from json, which the line owns. */
struct metric_line {
    json_t *json;
    enum metric_kind kind;
    int64_t rank;  /* -1: not known, of what MLflow's clients have logged */
    int64_t at_ms; /* wall clock of the rank */
    const char *name;
    const json_t *value; /* a number, or "NaN", "Infinity", "-Infinity"; of a progress 0 to 1, or NULL */
    int64_t step;
    bool has_step;
    const char *text; /* or NULL */
};

/* Reads length bytes without a line end. false: it is not one of ours, and there is nothing to finish.
 * Members that nobody knows are ignored. */
bool metric_line_read(const char *bytes, size_t length, struct metric_line *ret_line);
void metric_line_finish(struct metric_line *line);

/* Appends the line as the API shows it: one JSON object without line breaks. */
void metric_line_encode(const struct metric_line *line, struct text *out);

#endif
