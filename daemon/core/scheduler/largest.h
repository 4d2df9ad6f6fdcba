/* SPDX-License-Identifier: Apache-2.0 */
/* The largest gang that the registered nodes could ever hold. */
#ifndef CORE_SCHEDULER_LARGEST_H
#define CORE_SCHEDULER_LARGEST_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct job_class;
struct partition;
struct resource_request;

/* Whether one of the registered nodes, busy or not, could hold all of a gang. */
bool largest_fits_one_node(struct core *core, const struct resource_request *request);

/* The largest gang that the registered nodes, busy or not, could ever hold for such a resource request.
 * *ret_partition, unless ret_partition is NULL, is its partition; NULL for 0. */
int64_t largest_gang(struct core *core, const struct resource_request *request,
                     const struct partition **ret_partition);

/* The same for a job class, cached until the registry changes. */
int64_t largest_of_job_class(struct core *core, struct job_class *job_class);

#endif
