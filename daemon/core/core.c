/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and destroys the core, and runs its steps. A step gives the input to the file that handles it,
 * places waiting jobs, then closes and checks the changes. A refused input changes nothing. All rules are in
 * the folders below. */
#include "daemon/core/core.h"

#include "daemon/core/explain/explain.h"
#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/pool.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/fleet/window.h"
#include "daemon/core/inputs/amend.h"
#include "daemon/core/inputs/cancel.h"
#include "daemon/core/inputs/heartbeat.h"
#include "daemon/core/inputs/maintenance.h"
#include "daemon/core/inputs/node_action.h"
#include "daemon/core/inputs/register.h"
#include "daemon/core/inputs/remove.h"
#include "daemon/core/inputs/report.h"
#include "daemon/core/inputs/staging_report.h"
#include "daemon/core/inputs/submit.h"
#include "daemon/core/inputs/tick.h"
#include "daemon/core/invariants.h"
#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/availability.h"
#include "daemon/core/lifecycle/dependency.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/lifecycle/start_time.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/lifecycle/timing.h"
#include "daemon/core/queue/history.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/scheduler/pass.h"
#include "daemon/core/scheduler/preempt.h"
#include "daemon/core/webhooks/webhook.h"
#include "proto/limits_controller.h"

struct core *core_create(const struct core_config *config)
{
    assert(config->incarnation > 0 && config->next_job_key > 0 && config->heartbeat_ms > 0);
    struct core *core = xzalloc(sizeof *core);
    core->config = *config;
    core->next_job_key = config->next_job_key;
    core->deadline_ms = core->again_ms = core->look_again_ms = core->judge_ms = NEVER;
    core->registry = 1;
    core->accounts = accounts_create(config->share_half_life_ms);
    core->outcomes = xzalloc(LIMIT_ENDED_JOBS * sizeof *core->outcomes);
    return core;
}

/* --- end ------------------------------------------------------------------------------------------------ */

static void destroy_jobs(struct core *core)
{
    struct job *job, *next;
    HASH_ITER (by_key, core->jobs_by_key, job, next) {
        if (job->batch != NULL) {
            queue_take(core, job);
        }
        queue_leave(core, job);
        HASH_DELETE(by_id, core->jobs_by_id, job);
        HASH_DELETE(by_key, core->jobs_by_key, job);
        job_free(job);
    }
}

static void destroy_attempts(struct core *core)
{
    struct attempt *attempt, *next;
    HASH_ITER (hh, core->attempts_by_attempt_id, attempt, next) {
        HASH_DEL(core->attempts_by_attempt_id, attempt);
        attempt_free(attempt);
    }
}

static void destroy_nodes(struct core *core)
{
    HASH_CLEAR(hh, core->nodes_by_name);
    for (size_t i = 0; i < core->node_count; i++) {
        if (core->nodes[i]->state != NODE_LOST) {
            pool_leave(core, core->nodes[i]);
        }
        node_free(core->nodes[i]);
    }
    free(core->nodes);
    while (core->removed != NULL) {
        struct node *node = core->removed;
        core->removed = node->next_removed;
        node_free(node);
    }
}

void core_destroy(struct core *core)
{
    pass_drop(core);
    staging_clear_copies(core);
    dependency_clear(core);
    start_time_clear(core);
    destroy_jobs(core);
    staging_clear(core);
    destroy_attempts(core);
    destroy_nodes(core);
    webhook_clear(core);
    accounts_destroy(core->accounts);
    window_clear(core);
    history_clear(core);
    availability_clear(core);
    timing_clear(core);
    assert(core->partitions == NULL && core->job_classes_by_key == NULL && core->batches == NULL);
    free(core->outcomes);
    free(core->turns.items);
    free(core);
}

/* --- step ----------------------------------------------------------------------------------------------- */

