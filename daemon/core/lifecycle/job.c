/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the states of jobs: the table, the retries, the cancel, and how a job ends. A job ends once. An
 * acknowledged cancel wins over any retry and any other end. Failures of the infrastructure never cost a
 * retry of the user. attempt.c runs the gangs. */
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/lifecycle/idle.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/lifecycle/array.h"
#include "daemon/core/lifecycle/dependency.h"
#include "daemon/core/lifecycle/start_time.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/rule.h"
#include "daemon/core/model/state.h"
#include "daemon/core/lifecycle/timing.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/queue/history.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/webhooks/webhook.h"
#include "proto/spec/tasks.h"

#define EXIT_TIME_LIMIT 124

/* The project's limit for a waiting job: its two hash tables add 16 bytes to it. */
static_assert(sizeof(struct job) <= 600, "a waiting job is too large");

/* --- creation and removal ------------------------------------------------------------------------------- */

/* A share that is not less than the whole when all have it. */
static int64_t part_of(int64_t whole, int64_t units)
{
    return (whole + units - 1) / units;
}

struct resource_request job_request(const struct job_spec *spec, const struct environment_spec *environment)
{
    int64_t units = ranks_of_gpus(spec->gpus);
    return (struct resource_request){
        .gpu_type = spec->gpu_type,
        .pool = spec->pool,
        .host_id = spec->remote ? NULL : spec->host_id,
        .environment = environment != NULL ? environment->key : NULL,
        .terms = spec->terms,
        .use_reserved = spec->use_reserved_pool,
        .placement = spec->placement,
        .units = units,
        .gpuless = spec->gpus == 0,
        .each = {part_of(spec->millicpus, units), part_of(spec->memory_bytes, units)},
        .nodes = spec->nodes,
    };
}

/* Adds a job to the list of live jobs only. */
static struct job *list_job(struct core *core, int64_t key, const char *id)
{
    assert(strlen(id) <= ID_LENGTH); /* that no other job has it, the store sees to */
    struct job *job = xzalloc(sizeof *job);
    job->key = job->place = key;
    snprintf(job->id, sizeof job->id, "%s", id);
    job->state = JOB_QUEUED;
    core->job_counts[JOB_QUEUED]++;
    job->task = TASK_NONE;
    job->exit_code = -1;
    job->failed_rank = -1;
    HASH_ADD(by_id, core->jobs_by_id, id, strlen(job->id), job);
    HASH_ADD(by_key, core->jobs_by_key, key, sizeof job->key, job);
    return job;
}

void job_enter(struct core *core, struct job *job, enum job_state state)
{
    core->job_counts[job->state]--;
    core->job_counts[state]++;
    job->state = state;
}

struct job *job_create(struct core *core, int64_t key, const char *id, const char *owner,
                       const struct job_spec *spec, const struct environment_spec *environment)
{
    struct job *job = list_job(core, key, id);
    job->time_limit_ms = spec->time_limit_ms;
    job->grace_ms = spec->grace_ms;
    job->keep_ms = spec->keep_ms;
    job->early_signal = spec->early_signal;
    job->lease_ms = spec->lease_ms;
    job->priority = (int32_t)spec->priority;
    job->retries = (int32_t)spec->retries;
    job->infra_retries = (int32_t)spec->infra_retries;
    job->launch_mode = spec->launch_mode;
    job->on_disconnect = spec->on_disconnect;
    job->function = job_spec_is_function(spec);
    job->restores = spec->checkpoint_of != NULL;
    job->notify = webhook_join_names(spec->notify);
    const struct resource_request request = job_request(spec, environment);
    queue_join(core, job, &request, environment);
    job->pattern = history_join(core, spec, owner, job->time_limit_ms > 0);
    return job;
}

