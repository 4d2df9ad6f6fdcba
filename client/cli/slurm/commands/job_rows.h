/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs that the options of squeue and scancel choose, as rows. A row is a JSON object: `job` as the API
 * shows it, `queued`, its row of GET /v1/queue, and `tasks`, "4-15%4", where the row stands for the tasks of
 * an array that have not begun. */
#ifndef CLI_SLURM_JOB_ROWS_H
#define CLI_SLURM_JOB_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/cli/frame/verb.h"
#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* Lists have commas between; NULL: any. Strings are borrowed. */
struct job_filter {
    const char *users, *names, *partitions, *account;
    bool me;
    bool whole;       /* an array is one row */
    unsigned states;  /* a bit for each enum slurm_state */
    int64_t since_ms; /* only those submitted since then, and those that have not ended; 0: all */
};

/* The id of a job as the controller knows it: "x7k2_3", "x7k2.3" and the beginning of an id are understood.
 * ERR_NOT_FOUND. */
bool job_rows_id(struct api *api, const char *word, char ret_id[RESOLVED_BYTES], struct err *err);

/* Those of the ids, which are whole, or with NULL those of everybody; by partition, state and place in the
 * queue. With waits each has `queued`. New reference; NULL with ERR_NOT_FOUND where there is no job of an id.
 */
json_t *job_rows_read(struct api *api, const struct text_list *ids, const struct job_filter *filter,
                      bool waits, struct err *err);

/* The pool that it has, or that it asks for; "any" where it asks for none. Borrowed from the row. */
const char *job_rows_partition(const json_t *row);
/* Appends the id in Slurm's form: "x7k2", "x7k2_3", "x7k2_[4-15%4]". */
void job_rows_show_id(const json_t *row, struct text *out);

#endif
