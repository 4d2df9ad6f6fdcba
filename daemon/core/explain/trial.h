/* SPDX-License-Identifier: Apache-2.0 */
/* A trial: a job that waits for the time of a question, in place of another or beside all, and of which
 * nothing is left. */
#ifndef CORE_EXPLAIN_TRIAL_H
#define CORE_EXPLAIN_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/model/state.h"

struct job_spec;

/* What is asked for, as far as queue order and place depend on it. Strings are borrowed. */
struct draft {
    struct resource_request request;
    struct environment_spec environment; /* where resource request.need names one */
    struct pattern *pattern;
    const char *project, *owner;
    int64_t key, submitted_ms;
    int64_t time_limit_ms, ran_ms, grace_ms;
    int32_t priority;
};

/* The job as it is. */
struct draft draft_of(const struct job *job);
/* One that is submitted now. The pattern is joined: draft_leave. */
struct draft draft_join(struct core *core, const struct job_spec *spec, const char *owner,
                        const struct environment_spec *environment);
void draft_leave(struct core *core, const struct draft *draft);

struct trial {
    struct core *core;
    struct job *job;          /* that waits meanwhile */
    struct job *away;         /* that does not, meanwhile; or NULL */
    struct queue_entry entry; /* of the first of its kind before it went */
    bool was_first;
    bool place_wanted;
    struct text *trace;
};

/* The draft waits, and instead, which waits as well unless it is NULL, does not. */
void trial_begin(struct core *core, const struct draft *draft, struct job *instead, struct trial *ret_trial);
/* All is as it was. */
void trial_end(struct trial *trial);

/* Whether the scheduling pass would start the draft now, all else being equal. */
bool trial_starts(struct core *core, const struct draft *draft, struct job *instead);

#endif