struct job *job_create_task(struct core *core, int64_t key, const char *id, struct job *whole, int64_t task)
{
    struct job *job = list_job(core, key, id);
    job->time_limit_ms = whole->time_limit_ms;
    job->grace_ms = whole->grace_ms;
    job->keep_ms = whole->keep_ms;
    job->lease_ms = whole->lease_ms;
    job->priority = whole->priority;
    job->retries = whole->retries;
    job->infra_retries = whole->infra_retries;
    job->launch_mode = whole->launch_mode;
    job->on_disconnect = whole->on_disconnect;
    job->function = whole->function;
    job->restores = whole->restores;
    job->pattern = history_share(whole->pattern);
    job->early_signal = whole->early_signal;
    queue_share(core, job, whole->job_class);
    account_join_same(core, job, whole);
    job_join_array(job, whole->array, task);
    return job;
}

void job_join_array(struct job *job, struct array *array, int64_t task)
{
    job->array = array;
    job->task = task;
    job->place = array->whole->key;
    job->submitted_ms = array->whole->submitted_ms;
    timing_share(job, array->whole);
}

void job_free(struct job *job)
{
    if (job->attempt != NULL) {
        job->attempt->job = NULL;
    }
    if (array_is_whole(job)) {
        array_free(job->array);
    }
    free(job->pool);
    free(job->notify);
    free(job);
}

/* Removes an ended job: its memory lives until the step ends. */
static void leave(struct core *core, struct job *job)
{
    assert(job->attempt == NULL || !attempt_is_live(job->attempt));
    webhook_tell(core); /* while it is known whose job it was */
    account_leave(core, job);
    dependency_ended(core, job);
    queue_leave(core, job);
    history_leave(core, job->pattern);
    HASH_DELETE(by_id, core->jobs_by_id, job);
    HASH_DELETE(by_key, core->jobs_by_key, job);
    LL_PREPEND(core->released, job);
}

/* --- the table ------------------------------------------------------------------------------------------ */

/* A task that is placed for the first time was never queued. */
static void stop_waiting(struct core *core, struct job *job)
{
    if (job->batch != NULL) {
        queue_take(core, job);
    }
}

static void wait_again(struct core *core, struct job *job)
{
    queue_put(core, job);
}

static void stay(struct core *core, struct job *job)
{
}

static void note_start(struct core *core, struct job *job)
{
    if (job->started_ms == 0) {
        job->started_ms = job->event_ms;
        dependency_started(core, job);
    }
    array_note_running(core, job);
}

static void end(struct core *core, struct job *job)
{
    job->ended_ms = job->event_ms;
    leave(core, job);
    array_note_end(core, job);
}

static void end_waiting(struct core *core, struct job *job)
{
    stop_waiting(core, job);
    end(core, job);
}

