/* SPDX-License-Identifier: Apache-2.0 */
/* One job of `gpuctl top`: how it is, its ranks, and the end of one rank's output. */
#ifndef CLI_TOP_JOB_H
#define CLI_TOP_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cli/top/data/top_details.h"
#include "client/cli/transport/api.h"
#include "proto/base/err.h"
#include "proto/states.h"

struct top_job;
/* id: whole. The api is borrowed. */
struct top_job *top_job_create(struct api *api, const char *id);
void top_job_destroy(struct top_job *job);

const char *top_job_id(const struct top_job *job);

/* Begins to read it again, with the output of this rank, unless that is under way. */
void top_job_begin(struct top_job *job, int64_t rank, enum stream stream);

enum top_job_state { TOP_JOB_READING, TOP_JOB_NEW, TOP_JOB_FAILED };
/* Takes replies in. NEW and FAILED are said once, when all have come. */
enum top_job_state top_job_step(struct top_job *job, struct err *err);
bool top_job_idle(const struct top_job *job);

/* The job as the API shows it; NULL before the first. Borrowed. */
const json_t *top_job_view(const struct top_job *job);
/* The end of the output of this rank; NULL: there is none, or it was not read. Borrowed. */
const struct text *top_job_output(const struct top_job *job, int64_t rank, enum stream stream);

/* A row for each rank of the job's view: {rank, node, state, devices, use}. details may be NULL. New
 * reference. */
json_t *top_job_ranks(const json_t *view, const struct top_details *details);

#endif
