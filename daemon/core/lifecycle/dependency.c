/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the dependencies between jobs. A job waits exactly as long as one of its edges is open. A dependency
 * that can never be met ends the job in the same step, and all jobs that depend on it, however long the chain
 * is. A job that ended between the reading of a submission and its step is still known. job.c continues with
 * jobs that are ready. */
#include "daemon/core/lifecycle/dependency.h"

#include <stdio.h>

#include "daemon/core/lifecycle/job.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "proto/limits_controller.h"

/* The state of one edge. */
enum prospect {
    PROSPECT_OPEN,
    PROSPECT_MET,
    PROSPECT_NEVER, /* it can never be met */
};

static enum prospect prospect_of(enum dependency kind, enum job_state state, bool started)
{
    bool ended = job_state_terminal(state);
    switch (kind) {
    case DEPENDENCY_AFTER:
        return started || ended ? PROSPECT_MET : PROSPECT_OPEN;
    case DEPENDENCY_AFTEROK:
        return !ended ? PROSPECT_OPEN : state == JOB_SUCCEEDED ? PROSPECT_MET : PROSPECT_NEVER;
    case DEPENDENCY_AFTERANY:
        return ended ? PROSPECT_MET : PROSPECT_OPEN;
    case DEPENDENCY_COUNT:
        break;
    }
    abort();
}

static enum prospect prospect_now(enum dependency kind, const struct job *on)
{
    return prospect_of(kind, on->state, on->started_ms != 0);
}

/* --- edges ---------------------------------------------------------------------------------------------- */

static void edge_create(struct job *job, struct job *on, enum dependency kind)
{
    struct edge *edge = xzalloc(sizeof *edge);
    edge->job = job;
    edge->on = on;
    edge->kind = kind;
    edge->next_open = job->dependencies;
    job->dependencies = edge;
    DL_APPEND(on->dependents, edge);
}

static void make_due(struct core *core, struct edge *edge)
{
    DL_DELETE(edge->on->dependents, edge);
    DL_APPEND(core->due, edge);
    edge->due = true;
}

/* Removes the edge from the list of the other job's dependents or of due edges. */
static void unlist(struct core *core, struct edge *edge)
{
    if (edge->due) {
        DL_DELETE(core->due, edge);
    } else {
        DL_DELETE(edge->on->dependents, edge);
    }
}

static void edge_destroy(struct core *core, struct edge *edge)
{
    struct edge **at = &edge->job->dependencies;
    while (*at != edge) {
        at = &(*at)->next_open;
    }
    *at = edge->next_open;
    unlist(core, edge);
    free(edge);
}

void dependency_clear(struct core *core)
{
    for (struct job *job = core->jobs_by_key; job != NULL; job = job->by_key.next) {
        while (job->dependencies != NULL) {
            edge_destroy(core, job->dependencies);
        }
    }
}

/* --- jobs that have ended ------------------------------------------------------------------------------- */

static void remember(struct core *core, const struct job *job)
{
    struct outcome *outcome = &core->outcomes[core->outcome_count++ % LIMIT_ENDED_JOBS];
    *outcome = (struct outcome){.key = job->key, .state = job->state};
}

/* The final state of a job that may have been live when the submission was read. */
static bool outcome_of(const struct core *core, const struct core_dependency *on, enum job_state *ret_state)
{
    *ret_state = on->state;
    size_t count = core->outcome_count < LIMIT_ENDED_JOBS ? core->outcome_count : LIMIT_ENDED_JOBS;
    for (size_t i = 0; i < count && !job_state_terminal(*ret_state); i++) {
        if (core->outcomes[i].key == on->key) {
            *ret_state = core->outcomes[i].state;
        }
    }
    return job_state_terminal(*ret_state);
}

void dependency_ended(struct core *core, struct job *job)
{
    while (job->dependencies != NULL) {
        edge_destroy(core, job->dependencies);
    }
    while (job->dependents != NULL) {
        make_due(core, job->dependents);
    }
    remember(core, job);
}

void dependency_started(struct core *core, struct job *job)
{
    struct edge *edge, *next;
    DL_FOREACH_SAFE (job->dependents, edge, next) {
        if (edge->kind == DEPENDENCY_AFTER) {
            make_due(core, edge);
        }
    }
}

/* --- submission ----------------------------------------------------------------------------------------- */

bool dependency_check(const struct core *core, const struct input *input, struct err *err)
{
    for (size_t i = 0; i < input->submit.dependency_count; i++) {
        const struct core_dependency *on = &input->submit.dependencies[i];
        enum job_state state;
        if (job_by_key(core, on->key) == NULL && !outcome_of(core, on, &state)) {
            char field[32];
            snprintf(field, sizeof field, "after[%zu]", i);
            return err_field(err, ERR_UNAVAILABLE, field, "submit again",
                             "job %s has ended while the submission was read", on->id);
        }
    }
    return true;
}

static const char *never_text(struct core *core, const char *id, enum job_state state)
{
    return record_text(core, "job %s, on which it depends, is %s", id, job_state_text(state));
}

/* For a dependency that has ended: why the job can never start, or NULL. */
static const char *join_ended(struct core *core, const struct core_dependency *on)
{
    enum job_state state;
    bool known = outcome_of(core, on, &state);
    assert(known);
    bool never = prospect_of(on->kind, state, true) == PROSPECT_NEVER;
    return never ? never_text(core, on->id, state) : NULL;
}

const char *dependency_join(struct core *core, struct job *job, const struct input *input)
{
    const char *never = NULL;
    for (size_t i = 0; i < input->submit.dependency_count; i++) {
        const struct core_dependency *on = &input->submit.dependencies[i];
        record_dependency(core, job, on->key, on->kind);
        struct job *live = job_by_key(core, on->key);
        if (live == NULL) {
            never = never != NULL ? never : join_ended(core, on);
        } else if (prospect_now(on->kind, live) == PROSPECT_OPEN) {
            edge_create(job, live, on->kind);
        }
    }
    return never;
}

void dependency_load(struct core *core, const struct dependency_row *row)
{
    struct job *job = job_by_key(core, row->job_key);
    struct job *on = job_by_key(core, row->on_key);
    assert(!core->booted && job != NULL);
    if (on != NULL && prospect_now(row->kind, on) == PROSPECT_OPEN) {
        assert(job->state == JOB_BLOCKED || job->state == JOB_HELD);
        edge_create(job, on, row->kind);
    }
}

/* --- due edges ------------------------------------------------------------------------------------------ */

static void settle(struct core *core, struct edge *edge)
{
    struct job *job = edge->job;
    const struct job *on = edge->on;
    enum prospect prospect = prospect_now(edge->kind, on);
    assert(prospect != PROSPECT_OPEN);
    const char *reason = prospect == PROSPECT_NEVER ? never_text(core, on->id, on->state) : NULL;
    edge_destroy(core, edge);
    if (reason != NULL) {
        job_never(core, job, reason);
    } else if (job->state == JOB_BLOCKED && !job_waits_to_be_ready(job)) {
        core->change_set.lazy = false; /* other jobs wait for this, even if a lazy report caused it */
        job_fire(core, job, JOB_EVENT_READY, NULL, NULL);
    }
}

void dependency_pass(struct core *core)
{
    while (core->due != NULL) {
        settle(core, core->due);
    }
}