static const struct job_rule {
    enum job_state from;
    enum job_event event;
    enum job_state to;
    enum event_kind history;
    void (*effect)(struct core *core, struct job *job);
} rules[] = {
    {JOB_QUEUED, JOB_EVENT_PLACE, JOB_PLACED, EVENT_PLACED, stop_waiting},
    {JOB_QUEUED, JOB_EVENT_ENVIRONMENT, JOB_STAGING, EVENT_STAGING, stay},
    {JOB_QUEUED, JOB_EVENT_FAIL, JOB_FAILED, EVENT_FAILED, end_waiting},
    {JOB_STAGING, JOB_EVENT_PLACE, JOB_PLACED, EVENT_PLACED, stop_waiting},
    {JOB_STAGING, JOB_EVENT_STAGED, JOB_QUEUED, EVENT_STAGED, stay},
    {JOB_STAGING, JOB_EVENT_REQUEUE, JOB_QUEUED, EVENT_REQUEUED, stay},
    {JOB_STAGING, JOB_EVENT_FAIL, JOB_FAILED, EVENT_FAILED, end_waiting},
    {JOB_STAGING, JOB_EVENT_CANCEL, JOB_CANCELED, EVENT_CANCELED, end_waiting},
    {JOB_QUEUED, JOB_EVENT_RUN, JOB_RUNNING, EVENT_RUNNING, note_start}, /* of an array: its first task */
    {JOB_STAGING, JOB_EVENT_RUN, JOB_RUNNING, EVENT_RUNNING, note_start},
    {JOB_PLACED, JOB_EVENT_RUN, JOB_RUNNING, EVENT_RUNNING, note_start},
    {JOB_PLACED, JOB_EVENT_REQUEUE, JOB_QUEUED, EVENT_REQUEUED, wait_again},
    {JOB_RUNNING, JOB_EVENT_REQUEUE, JOB_QUEUED, EVENT_REQUEUED, wait_again},
    {JOB_RUNNING, JOB_EVENT_SUCCEED, JOB_SUCCEEDED, EVENT_SUCCEEDED, end},
    {JOB_PLACED, JOB_EVENT_FAIL, JOB_FAILED, EVENT_FAILED, end},
    {JOB_RUNNING, JOB_EVENT_FAIL, JOB_FAILED, EVENT_FAILED, end},
    {JOB_QUEUED, JOB_EVENT_CANCEL, JOB_CANCELED, EVENT_CANCELED, end_waiting},
    {JOB_PLACED, JOB_EVENT_CANCEL, JOB_CANCELED, EVENT_CANCELED, end},
    {JOB_RUNNING, JOB_EVENT_CANCEL, JOB_CANCELED, EVENT_CANCELED, end},
    {JOB_PLACED, JOB_EVENT_TIME_OUT, JOB_TIMED_OUT, EVENT_TIMED_OUT, end},
    {JOB_RUNNING, JOB_EVENT_TIME_OUT, JOB_TIMED_OUT, EVENT_TIMED_OUT, end},
    {JOB_QUEUED, JOB_EVENT_HOLD, JOB_HELD, EVENT_HELD, stop_waiting},
    {JOB_STAGING, JOB_EVENT_HOLD, JOB_HELD, EVENT_HELD, stop_waiting},
    {JOB_BLOCKED, JOB_EVENT_HOLD, JOB_HELD, EVENT_HELD, stay},
    {JOB_HELD, JOB_EVENT_RELEASE, JOB_QUEUED, EVENT_RELEASED, wait_again},
    {JOB_HELD, JOB_EVENT_BLOCK, JOB_BLOCKED, EVENT_RELEASED, stay},
    {JOB_HELD, JOB_EVENT_CANCEL, JOB_CANCELED, EVENT_CANCELED, end},
    {JOB_BLOCKED, JOB_EVENT_READY, JOB_QUEUED, EVENT_READY, wait_again},
    {JOB_BLOCKED, JOB_EVENT_CANCEL, JOB_CANCELED, EVENT_CANCELED, end},
};

DEFINE_RULE_OF(job)

bool job_fire(struct core *core, struct job *job, enum job_event event, const char *detail, const char *note)
{
    const struct job_rule *rule = rule_of(job->state, event);
    if (rule == NULL) {
        return false;
    }
    trace_line(core, "job %s %s -> %s%s", job->id, job_state_text(rule->from), job_state_text(rule->to),
               note != NULL ? note : "");
    job->job_class->staging_count += (size_t)(rule->to == JOB_STAGING) - (size_t)(rule->from == JOB_STAGING);
    job_enter(core, job, rule->to);
    record_event(core, job, rule->history, detail);
    rule->effect(core, job);
    return true;
}

/* --- before queueing ------------------------------------------------------------------------------------ */

void job_begin(struct core *core, struct job *job, const char *held_by)
{
    if (held_by != NULL) {
        job_enter(core, job, JOB_HELD);
        record_event(core, job, EVENT_HELD, record_detail(core, "by", held_by));
    } else if (job_waits_to_be_ready(job)) {
        job_enter(core, job, JOB_BLOCKED);
        record_event(core, job, EVENT_BLOCKED, NULL);
    } else {
        queue_put(core, job);
        return;
    }
    trace_line(core, "job %s is %s", job->id, job_state_text(job->state));
}

/* --- the end of an attempt ------------------------------------------------------------------------------ */

void job_finish(struct core *core, struct job *job, enum job_event event, int64_t exit_code, enum cause cause,
                const char *reason)
{
    start_time_forget(core, job);
    job->exit_code = exit_code;
    job->cause = cause;
    job->reason = reason;
    const char *detail = reason != NULL ? record_detail(core, "reason", reason) : NULL;
    const char *note = reason != NULL ? record_text(core, ": %s", reason) : NULL;
    bool fired = job_fire(core, job, event, detail, note);
    assert(fired);
}

