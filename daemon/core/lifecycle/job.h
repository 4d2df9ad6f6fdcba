/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: their states, and the consequences of the end of an attempt. */
#ifndef CORE_LIFECYCLE_JOB_H
#define CORE_LIFECYCLE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/spec/jobspec.h"

struct array;
struct attempt;
struct core;
struct environment_spec;
struct job;
struct node;
struct environment;
struct resource_request;

#define EXIT_INFRA    125
#define EXIT_CANCELED 130

/* The events of a job. */
enum job_event {
    JOB_EVENT_ENVIRONMENT,
    JOB_EVENT_STAGED,
    JOB_EVENT_PLACE,
    JOB_EVENT_RUN,
    JOB_EVENT_REQUEUE,
    JOB_EVENT_SUCCEED,
    JOB_EVENT_FAIL,
    JOB_EVENT_CANCEL,
    JOB_EVENT_TIME_OUT,
    JOB_EVENT_HOLD,
    JOB_EVENT_RELEASE,
    JOB_EVENT_BLOCK, /* released, and waits for other jobs */
    JOB_EVENT_READY, /* those have ended as required */
};

/* A new job in the list of live ones and in its job class; it is not queued yet. */
struct job *job_create(struct core *core, int64_t key, const char *id, const char *owner,
                       const struct job_spec *spec, const struct environment_spec *environment);
/* A new job for one task of an array, in the array's job class; it is not queued yet. */
struct job *job_create_task(struct core *core, int64_t key, const char *id, struct job *whole, int64_t task);
/* Makes the job a task of the array, with the array's place in the queue. */
void job_join_array(struct job *job, struct array *array, int64_t task);
void job_free(struct job *job);

/* The live job of that id; NULL with ERR_NOT_FOUND. */
struct job *job_live(const struct core *core, const char *id, struct err *err);

/* Starts the life of the job: it waits for GPUs, or is held or blocked. held_by: the person who holds it;
 * NULL: nobody. */
void job_begin(struct core *core, struct job *job, const char *held_by);
/* Ends the job because one of its dependencies can never be met. */
void job_never(struct core *core, struct job *job, const char *reason);

/* The resource request of a spec and of its environment spec (NULL: none); both lend their strings. */
struct resource_request job_request(const struct job_spec *spec, const struct environment_spec *environment);

/* Changes the state and nothing else: for loading, and for the table. */
void job_enter(struct core *core, struct job *job, enum job_state state);
/* Moves the job along its table and writes the row of its history. detail and note (for the trace) may be
 * NULL. false: the table has no such transition. */
bool job_fire(struct core *core, struct job *job, enum job_event event, const char *detail, const char *note);

/* Ends the job; reason, which lives as long as the step, may be NULL. */
void job_finish(struct core *core, struct job *job, enum job_event event, int64_t exit_code, enum cause cause,
                const char *reason);

/* Decides after the end of the newest attempt between success, another attempt and the end. */
void job_conclude(struct core *core, struct job *job, const struct attempt *attempt);

/* Notes that a node failed to stage the environment of waiting jobs. by_user: it would fail on any node. Jobs
 * without retries left end. */
void job_environment_failed(struct core *core, const struct environment *environment, const struct node *node,
                            const char *text, bool by_user);
/* Ends the job because no node can ever stage its environment. */
void job_environment_impossible(struct core *core, struct job *job, const char *reason);

#endif
