/* SPDX-License-Identifier: Apache-2.0 */
/* A live job, the edges between jobs that depend on each other, and what became of those that have ended. */
#ifndef CORE_MODEL_JOB_H
#define CORE_MODEL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text/table.h"
#include "proto/limits.h"
#include "proto/spec/jobspec.h"
#include "proto/states.h"

struct account;
struct array;
struct attempt;
struct batch;
struct edge;
struct job_class;
struct pattern;

struct job {
    int64_t key;
    int64_t place; /* its place in the queue: its key; of a task, the array's place */
    char id[ID_LENGTH + 1];
    enum job_state state;
    int64_t seq;
    int64_t event_ms; /* wall clock of its last event: the next one is not earlier */
    struct job_class *job_class;
    struct pattern *pattern;   /* of jobs with similar run times */
    struct batch *batch;       /* while it is queued; else NULL */
    struct job *prev, *next;   /* in the batch */
    int64_t submitted_ms;      /* steady clock, not earlier than that of an earlier job */
    int64_t received_us;       /* steady clock: when its submission arrived; of a task, its array's */
    int64_t queued_us;         /* from then until the submission was on disk; 0: not known */
    struct array *array;       /* that it stands for, or whose task it is; else NULL */
    int64_t task;              /* its number; -1: no task */
    struct edge *dependencies; /* unmet ones, while BLOCKED or HELD */
    int64_t not_before_ms;     /* wall clock: it waits until then, while BLOCKED or HELD; 0: it does not */
    struct edge *dependents;   /* edges of jobs that depend on it */
    struct account *project, *owner;

    int64_t time_limit_ms, grace_ms, lease_ms;
    int64_t keep_ms; /* that its nodes stay as they are after a rank failed; 0: they do not */
    struct job_early_signal early_signal;
    int64_t ran_ms; /* over all ended attempts */
    int32_t priority;
    int32_t retries, infra_retries;
    enum launch_mode launch_mode;
    enum on_disconnect on_disconnect;

    int64_t attempt_number;
    struct attempt *attempt; /* the newest, which may have ended; or NULL */
    int32_t user_failures, infra_failures;
    char *pool;   /* of the newest attempt; owned; or NULL */
    char *notify; /* webhooks that it names, separated by commas; owned; or NULL */
    int64_t started_ms, ended_ms;
    int64_t idle_since_ms; /* wall clock: its GPUs are idle, and its owner was told; 0: no */
    int64_t kept_since_ms; /* wall clock: when the look into its KEPT attempt began; 0: it has none */
    int64_t kept_until_ms; /* wall clock: when that ends; 0 likewise */
    int64_t exit_code, failed_rank;
    const char *failed_node; /* borrowed from the node, or NULL */
    enum cause cause;        /* CANCELED while the job is live: a cancel was acknowledged */
    const char *reason;      /* set by the step that ends the job, and valid only in it; or NULL */

    uint32_t timed; /* 1 + index among the jobs that wait for a moment; 0: it does not */
    uint32_t slot;  /* 1 + index of its change in the open change set; 0: none */
    bool function;  /* it succeeds only with a result of every rank */
    bool restores;  /* its first attempt begins with the checkpoint of another job */
    bool fresh;     /* its submission may not be on disk yet */
    bool trial;     /* it waits only while a question is answered: trial.h */
    UT_hash_handle by_id, by_key;
};

/* Whether the job is HELD or BLOCKED: it is not queued. */
static inline bool job_is_kept_back(const struct job *job)
{
    return job->state == JOB_HELD || job->state == JOB_BLOCKED;
}

/* Whether the job is queued, whether or not nodes are staging its environment. */
static inline bool job_is_waiting(const struct job *job)
{
    return job->state == JOB_QUEUED || job->state == JOB_STAGING;
}

/* One job depends on another, which does not have the required outcome yet. */
struct edge {
    struct job *job, *on;
    enum dependency kind;
    bool due;                 /* the step has to process it */
    struct edge *next_open;   /* of the job */
    struct edge *prev, *next; /* of the dependents of `on`, by key; or of the due edges */
};

/* A job that has ended. */
struct outcome {
    int64_t key;
    enum job_state state;
};

/* Whether the job still waits for another job. */
static inline bool dependency_is_open(const struct job *job)
{
    return job->dependencies != NULL;
}

/* Whether the job still waits for another job or for its time: then it is not queued. */
static inline bool job_waits_to_be_ready(const struct job *job)
{
    return dependency_is_open(job) || job->not_before_ms != 0;
}

#endif