static void fail(struct core *core, struct job *job, const struct attempt *attempt, int64_t exit_code,
                 const char *reason)
{
    job->failed_rank = attempt->failed_rank;
    job->failed_node = attempt->failed_node;
    job_finish(core, job, JOB_EVENT_FAIL, exit_code, attempt->cause, reason);
}

/* why: what became of this attempt. */
static void requeue(struct core *core, struct job *job, enum cause cause, const char *why)
{
    job->cause = cause;
    bool fired = job_fire(core, job, JOB_EVENT_REQUEUE,
                          record_details(core, "cause", cause_text(cause), "reason", why),
                          record_text(core, " (%s)", cause_text(cause)));
    assert(fired);
}

/* Else it would take its GPUs again at once, and leave them idle. */
static void hold_idle(struct core *core, struct job *job)
{
    bool fired = job_fire(core, job, JOB_EVENT_HOLD, record_detail(core, "by", IDLE_HOLDER),
                          record_text(core, " by %s", IDLE_HOLDER));
    assert(fired);
}

static void conclude_user_fault(struct core *core, struct job *job, const struct attempt *attempt)
{
    if (++job->user_failures <= job->retries) {
        requeue(core, job, attempt->cause, attempt->cause_text);
        return;
    }
    fail(core, job, attempt, attempt->worst_code, record_text(core, "%s", attempt->cause_text));
}

static void conclude_infra_fault(struct core *core, struct job *job, const struct attempt *attempt)
{
    bool final = attempt->cause == CAUSE_NODE_LOST && job->on_disconnect == ON_DISCONNECT_FAIL;
    if (++job->infra_failures <= job->infra_retries && !final) {
        requeue(core, job, attempt->cause, attempt->cause_text);
        return;
    }
    const char *why = final ? "on_disconnect is fail" : "no infrastructure retry is left";
    fail(core, job, attempt, EXIT_INFRA, record_text(core, "%s, and %s", attempt->cause_text, why));
}

/* Who cancels a job whose failure is being looked at ends that look: the failure stays. */
static void conclude_canceled(struct core *core, struct job *job, const struct attempt *attempt)
{
    bool failed = attempt->cause == CAUSE_RANK_FAILED || attempt->cause == CAUSE_OUT_OF_MEMORY;
    if (failed && job->keep_ms > 0) {
        fail(core, job, attempt, attempt->worst_code, record_text(core, "%s", attempt->cause_text));
        return;
    }
    bool first = attempt->cause == CAUSE_CANCELED;
    const char *reason =
        first ? record_text(core, "%s", attempt->cause_text) : cause_sentence(CAUSE_CANCELED);
    job_finish(core, job, JOB_EVENT_CANCEL, EXIT_CANCELED, CAUSE_CANCELED, reason);
}

void job_never(struct core *core, struct job *job, const char *reason)
{
    if (array_is_whole(job)) {
        array_drop(core, job, reason);
    }
    job_finish(core, job, JOB_EVENT_CANCEL, EXIT_CANCELED, CAUSE_DEPENDENCY, reason);
}

