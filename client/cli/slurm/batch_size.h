/* SPDX-License-Identifier: Apache-2.0 */
/* How many nodes, GPUs and tasks the options of a batch script ask for. */
#ifndef CLI_BATCH_SIZE_H
#define CLI_BATCH_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/cli/slurm/batch.h"
#include "client/cli/slurm/slurm_values.h"
#include "proto/base/err.h"

/* gpus and tasks are totals over all nodes, and the nodes have equal shares of both. */
struct batch_size {
    int64_t nodes, gpus, tasks;
    int64_t per_task; /* GPUs that a task sees; 0: all of its node */
    char type[LIMIT_NAME_BYTES + 1];
};

/* ERR_USAGE names the option that is wrong, or those that contradict each other. */
bool batch_measure(const struct batch_options *options, struct batch_size *ret_size, struct notes *notes,
                   struct err *err);

#endif
