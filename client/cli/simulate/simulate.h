/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `gpuctl simulate`: the traces, and the figures and plots of their replays. */
#ifndef CLI_SIMULATE_H
#define CLI_SIMULATE_H

#include <stddef.h>

#include "client/cli/show/print.h"
#include "client/cli/transport/api.h"
#include "daemon/simulate/figures.h"
#include "daemon/simulate/replay.h"
#include "daemon/simulate/trace.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* --- figures --- */

/* One replay of the trace. */
struct simulated {
    struct replay_options options;
    struct outcome outcome; /* owned */
    struct figures figures; /* owned */
};

/* A row or document for each of them; FORMAT_JSON: a list where there are several. */
void simulate_show(enum print_format format, const struct simulated *runs, size_t count, struct text *out);

/* --- plots --- */

/* An SVG document. Each policy has a row with two panels over one time: GPUs in use, and jobs that wait.
 * Below, the distributions of their completion times. */
void simulate_plot(const struct trace *trace, const struct fleet *fleet, const struct simulated *runs,
                   size_t count, struct text *out);

#define SIMULATE_CDF_HEIGHT 330 /* with title and axis */

/* Appends a chart whose upper left corner is at x, y: which share of the jobs was complete after which time,
 * on a logarithmic axis, a line for each policy, and their names to its right. */
void simulate_cdf(const struct simulated *runs, size_t count, int x, int y, int width, struct text *out);

/* --- files --- */

/* Reads the trace of a file: "-" is standard input, a name that ends in ".gz" is unpacked. */
bool simulate_load(const char *path, struct trace *ret_trace, struct err *err);
/* Writes the trace as CSV, packed where the name ends in ".gz". */
bool simulate_save(const char *path, const struct trace *trace, struct err *err);

/* --- a controller --- */

/* The jobs that ran and have ended, those made in the last since_ms alone; 0: all. Users who are no
 * administrators get only their own jobs. */
bool simulate_history(struct api *api, int64_t since_ms, struct trace *ret_trace, struct err *err);
/* The nodes that take work now. Pools are not told apart. */
bool simulate_fleet(struct api *api, struct fleet *ret_fleet, struct err *err);

#endif