void job_conclude(struct core *core, struct job *job, const struct attempt *attempt)
{
    assert(job->attempt == attempt && attempt->state == ATTEMPT_ENDED);
    bool gives_way = idle_gives_way(core, job) && attempt->cause == CAUSE_PREEMPTED;
    job->idle_since_ms = 0;
    if (job->cause == CAUSE_CANCELED) {
        conclude_canceled(core, job, attempt);
        return;
    }
    switch (attempt->cause) {
    case CAUSE_NONE:
        history_learn(core, attempt);
        job_finish(core, job, JOB_EVENT_SUCCEED, 0, CAUSE_NONE,
                   attempt->note != NULL ? record_text(core, "%s", attempt->note) : NULL);
        return;
    case CAUSE_RANK_FAILED:
    case CAUSE_OUT_OF_MEMORY:
    case CAUSE_EXEC_FAILED:
    case CAUSE_RESULT_MISSING:
        conclude_user_fault(core, job, attempt);
        return;
    case CAUSE_TIME_LIMIT:
        history_learn(core, attempt);
        job_finish(core, job, JOB_EVENT_TIME_OUT, EXIT_TIME_LIMIT, CAUSE_TIME_LIMIT,
                   record_text(core, "%s", attempt->cause_text));
        return;
    case CAUSE_DECLINED:
    case CAUSE_PREEMPTED:
        requeue(core, job, attempt->cause, attempt->cause_text);
        if (gives_way) {
            hold_idle(core, job);
        }
        return;
    case CAUSE_PORT_TAKEN:
    case CAUSE_PREPARE_EXPIRED:
    case CAUSE_NODE_LOST:
    case CAUSE_SHIM_LOST:
        conclude_infra_fault(core, job, attempt);
        return;
    case CAUSE_STAGE_FAILED: /* ends no attempt, because there was none */
    case CAUSE_DEPENDENCY:   /* ends no attempt either */
    case CAUSE_TASK_FAILED:  /* ends no attempt either; for arrays only */
    case CAUSE_CANCELED:     /* the job's own cause is the same */
    case CAUSE_COUNT:
        break;
    }
    abort();
}

/* --- failed staging ------------------------------------------------------------------------------------- */

static void end_unstaged(struct core *core, struct job *job, const struct node *node, const char *reason)
{
    job->failed_node = node != NULL ? node->name : NULL;
    if (array_is_whole(job)) {
        array_give_up(core, job, reason);
        return;
    }
    job_finish(core, job, JOB_EVENT_FAIL, EXIT_INFRA, CAUSE_STAGE_FAILED, reason);
}

void job_environment_impossible(struct core *core, struct job *job, const char *reason)
{
    end_unstaged(core, job, NULL, reason);
}

/* Whether the failure affects a job: the first job, which waited for staging, and the jobs behind it that
 * wait for the same. */
static bool is_hit(const struct job *job, bool by_user)
{
    return job->state == JOB_STAGING || (by_user && job->user_failures >= job->retries);
}

static void hit(struct core *core, struct job *job, const struct node *node, const char *reason, bool by_user)
{
    bool spent = by_user ? job->user_failures >= job->retries : job->infra_failures >= job->infra_retries;
    if (spent) {
        end_unstaged(core, job, node, reason);
        return;
    }
    job->user_failures += by_user;
    job->infra_failures += !by_user;
    job->reason = array_is_whole(job) ? NULL : reason; /* an array's own reason comes from its tasks */
    requeue(core, job, CAUSE_STAGE_FAILED, reason);
}

/* Affected jobs are collected first, because the end of one may free its job class. */
struct hits {
    struct job **jobs;
    size_t count, room;
    bool by_user;
};

static void note_hit(struct core *core, struct job *job, void *closure)
{
    struct hits *hits = closure;
    if (!is_hit(job, hits->by_user)) {
        return;
    }
    XGROW(hits->jobs, hits->count, hits->room, 8);
    hits->jobs[hits->count++] = job;
}

static int by_key(const void *a, const void *b)
{
    const struct job *const *left = a, *const *right = b;
    return (*left)->key < (*right)->key ? -1 : 1;
}

void job_environment_failed(struct core *core, const struct environment *environment, const struct node *node,
                            const char *text, bool by_user)
{
    struct hits hits = {.by_user = by_user};
    for (struct job_class *job_class = core->job_classes; job_class != NULL; job_class = job_class->next) {
        if (job_class->environment == environment) {
            queue_each(core, job_class, note_hit, &hits);
        }
    }
    if (hits.count > 1) {
        qsort(hits.jobs, hits.count, sizeof(struct job *), by_key);
    }
    const char *reason = record_text(core, "node %s: %s", node->name, text);
    for (size_t i = 0; i < hits.count; i++) {
        hit(core, hits.jobs[i], node, reason, by_user);
    }
    free(hits.jobs);
}

struct job *job_live(const struct core *core, const char *id, struct err *err)
{
    struct job *job = job_by_id(core, id);
    if (job == NULL) {
        err_field(err, ERR_NOT_FOUND, "id", "list the jobs", "no live job has the id %.64s", id);
    }
    return job;
}
