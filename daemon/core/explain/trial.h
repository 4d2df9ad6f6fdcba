/* SPDX-License-Identifier: Apache-2.0 */
/* Trials: a job that waits only while a question is answered, in addition to the other jobs or instead of one
 * of them. A trial leaves no trace. */
#ifndef CORE_EXPLAIN_TRIAL_H
#define CORE_EXPLAIN_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/model/state.h"

struct job_spec;

/* The parts of a submission on which queue order and placement depend. Strings are borrowed. */
struct draft {
    struct resource_request request;
    struct environment_spec environment; /* set if request.environment names one */
    struct pattern *pattern;
    const char *project, *owner;
    int64_t key, submitted_ms;
    int64_t time_limit_ms, ran_ms, grace_ms;
    int32_t priority;
};

/* The draft of an existing job. */
struct draft draft_of(const struct job *job);
/* The draft of a job submitted now. It joins the pattern: end it with draft_leave. */
struct draft draft_join(struct core *core, const struct job_spec *spec, const char *owner,
                        const struct environment_spec *environment);
void draft_leave(struct core *core, const struct draft *draft);

struct trial {
    struct core *core;
    struct job *job;          /* waits during the trial */
    struct job *away;         /* taken out of the queue during the trial; or NULL */
    struct queue_entry entry; /* of the first of its batch before it was taken out */
    bool was_first;
    enum job_class_standing standing, away_standing; /* of the job classes of both jobs, before the trial */
    bool place_wanted;
    struct text *trace;
};

/* The draft waits, and the waiting job `instead` (unless NULL) does not. */
void trial_begin(struct core *core, const struct draft *draft, struct job *instead, struct trial *ret_trial);
/* Restores the previous state. */
void trial_end(struct trial *trial);

/* Whether a scheduling pass would start the draft now, if nothing else changes. */
bool trial_starts(struct core *core, const struct draft *draft, struct job *instead);

#endif
