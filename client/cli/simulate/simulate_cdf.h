/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a plot that compares how long jobs took. */
#ifndef CLI_SIMULATE_CDF_H
#define CLI_SIMULATE_CDF_H

#include "client/cli/simulate/simulate_show.h"
#include "proto/base/text.h"

#define SIMULATE_CDF_HEIGHT 330 /* with title and axis */

/* Appends a chart whose upper left corner is at x, y: which share of the jobs was complete after which time,
 * on a logarithmic axis, a line for each policy, and their names to its right. */
void simulate_cdf(const struct trace *trace, const struct simulated *runs, size_t count, int x, int y,
                  int width, struct text *out);

#endif
