/* SPDX-License-Identifier: Apache-2.0 */
/* The job that a path names, as far as its sender may see it. */
#ifndef HTTP_JOB_LOOKUP_H
#define HTTP_JOB_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/store/store.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/wire/views.h"

struct request;

struct job_facts {
    int64_t key;
    char id[ID_LENGTH + 1];
    enum job_state state;
    int64_t seq;
    int64_t attempt;   /* number of the newest; 0: none */
    int64_t exit_code; /* -1 while not terminal */
    int64_t gpus;
    int64_t created_ms, ended_ms;
    int64_t tasks;  /* of the array that it is; 0: it is none */
    int64_t placed; /* of these, have become jobs */
    int64_t task;   /* its number in its array; -1: it is no task */
    bool by_role;   /* only the role of the sender shows it */
};

/* The job that the request's argument names: by its id, or as the task of an array, "ID.17". ERR_NOT_FOUND
 * when there is none, or when it belongs to someone else. */
bool job_find(struct request *request, struct job_facts *ret_facts, struct err *err);
/* The same, for a change: ERR_FORBIDDEN when the sender may only see it. */
bool job_find_to_change(struct request *request, struct job_facts *ret_facts, struct err *err);
/* The same, to run something in it. */
bool job_find_to_enter(struct request *request, struct job_facts *ret_facts, struct err *err);
/* Whether the sender may see it, and nothing more: for streams, which outlive what allowed them. */
bool job_is_seen(struct request *request);

/* The argument "ID.17" of a path below /v1/jobs becomes the id of that task. */
void job_name_task(struct request *request);

/* The epoch of the job's attempt of that number; 0: it has none. */
bool job_attempt_id(struct reader *reader, int64_t job_key, int64_t attempt, uint64_t *ret_attempt_id,
                    struct err *err);

/* That error, for readers of their own; returns false. */
bool job_missing(const struct request *request, struct err *err);

/* A view of a job as a list shows it: without spec and placements. Borrows from the rows. Any thread. */
void job_view_fill(struct job_view *view, const struct job_birth *birth, const struct job_life *life,
                   const struct array_row *array);

/* One placement of an attempt; borrows from the row. */
struct placement_view job_placement(const struct member_row *row);

/* The newest life of the step's job among its changes; NULL when it did not change. Any thread. */
const struct job_life *job_newest_life(const struct step *step);

/* The whole view of one job, with the seq of its last event: spec, placements, and why it waits. The same
 * errors as job_find. */
bool job_show(struct request *request, int64_t *ret_seq, struct text *out, struct err *err);

#endif
