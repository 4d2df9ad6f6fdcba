/* SPDX-License-Identifier: Apache-2.0 */
/* A job and its ranks. */
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/wire/views.h"

/* The job as it is now; the caller finishes the view. With retry the controller may be away just now. */
bool ranks_get_job(struct api *api, const char *id, bool retry, struct job_view *ret_job, struct err *err);
/* Has each of its nodes one rank? */
bool ranks_by_node(const struct job_view *job);
/* How many ranks the job has, or, before its first placement with one rank a node, how many at most. */
int64_t ranks_count(const struct job_view *job);
/* Has the job this rank? A negative one stands for all. ERR_USAGE, naming those that there are. */
bool ranks_check(const struct job_view *job, int64_t rank, struct err *err);

#endif
