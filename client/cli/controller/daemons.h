/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of the embedded instance: which programs, which devices for which node, which folders. */
#ifndef CLI_DAEMONS_H
#define CLI_DAEMONS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/cli/controller/start.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct daemons {
    const char *state; /* borrowed */
    const struct start_options *options;
    char *controller; /* path of the program */
    char *agent;
    char *run;                /* folder that a reboot empties, of this state alone */
    struct text_list devices; /* GPUs, by index or UUID; none: CPU slots */
};

/* Finds the programs and devices, and makes the run folder. */
bool daemons_find(const char *state, const struct start_options *options, struct daemons *ret_daemons,
                  struct err *err);
void daemons_finish(struct daemons *daemons);

/* Their command lines; the caller finishes the list. */
struct text_list daemons_controller_words(const struct daemons *daemons);
struct text_list daemons_agent_words(const struct daemons *daemons, int64_t number, const char *url);

/* Which of count devices node number of `nodes` gets: [*ret_first, *ret_first + *ret_count). */
void daemons_divide(int64_t count, int64_t nodes, int64_t number, int64_t *ret_first, int64_t *ret_count);

#endif
