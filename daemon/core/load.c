/* SPDX-License-Identifier: Apache-2.0 */
/* Turns rows into state when the controller starts. The loaded state decides like the state that wrote the
 * rows. Heartbeats, holds and deadlines, which no row has, begin anew at BOOT. Rows that contradict each
 * other abort the program, because the store checks itself before it hands them out. */
#include "daemon/core/core.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/fleet/locality.h"
#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/pool.h"
#include "daemon/core/fleet/window.h"
#include "daemon/core/lifecycle/array.h"
#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/availability.h"
#include "daemon/core/lifecycle/dependency.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/lifecycle/start_time.h"
#include "daemon/core/lifecycle/member.h"
#include "daemon/core/model/device.h"
#include "daemon/core/model/label.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/history.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/webhooks/webhook.h"
#include "proto/limits_controller.h"

void core_load_history(struct core *core, const struct history_row *row)
{
    history_load(core, row);
}

void core_load_limits(struct core *core, const struct limits_row *row, const struct account_limits *limits)
{
    account_load_limits(core, row, limits);
}

void core_load_usage(struct core *core, const struct usage_row *row)
{
    account_load_usage(core, row);
}

void core_load_dependency(struct core *core, const struct dependency_row *row)
{
    dependency_load(core, row);
}

void core_load_node(struct core *core, const struct node_row *row)
{
    assert(!core->booted && node_find(core, row->name) == NULL && row->state != NODE_SUSPECT);
    struct node *node = node_create(core, row->name);
#define FROM_ROW(to, type, name, role) (to)->name = row->name;
    NODE_OWN_ROW(FROM_ROW, node)
    NODE_OWN_ROW(ROW_OWN, *node)
    core->node_counts[NODE_LOST]--;
    core->node_counts[node->state]++;
    replace_text(&node->agent_id, row->agent_id != NULL ? row->agent_id : "");
    node->labels = labels_decode(row->labels, &node->label_count);
    node->devices = device_list_decode(row->devices, &node->device_count);
    if (node->state != NODE_LOST) {
        core->known_count++;
        pool_join(core, node);
    }
}

void core_load_window(struct core *core, const struct window_row *row)
{
    assert(!core->booted);
    window_list(core, row);
}

void core_load_webhook(struct core *core, const struct webhook_row *row)
{
    webhook_load(core, row);
}

void core_load_delivery(struct core *core, const struct delivery_row *row)
{
    webhook_load_delivery(core, row);
}

void core_load_job(struct core *core, const struct job_birth *birth, const struct job_life *life,
                   const struct job_spec *spec, const struct environment_spec *environment)
{
    assert(!core->booted && birth->key < core->next_job_key && !job_state_terminal(life->state));
    struct job *job = job_create(core, birth->key, birth->id, birth->owner, spec, environment);
    account_join(core, job, birth->project, birth->owner);
    job_enter(core, job, life->state);
    start_time_set(core, job, job_is_kept_back(job) ? spec->not_before_ms : 0);
    job->seq = life->seq;
    job->event_ms = life->event_ms;
    job->attempt_number = life->attempt;
    job->idle_since_ms = life->idle_since_ms;
    job->kept_since_ms = life->kept_since_ms;
    job->kept_until_ms = life->kept_until_ms;
    job->user_failures = (int32_t)life->user_failures;
    job->infra_failures = (int32_t)life->infra_failures;
    job->priority = (int32_t)life->priority;
    job->time_limit_ms = life->time_limit_ms;
    job->ran_ms = life->ran_ms;
    job->pool = copy_or_null(life->pool);
    job->started_ms = life->started_ms;
    job->cause = life->cause;
    job->job_class->staging_count += job->state == JOB_STAGING;
    if (birth->array_key != 0) {
        struct job *whole = job_by_key(core, birth->array_key);
        assert(whole != NULL && array_is_whole(whole));
        job_join_array(job, whole->array, birth->task);
    } else {
        queue_stamp(core, job, birth->created_ms);
        job->received_us = birth->created_ms * 1000; /* an attempt knows it better */
    }
    if (spec->tasks > 0 && birth->array_key == 0) {
        array_create(core, job, spec);
        job->array->text = copy_or_null(life->reason);
    } else if (job_is_waiting(job)) {
        queue_put(core, job);
    }
}

