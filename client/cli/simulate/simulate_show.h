/* SPDX-License-Identifier: Apache-2.0 */
/* What was simulated, as a table or as JSON. */
#ifndef CLI_SIMULATE_SHOW_H
#define CLI_SIMULATE_SHOW_H

#include <stddef.h>

#include "client/cli/show/print.h"
#include "daemon/simulate/figures.h"

/* One replay of the trace. */
struct simulated {
    struct replay_options options;
    struct outcome outcome; /* owned */
    struct figures figures;
};

/* The spelling of a choice, and back. */
#define SIMULATE_LIMITS "trace|exact|none"
enum limits simulate_limits(const char *text);

/* A row or document for each of them; FORMAT_JSON: a list where there are several. */
void simulate_show(enum print_format format, const struct simulated *runs, size_t count, struct text *out);

#endif
