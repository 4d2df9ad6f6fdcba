/* SPDX-License-Identifier: Apache-2.0 */
/* When and where a batch script may run, as its options say. */
#ifndef CLI_BATCH_PLACE_H
#define CLI_BATCH_PLACE_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/slurm/batch.h"
#include "proto/base/err.h"

/* Adds to the spec the jobs to follow, hold, priority, nodes to exclude and constraints. Jobs are named as
 * they were, by beginnings of ids: after_fill makes them whole. ERR_USAGE names the option. */
bool batch_place(const struct batch_options *options, json_t *spec, struct notes *notes, struct err *err);

#endif