static bool dispatch(struct core *core, const struct input *input, struct err *err)
{
    switch (input->kind) {
    case INPUT_BOOT:
        return tick_boot(core, input, err);
    case INPUT_SUBMIT:
        return submit_job(core, input, err);
    case INPUT_CANCEL:
        return cancel_take(core, input, err);
    case INPUT_HOLD:
        return amend_hold(core, input, err);
    case INPUT_RELEASE:
        return amend_release(core, input, err);
    case INPUT_CHANGE:
        return amend_job(core, input, err);
    case INPUT_REGISTER:
        return register_node(core, input, err);
    case INPUT_HEARTBEAT:
        return heartbeat_take(core, input, err);
    case INPUT_REPORT:
        return report_take(core, input, err);
    case INPUT_STAGING:
        return staging_report_take(core, input, err);
    case INPUT_NODE:
        return node_action_take(core, input, err);
    case INPUT_PREEMPT:
        return preempt_take(core, input, err);
    case INPUT_ASK:
        return explain_take(core, input, err);
    case INPUT_LIMITS:
        return account_change(core, input, err);
    case INPUT_ACCOUNTS:
        return account_show(core, input, err);
    case INPUT_POOLS:
        account_show_pools(core);
        return true;
    case INPUT_WINDOW:
        return maintenance_take(core, input, err);
    case INPUT_REMOVE:
        return remove_jobs(core, input, err);
    case INPUT_WEBHOOK:
        return webhook_take(core, input, err);
    case INPUT_TICK:
        return tick_pass(core, input, err);
    }
    abort();
}

/* What the step has closed: changes no longer refer to it. */
static void free_released(struct core *core)
{
    for (struct attempt *attempt = core->released_attempts, *next; attempt != NULL; attempt = next) {
        next = attempt->next;
        attempt_free(attempt);
    }
    for (struct job *job = core->released, *next; job != NULL; job = next) {
        next = job->next;
        job_free(job);
    }
    core->released_attempts = NULL;
    core->released = NULL;
}

void core_step(struct core *core, const struct input *input, int64_t now_ms, struct step *ret_step)
{
    assert(core->booted != (input->kind == INPUT_BOOT));
    core->now_ms = now_ms > core->now_ms ? now_ms : core->now_ms; /* several threads stamp inputs */
    core->wall_ms = input->wall_ms;
    if (input->kind == INPUT_BOOT) {
        core->steady_offset_ms = input->wall_ms - core->now_ms;
    }
    core->steady_ms = core->now_ms + core->steady_offset_ms;
    *ret_step = (struct step){0};
    timing_open(core, input);
    record_open(core, input->wall_ms);
    account_clock(core, core->steady_ms);
    ret_step->ok = dispatch(core, input, &ret_step->err);
    dependency_pass(core);
    /* After a refused input, work that only time has made due waits for the TICK that is due. */
    while (ret_step->ok && (core->place_wanted || core->now_ms >= core->again_ms)) {
        pass_run(core);
        dependency_pass(core); /* a job that no node can stage has ended */
    }
    tick_watch_brake(core);
    webhook_tell(core);
    record_close(core, ret_step);
    free_released(core);
    invariants_after_step(core, ret_step);
}

/* --- questions ------------------------------------------------------------------------------------------ */

void core_each_node(const struct core *core, void (*visit)(const char *name, void *closure), void *closure)
{
    for (size_t i = 0; i < core->node_count; i++) {
        visit(core->nodes[i]->name, closure);
    }
}

struct silence core_silence(const struct core *core)
{
    return (struct silence){core->silent_count, core->known_count, core->braked};
}

struct core_figures core_figures(const struct core *core)
{
    struct core_figures figures = {
        .silent_count = core->silent_count,
        .attempt_count = HASH_COUNT(core->attempts_by_attempt_id) - core->ended_count,
        .submit_count = (size_t)(core->next_job_key - core->config.next_job_key),
        .window_count = core->window_count,
        .pool_count = core->pool_count,
        .type_count = core->type_count,
        .limited_count = account_limited_count(core),
        .webhook_count = core->webhooks != NULL ? core->webhooks->count : 0,
        .pending_deliveries = core->webhooks != NULL ? core->webhooks->pending_count : 0,
        .delivery_stamp = core->delivery_stamp};
    memcpy(figures.jobs, core->job_counts, sizeof figures.jobs);
    memcpy(figures.nodes, core->node_counts, sizeof figures.nodes);
    return figures;
}

size_t core_pass_count(const struct core *core)
{
    return core->pass_count;
}

size_t core_live_jobs(const struct core *core)
{
    return HASH_CNT(by_id, core->jobs_by_id);
}

int64_t core_deadline(const struct core *core)
{
    return core->again_ms < core->deadline_ms ? core->again_ms : core->deadline_ms;
}

void core_committed(struct core *core, int64_t at_us,
                    void (*ended)(void *closure, uint64_t attempt_id, int64_t visible_us), void *closure)
{
    timing_committed(core, at_us, ended, closure);
}

void core_trace(struct core *core, struct text *trace)
{
    core->trace = trace;
}

void core_check(struct core *core)
{
    invariants_check(core);
}
