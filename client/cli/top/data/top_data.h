/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of `gpuctl top`: nodes, jobs that have GPUs or are about to, and jobs that wait. */
#ifndef CLI_TOP_DATA_H
#define CLI_TOP_DATA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/cli/top/data/top_details.h"
#include "client/cli/top/data/top_walk.h"
#include "client/cli/transport/api.h"
#include "proto/base/err.h"

/* What the rows of a table are. The first three are lists; top_job.h makes ranks. */
enum top_table_id {
    TOP_NODES,
    TOP_JOBS,  /* that have GPUs or are about to */
    TOP_QUEUE, /* jobs that wait for GPUs */
    TOP_RANKS, /* of one job */
    TOP_TABLES
};

/* Has the job no GPUs yet? Then its list does not say why. */
bool top_job_waits(const json_t *job);

struct top_data;
/* The api is borrowed. */
struct top_data *top_data_create(struct api *api);
void top_data_destroy(struct top_data *data);

/* Begins to read all lists again, unless that is under way: a long list goes on where the reading before has
 * left off. */
void top_data_begin(struct top_data *data);

enum top_data_state {
    TOP_DATA_READING, /* or nothing is asked for */
    TOP_DATA_NEW,     /* the lists are there */
    TOP_DATA_FAILED,  /* one could not be read; those from before stay */
};
/* Takes replies in. NEW and FAILED are said once. */
enum top_data_state top_data_step(struct top_data *data, struct err *err);
bool top_data_idle(const struct top_data *data);

/* The rows of TOP_NODES, TOP_JOBS or TOP_QUEUE, jobs with the oldest first; NULL before the first. Borrowed.
 */
json_t *top_data_rows(const struct top_data *data, enum top_table_id table);
/* How many of the rows that there are these are. */
enum top_extent top_data_extent(const struct top_data *data, enum top_table_id table);

/* Sets the member "use" of nodes, and "reason" of jobs, where they are known. */
void top_data_add_details(const struct top_data *data, const struct top_details *details);

#endif
