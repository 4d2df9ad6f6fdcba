/* SPDX-License-Identifier: Apache-2.0 */
/* The plot of a simulation. */
#ifndef CLI_SIMULATE_PLOT_H
#define CLI_SIMULATE_PLOT_H

#include "client/cli/simulate/simulate_show.h"
#include "proto/base/text.h"

/* An SVG document. Each policy has a row with two panels over one time: GPUs in use, and jobs that wait.
 * Below, the distributions of their completion times. */
void simulate_plot(const struct trace *trace, const struct fleet *fleet, const struct simulated *runs,
                   size_t count, struct text *out);

#endif
