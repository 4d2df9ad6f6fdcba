/* SPDX-License-Identifier: Apache-2.0 */
/* Writes metrics in Prometheus' text format, version 0.0.4. */
#ifndef HTTP_EXPOSITION_H
#define HTTP_EXPOSITION_H

#include <stdint.h>

#include "daemon/writer/histogram.h"
#include "proto/base/text/text.h"

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Labels are text as it stands between the braces, label="value" with commas; "": none. All values of ours
 * are plain: no quotes, backslashes or line ends. */

/* Begins a metric: all its samples follow. type is counter, gauge or histogram. */
void exposition_metric(struct text *out, const char *name, const char *type, const char *help);
void exposition_sample(struct text *out, const char *name, const char *labels, int64_t value);
/* All samples of a histogram, in seconds. */
void exposition_histogram(struct text *out, const char *name, const char *labels,
                          const struct histogram *histogram);

#endif
