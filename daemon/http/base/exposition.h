/* SPDX-License-Identifier: Apache-2.0 */
/* Writes metrics in Prometheus' text format, version 0.0.4, or in OpenMetrics, version 1.0.0. */
#ifndef HTTP_EXPOSITION_H
#define HTTP_EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/writer/histogram.h"
#include "proto/base/text/text.h"

/* A page that is being written. */
struct exposition {
    struct text text;
    bool open_metrics; /* in OpenMetrics */
};

/* The content type of the page. */
const char *exposition_type(const struct exposition *out);

/* Labels are text as it stands between the braces, label="value" with commas; "": none. Values that are not
 * our own words are written by exposition_label. */

/* Adds a label to labels, after a comma unless it is the first; the value is escaped. */
void exposition_label(struct text *labels, const char *name, const char *value);

/* Begins a metric: all its samples follow. type is counter, gauge or histogram. The name of a counter ends
 * with _total. */
void exposition_metric(struct exposition *out, const char *name, const char *type, const char *help);
void exposition_sample(struct exposition *out, const char *name, const char *labels, int64_t value);
/* The same with a value in thousandths, none negative. */
void exposition_thousandths(struct exposition *out, const char *name, const char *labels, int64_t value);
/* All samples of a histogram, in seconds. */
void exposition_histogram(struct exposition *out, const char *name, const char *labels,
                          const struct histogram *histogram);
/* Ends the page. */
void exposition_end(struct exposition *out);

#endif
