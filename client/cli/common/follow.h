/* SPDX-License-Identifier: Apache-2.0 */
/* Following a job to its end: its output on ours, its states on stderr, Ctrl-C to cancel it. */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "client/cli/transport/feed.h"
#include "client/cli/show/output.h"
#include "proto/base/err.h"
#include "proto/wire/views.h"

#define EXIT_LEFT 130 /* the person has left the job with a second Ctrl-C */

/* job is the answer to its submission. Needs api_catch_interrupts. *ret_exit is the job's exit code. quiet:
 * no states on stderr. */
bool follow_job(struct api *api, const struct job_view *job, bool quiet, int *ret_exit, struct err *err);
/* The same for a job that was there before; Ctrl-C leaves it alone. */
bool follow_attach(struct api *api, const struct job_view *job, bool quiet, int *ret_exit, struct err *err);
/* The same, but returns as soon as the job runs; cancels: Ctrl-C cancels it, as with follow_job. *ret_runs
 * false: it has ended, or the person has left, and *ret_exit says how. */
bool follow_start(struct api *api, const struct job_view *job, bool quiet, bool cancels, bool *ret_runs,
                  int *ret_exit, struct err *err);

/* Shows the output that a feed of logs brings, to its end. */
bool follow_output(struct feed *feed, struct output *output, struct err *err);
/* Does the job have more than one rank, so that its output needs a prefix? In node mode that is known only
 * once it is placed. */
bool follow_many_ranks(const struct job_view *job);
/* Gives the output its prefix if the job has more than one rank. With retry the controller may be away just
 * now. */
bool follow_prefix(struct api *api, const char *id, bool retry, struct output *output, struct err *err);

/* Does the job wait in the queue, or for nodes to get ready? Then people want to hear the reason. */
bool follow_waits(enum job_state state);

/* Are the reasons equal except for their numbers, as in "Installing torch (34 s)"? */
bool follow_is_alike(const char *a, const char *b);

#endif
