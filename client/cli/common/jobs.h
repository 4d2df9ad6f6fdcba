/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the job that a command line names: its whole id, its ranks, its runs. */
#ifndef CLI_JOBS_H
#define CLI_JOBS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cli/frame/verb.h"
#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/wire/views.h"

/* The whole id of the one job that starts with the prefix; a whole id costs no request. The number
 * of a task behind a dot stays. ERR_NOT_FOUND, or ERR_AMBIGUOUS, which lists the matches. */
bool resolve_job(struct api *api, const char *prefix, char ret_id[RESOLVED_BYTES], struct err *err);

/* The same for a job and a rank of it: "x7k2", "x7k2.3" for rank 3, and "x7k2.17.3" for rank 3 of task 17 of
 * an array; of an array "x7k2.17" is the task. *ret_rank stays as it is where the word names none. */
bool resolve_rank(struct api *api, const char *word, char ret_id[RESOLVED_BYTES], int64_t *ret_rank,
                  struct err *err);

/* States as people write them, as the controller knows them: "queued,RUNNING" in capitals. The caller's. */
char *states_in_capitals(const char *states);

/* Appends the owner that the caller is to the query of a list of jobs. */
bool jobs_query_mine(struct api *api, struct text *path, struct err *err);
/* Is it KEY=VALUE? NULL is. */
bool jobs_check_label(const char *label, struct err *err);

/* --- ranks --- */

/* The job as it is now; the caller finishes the view. With retry the controller may be away just now. */
bool ranks_get_job(struct api *api, const char *id, bool retry, struct job_view *ret_job, struct err *err);
/* Has each of its nodes one rank? */
bool ranks_by_node(const struct job_view *job);
/* How many ranks the job has, or, before its first placement with one rank a node, how many at most. */
int64_t ranks_count(const struct job_view *job);
/* Has the job this rank? A negative one stands for all. ERR_USAGE, naming those that there are. */
bool ranks_check(const struct job_view *job, int64_t rank, struct err *err);

/* --- runs --- */

/* The runs of a job, the newest first. The caller owns the array; NULL on failure. */
json_t *runs_get(struct api *api, const char *id, struct err *err);

/* Appends "MLflow run ID in experiment NAME at URL". */
void runs_say(const json_t *run, struct text *out);

#endif
