/* SPDX-License-Identifier: Apache-2.0 */
/* A job: its states, and what becomes of it when an attempt ends. */
#ifndef CORE_JOB_H
#define CORE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/jobspec.h"

struct attempt;
struct core;
struct input;
struct job;
struct wish;

/* What happens to a job. */
enum job_event {
    JOB_EVENT_PLACE,
    JOB_EVENT_RUN,
    JOB_EVENT_REQUEUE,
    JOB_EVENT_SUCCEED,
    JOB_EVENT_FAIL,
    JOB_EVENT_CANCEL,
    JOB_EVENT_TIME_OUT,
};

/* A job in the list of live ones, in its lane, not yet waiting in it. */
struct job *job_create(struct core *core, int64_t key, const char *id, const struct job_spec *spec);
void job_free(struct job *job);

/* The wish of a spec, which lends its strings. */
struct wish job_wish(const struct job_spec *spec);

/* Moves the job along its table and writes the row of its history. detail and note (for the trace) may be
 * NULL. false: no such edge. */
bool job_fire(struct core *core, struct job *job, enum job_event event, const char *detail, const char *note);

/* Its newest attempt has ended: decides between success, another attempt and the end. */
void job_conclude(struct core *core, struct job *job, const struct attempt *attempt);

bool job_cancel(struct core *core, const struct input *input, struct err *err);

#endif
