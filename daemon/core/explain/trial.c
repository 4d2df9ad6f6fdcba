/* SPDX-License-Identifier: Apache-2.0 */
/* Makes jobs that exist only during a question. The code that places real jobs treats a trial in the same
 * way. Afterwards the state decides as before: job classes, queue entries, patterns and promises are
 * restored. explain.c and advice.c ask the questions. */
#include "daemon/core/explain/trial.h"

#include "daemon/core/lifecycle/job.h"
#include "daemon/core/queue/history.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/queue/turn.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/scheduler/place.h"
#include "proto/spec/tasks.h"

/* --- drafts --------------------------------------------------------------------------------------------- */

struct draft draft_of(const struct job *job)
{
    struct draft draft = {
        .request = job->job_class->request,
        .pattern = job->pattern,
        .project = account_name(job->project),
        .owner = account_name(job->owner),
        .key = job->key,
        .submitted_ms = job->submitted_ms,
        .time_limit_ms = job->time_limit_ms,
        .ran_ms = job->ran_ms,
        .grace_ms = job->grace_ms,
        .priority = job->priority,
    };
    const struct environment *environment = job->job_class->environment;
    if (environment != NULL) {
        draft.environment = (struct environment_spec){.key = environment->key, .text = environment->text};
    }
    return draft;
}

struct draft draft_join(struct core *core, const struct job_spec *spec, const char *owner,
                        const struct environment_spec *environment)
{
    return (struct draft){
        .request = job_request(spec, environment),
        .environment = environment != NULL ? *environment : (struct environment_spec){0},
        .pattern = history_join(core, spec, owner, spec->time_limit_ms > 0),
        .project = job_spec_project(spec),
        .owner = owner,
        .key = core->next_job_key,
        .submitted_ms = core->steady_ms > core->submitted_ms ? core->steady_ms : core->submitted_ms,
        .time_limit_ms = spec->time_limit_ms,
        .grace_ms = spec->grace_ms,
        .priority = (int32_t)spec->priority,
    };
}

void draft_leave(struct core *core, const struct draft *draft)
{
    history_leave(core, draft->pattern);
}

/* --- trials --------------------------------------------------------------------------------------------- */

/* Queues a job that is in no list of jobs. */
static struct job *put_in(struct core *core, const struct draft *draft)
{
    struct job *job = xzalloc(sizeof *job);
    job->key = job->place = draft->key;
    job->task = TASK_NONE;
    job->state = JOB_QUEUED;
    job->trial = true;
    job->time_limit_ms = draft->time_limit_ms;
    job->ran_ms = draft->ran_ms;
    job->grace_ms = draft->grace_ms;
    job->priority = draft->priority;
    job->submitted_ms = draft->submitted_ms;
    queue_join(core, job, &draft->request, draft->request.environment != NULL ? &draft->environment : NULL);
    job->pattern = history_vary(core, draft->pattern, draft->request.units, draft->time_limit_ms > 0);
    account_join(core, job, draft->project, draft->owner);
    queue_put(core, job);
    return job;
}

static void take_away(struct core *core, struct job *job, struct trial *trial)
{
    trial->was_first = job->batch->jobs == job;
    trial->entry = job->job_class->entries[job->batch->index];
    trial->away_standing = job->job_class->standing;
    queue_take(core, job);
    trial->away = job;
}

/* Restores the old queue entry, because a recalculation with the current clock would change it. */
static void put_back(struct core *core, const struct trial *trial)
{
    struct job *job = trial->away;
    queue_put(core, job);
    if (trial->was_first) {
        struct queue_entry *entry = &job->job_class->entries[job->batch->index];
        *entry = trial->entry;
        entry->batch = job->batch;
    }
    turn_restore(core, job->job_class, trial->away_standing);
}

void trial_begin(struct core *core, const struct draft *draft, struct job *instead, struct trial *ret_trial)
{
    *ret_trial = (struct trial){.core = core, .place_wanted = core->place_wanted, .trace = core->trace};
    core->trace = NULL;
    const struct job_class *job_class = queue_find(core, &draft->request);
    ret_trial->standing = job_class != NULL ? job_class->standing : JOB_CLASS_IDLE;
    if (instead != NULL) {
        take_away(core, instead, ret_trial);
    }
    ret_trial->job = put_in(core, draft);
}

void trial_end(struct trial *trial)
{
    struct core *core = trial->core;
    queue_take(core, trial->job);
    turn_restore(core, trial->job->job_class, trial->standing);
    account_leave(core, trial->job);
    queue_leave(core, trial->job);
    history_leave(core, trial->job->pattern);
    free(trial->job);
    if (trial->away != NULL) {
        put_back(core, trial);
    }
    core->trace = trial->trace;
    core->place_wanted = trial->place_wanted;
}

bool trial_starts(struct core *core, const struct draft *draft, struct job *instead)
{
    struct trial trial;
    struct outlook outlook;
    trial_begin(core, draft, instead, &trial);
    place_consider(core, trial.job, &outlook);
    bool starts = outlook.reached && !outlook.unsettled && outlook.move == MOVE_PLACE;
    outlook_finish(&outlook);
    trial_end(&trial);
    return starts;
}
