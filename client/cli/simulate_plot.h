/* SPDX-License-Identifier: Apache-2.0 */
/* The plot of a simulation. */
#ifndef CLI_SIMULATE_PLOT_H
#define CLI_SIMULATE_PLOT_H

#include "daemon/simulate/replay.h"
#include "proto/base/text.h"

/* An SVG document of two panels over one time: GPUs in use, and jobs that wait. */
void simulate_plot(const struct trace *trace, const struct fleet *fleet, const struct outcome *outcome,
                   struct text *out);

#endif