void core_load_array(struct core *core, const struct array_row *row)
{
    struct job *whole = job_by_key(core, row->whole);
    assert(!core->booted && whole != NULL && array_is_whole(whole) && whole->batch == NULL);
    whole->array->counts = *row;
    if (array_is_open(whole->array) && !job_is_kept_back(whole)) {
        queue_put(core, whole);
    }
}

/* One that was made before this was kept has none. */
static void load_timing(struct attempt *attempt, const struct attempt_timing *timing)
{
    struct job *job = attempt->job;
    if (timing->received_us == 0) {
        attempt->timing.received_us = job->received_us;
    } else {
        job->received_us = timing->received_us;
        job->queued_us = timing->queued_us;
    }
}

void core_load_attempt(struct core *core, const struct attempt_row *row)
{
    struct job *job = job_by_key(core, row->job_key);
    assert(!core->booted && job != NULL && job->attempt == NULL && row->number == job->attempt_number);
    assert(row->attempt_id >> 32 < core->config.incarnation);
    bool ended = row->state == ATTEMPT_ENDED;
    if (ended && core->ended_count >= LIMIT_ENDED_ATTEMPTS) {
        return; /* a report that repeats its exit will be fenced, which ends it as well */
    }
    struct attempt *attempt = attempt_alloc(core, job, row->attempt_id, row->number);
    job->attempt = attempt;
    attempt->row = *row;
    ATTEMPT_ROW(ROW_OWN, attempt->row)
    attempt->held_since_ms = row->created_ms;
    attempt->ran_since_ms = row->started_ms;
    attempt->worst_code = row->failed_code;
    load_timing(attempt, &row->timing);
    if (ended) {
        attempt_list_ended(core, attempt);
    } else {
        attempt->estimate_ms = history_estimate_ms(core, job->pattern, job->time_limit_ms);
        attempt_list_live(core, attempt);
        availability_add(core, attempt);
    }
}

/* A member whose exit ended nothing has brought all values, in the transaction that wrote its state. */
static int64_t results_missing(const struct member *member)
{
    bool exited = member->state == MEMBER_EXITED || member->state == MEMBER_FLUSHED;
    bool due = member->attempt->job->function && (!exited || member->attempt->cause != CAUSE_NONE);
    return due ? member->local_ranks : 0;
}

/* Puts it where its node rank belongs. */
static void insert_member(struct attempt *attempt, struct member *member)
{
    size_t at = attempt->member_count++;
    attempt->members = xrealloc(attempt->members, attempt->member_count * sizeof(struct member *));
    while (at > 0 && attempt->members[at - 1]->node_rank > member->node_rank) {
        attempt->members[at] = attempt->members[at - 1];
        at--;
    }
    attempt->members[at] = member;
}

/* The node was ready when it got the attempt. */
static void note_parts(const struct member *member)
{
    const struct environment *environment = member->attempt->job->job_class->environment;
    if (environment != NULL && member->node->state != NODE_LOST) {
        locality_note(environment, member->node);
    }
}

void core_load_member(struct core *core, const struct member_row *row)
{
    struct attempt *attempt = attempt_find(core, row->attempt_id);
    if (attempt == NULL) {
        return; /* of an ended attempt that was not kept */
    }
    struct member *member = xzalloc(sizeof *member);
    member->attempt = attempt;
    member->node = node_find(core, row->node);
    assert(!core->booted && (member->node != NULL || !attempt_is_live(attempt)));
    if (member->node == NULL) {
        member->node = node_removed(core, row->node);
    }
    MEMBER_OWN_ROW(FROM_ROW, member)
    MEMBER_OWN_ROW(ROW_OWN, *member)
    member->devices = device_indices_decode(row->devices, &member->device_count);
    if (attempt->timing.started_us == 0) { /* the attempt was written before them */
        attempt->timing.queued_us = row->timing.queued_us;
        attempt->timing.started_us = row->timing.started_us;
    }
    member->results_missing = results_missing(member);
    member->version = member->node->orders_version;
    insert_member(attempt, member);
    if (attempt_is_live(attempt)) {
        member_settle_on(core, member);
        note_parts(member);
        if (attempt->gpu_type == NULL) {
            attempt->gpu_type = xstrdup(node_held_device(member->node, member->devices[0])->type);
        }
    }
    int64_t failed = attempt->failed_rank;
    if (failed >= member->first_rank && failed < member->first_rank + member->local_ranks) {
        attempt->failed_node = member->node->name;
    }
}
