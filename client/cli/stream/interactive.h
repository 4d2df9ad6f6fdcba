/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose command reads what gpuctl reads: `gpuctl run -i`, with -t in a terminal. The command is started
 * beside the job's own process, which holds the job for it and exits as it did. */
#ifndef CLI_INTERACTIVE_H
#define CLI_INTERACTIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/wire/views.h"

/* The programs on the node; their sources are held.sh and joined.sh. */
extern const unsigned char held_script[], joined_script[];
extern const size_t held_script_length, joined_script_length;

/* Makes the spec one of a job that is held. *ret_command is its own command, the caller's; NULL: the spec has
 * none, which *err says. */
bool interactive_hold(json_t *spec, json_t **ret_command, struct err *err);

/* Waits until the job runs, runs the command in it, and waits for its end; *ret_exit is the job's exit code.
 * A job whose command was lost is canceled. */
bool interactive_run(struct api *api, const struct job_view *job, json_t *command, bool terminal, bool quiet,
                     int *ret_exit, struct err *err);

#endif
