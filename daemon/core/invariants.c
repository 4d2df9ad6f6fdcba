/* SPDX-License-Identifier: Apache-2.0 */
/* Checks all invariants of the core in one place. It changes nothing. A violation is a defect of the core,
 * and aborts before the step is written to disk. */
#include "daemon/core/invariants.h"

#include <string.h>
#include <strings.h>

#include "daemon/core/fleet/departure.h"
#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/pool.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/fleet/window.h"
#include "daemon/core/lifecycle/array.h"
#include "daemon/core/lifecycle/start_time.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/step.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/queue/turn.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/webhooks/webhook.h"
#include "daemon/core/scheduler/place.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

/* --- nodes ---------------------------------------------------------------------------------------------- */

static bool holds(const struct member *member, int64_t index)
{
    bool found = false;
    for (size_t i = 0; i < member->device_count; i++) {
        found = found || member->devices[i] == index;
    }
    return found;
}

/* A device serves at most one attempt, which is live and lists it; no member has a device that serves another
 * attempt. */
static void check_devices(const struct node *node)
{
    size_t held = 0;
    for (size_t i = 0; i < node->device_count; i++) {
        const struct node_device *device = &node->devices[i];
        assert(i == 0 || node->devices[i - 1].index < device->index);
        assert(device->capacity == NULL || (!device->retired && node->state != NODE_LOST));
        assert(!device->retired || device->holder != NULL);
        if (device->holder != NULL) {
            held++;
            assert(device->holder->node == node && attempt_is_live(device->holder->attempt) &&
                   holds(device->holder, device->index));
        }
    }
    size_t claimed = 0;
    for (const struct member *member = node->members; member != NULL; member = member->next) {
        claimed += member->device_count;
    }
    assert(held == claimed);
}

static int64_t ranks_without_gpu(const struct node *node)
{
    int64_t count = 0;
    for (const struct member *member = node->members; member != NULL; member = member->next) {
        count += member->device_count == 0;
    }
    return count;
}

/* The node holds what its members hold. */
static void check_amounts(const struct node *node)
{
    struct amount held = {0};
    for (const struct member *member = node->members; member != NULL; member = member->next) {
        held = amount_plus(held, member_holds(member), 1);
    }
    assert(held.millicpus == node->held.millicpus && held.memory_bytes == node->held.memory_bytes);
}

static void check_capacities(const struct node *node)
{
    assert((node->state == NODE_LOST || node->device_count == 0) || node->capacities != NULL ||
           node->devices[0].retired);
    for (const struct capacity *capacity = node->capacities; capacity != NULL; capacity = capacity->next) {
        int64_t total = 0, free_now = 0, unavailable = 0;
        if (partition_is_gpuless(capacity->partition)) {
            total = LIMIT_NODE_DEVICES;
            free_now = total - ranks_without_gpu(node);
        }
        for (size_t i = 0; i < node->device_count; i++) {
            const struct node_device *device = &node->devices[i];
            total += device->capacity == capacity;
            free_now += device->capacity == capacity && device->holder == NULL && device->unavailable == NULL;
            unavailable += device->capacity == capacity && device->unavailable != NULL;
        }
        assert(capacity->node == node && capacity->total == total && capacity->free == free_now);
        assert(capacity->unavailable == unavailable);
        assert(strcmp(capacity->partition->pool, node->pool) == 0 &&
               capacity->partition->kind == node->pool_kind);
    }
}

static void check_node(const struct node *node)
{
    check_devices(node);
    check_amounts(node);
    check_capacities(node);
    assert(node->state != NODE_SUSPECT && node->slot == 0 && !node->dirty);
    assert(node->state != NODE_DRAINED || node->members == NULL);
    assert(node->state != NODE_DRAINING || node->members != NULL);
    for (const struct member *member = node->members; member != NULL; member = member->next) {
        assert(member->node == node && attempt_is_live(member->attempt));
        assert(member->version <= node->orders_version);
        assert(node->state != NODE_LOST || !member_is_up(member));
        assert(member->next == NULL || member->attempt->attempt_id < member->next->attempt->attempt_id);
    }
}

static void check_nodes(const struct core *core)
{
    size_t known = 0, silent = 0;
    for (size_t i = 0; i < core->node_count; i++) {
        const struct node *node = core->nodes[i];
        check_node(node);
        assert(node->index == i && node_find(core, node->name) == node);
        assert(i == 0 || strcmp(core->nodes[i - 1]->name, node->name) < 0);
        known += node->state != NODE_LOST;
        silent += node->contact == CONTACT_SILENT;
        assert(node->state != NODE_LOST || node->contact == CONTACT_FRESH);
        assert(node->state == NODE_LOST || node->contact == CONTACT_SILENT ||
               core->deadline_ms <= node_silent_ms(core, node));
        assert(node->hold_until_ms == 0 || core->deadline_ms <= node->hold_until_ms);
    }
    assert(known == core->known_count && silent == core->silent_count);
    assert(HASH_COUNT(core->nodes_by_name) == core->node_count);
}

static void check_partition(const struct partition *partition)
{
    int64_t total = 0, free_now = 0, widest = 0;
    for (size_t i = 0; i < partition->count; i++) {
        widest = partition->capacities[i]->total > widest ? partition->capacities[i]->total : widest;
        assert(partition->capacities[i]->partition == partition);
        assert(i == 0 ||
               strcmp(partition->capacities[i - 1]->node->name, partition->capacities[i]->node->name) < 0);
        total += partition->capacities[i]->total;
        free_now += partition->capacities[i]->free;
    }
    assert(partition->count > 0 && total == partition->total && free_now == partition->free &&
           widest == partition->widest);
}

static void check_free(const struct core *core)
{
    int64_t free_now = 0, gpuless = 0;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        free_now += partition_is_gpuless(partition) ? 0 : partition->free;
        gpuless += partition_is_gpuless(partition) ? partition->free : 0;
    }
    assert(free_now == core->free && gpuless == core->free_gpuless);
}

/* The demand counts each live job once. */
static void check_demand(const struct core *core)
{
    int64_t count = 0;
    for (size_t i = 0; i <= LIMIT_NODE_DEVICES; i++) {
        count += core->demand[i];
    }
    assert(count == core->demand_count &&
           count + core->gpuless_count == (int64_t)HASH_CNT(by_id, core->jobs_by_id));
}

static void check_partitions(const struct core *core)
{
    pool_check(core);
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        check_partition(partition);
        if (partition->next != NULL) {
            int order = strcmp(partition->pool, partition->next->pool);
            assert(partition->next->index == partition->index + 1);
            assert(order < 0 || (order == 0 && strcasecmp(partition->type, partition->next->type) < 0));
            assert(order != 0 || partition->kind == partition->next->kind);
        }
    }
    check_free(core);
}

/* --- attempts ------------------------------------------------------------------------------------------- */

static size_t count_in(const struct attempt *attempt, enum member_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < attempt->member_count; i++) {
        count += attempt->members[i]->state == state;
    }
    return count;
}

static size_t count_up(const struct attempt *attempt)
{
    return count_in(attempt, MEMBER_ORDERED) + count_in(attempt, MEMBER_PREPARED) +
           count_in(attempt, MEMBER_RUNNING);
}

/* A member with missing results never counts as successful, so a function that succeeds has a result of every
 * rank. */
static void check_results(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->member_count; i++) {
        const struct member *member = attempt->members[i];
        bool exited = member->state == MEMBER_EXITED || member->state == MEMBER_FLUSHED;
        assert(member->results_missing >= 0 && member->results_missing <= member->local_ranks);
        assert(!exited || attempt->cause != CAUSE_NONE || member->results_missing == 0);
    }
}

/* The attempt's state agrees with its members' states. */
static void check_attempt_state(const struct attempt *attempt)
{
    size_t all = attempt->member_count, up = count_up(attempt), prepared = count_in(attempt, MEMBER_PREPARED);
    bool started = attempt_has_started(attempt);
    switch (attempt->state) {
    case ATTEMPT_RESERVED:
        assert(!started && all > 1 && count_in(attempt, MEMBER_ORDERED) == all &&
               attempt->cause == CAUSE_NONE);
        return;
    case ATTEMPT_PREPARING:
        assert(!started && prepared > 0 && prepared < all && attempt->cause == CAUSE_NONE);
        assert(prepared + count_in(attempt, MEMBER_ORDERED) == all);
        return;
    case ATTEMPT_STARTED:
        assert(started && up > 0 && count_in(attempt, MEMBER_LOST) == 0 && attempt->cause == CAUSE_NONE);
        assert(all == 1 || count_in(attempt, MEMBER_ORDERED) == 0);
        return;
    case ATTEMPT_KEPT:
        assert(started && up > 0 && count_in(attempt, MEMBER_LOST) == 0 && attempt->cause != CAUSE_NONE);
        assert(attempt->job->keep_ms > 0);
        return;
    case ATTEMPT_STOPPING:
        assert(up > 0 && attempt->cause != CAUSE_NONE);
        assert(started || count_in(attempt, MEMBER_RUNNING) == 0);
        return;
    case ATTEMPT_FLUSHING:
        assert(up == 0 && count_in(attempt, MEMBER_EXITED) > 0);
        return;
    case ATTEMPT_PREPARED: /* never visible: START is committed in the same step */
    case ATTEMPT_ENDED:
    case ATTEMPT_STATE_COUNT:
        break;
    }
    abort();
}

static void check_attempt(const struct attempt *attempt)
{
    const struct job *job = attempt->job;
    check_attempt_state(attempt);
    check_results(attempt);
    assert(job != NULL && job->attempt == attempt && job->attempt_number == attempt->number &&
           attempt->slot == 0);
    int64_t next_rank = 0, devices = 0;
    for (size_t i = 0; i < attempt->member_count; i++) {
        const struct member *member = attempt->members[i];
        assert(member->attempt == attempt && member->node_rank == (int64_t)i &&
               member->first_rank == next_rank);
        assert(member->slot == 0 && member_on(member->node, attempt->attempt_id) == member);
        next_rank += member->local_ranks;
        devices += (int64_t)member->device_count;
    }
    const struct resource_request *request = &job->job_class->request;
    assert(devices == request_gpus(request));
    assert(next_rank == (job->launch_mode == LAUNCH_NODE ? (int64_t)attempt->member_count : request->units));
}

static void check_attempts(const struct core *core)
{
    uint64_t last = 0;
    for (const struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        check_attempt(attempt);
        assert(attempt->attempt_id > last && attempt->attempt_id >> 32 <= core->config.incarnation);
        assert(core->deadline_ms <= attempt->deadline_ms);
        last = attempt->attempt_id;
    }
    size_t ended = 0;
    for (const struct attempt *attempt = core->ended; attempt != NULL; attempt = attempt->next) {
        assert(attempt->state == ATTEMPT_ENDED && (attempt->job == NULL || attempt->job->attempt == attempt));
        check_results(attempt);
        ended++;
    }
    assert(ended == core->ended_count && ended <= LIMIT_ENDED_ATTEMPTS);
}

/* --- jobs ----------------------------------------------------------------------------------------------- */

/* An array has no attempt of its own, and may be queued while its tasks run. */
static void check_whole(const struct job *job)
{
    assert(!job_state_terminal(job->state) && job->exit_code == -1 && job->slot == 0 &&
           job->job_class != NULL);
    assert(job_is_waiting(job) || job_is_kept_back(job) || job->state == JOB_RUNNING);
    array_check(job->array);
}

/* A job is BLOCKED exactly while it waits for its time, or for another job, which is live and knows it. */
static void check_edges(const struct job *job)
{
    assert(job->state != JOB_BLOCKED || job_waits_to_be_ready(job));
    assert((job->timed != 0) == (job->not_before_ms != 0));
    assert(job->dependencies == NULL || job_is_kept_back(job));
    for (const struct edge *edge = job->dependencies; edge != NULL; edge = edge->next_open) {
        assert(edge->job == job && !edge->due && !job_state_terminal(edge->on->state));
        assert(edge->kind != DEPENDENCY_AFTER || edge->on->started_ms == 0);
        assert(edge->on->dependents == edge || edge->prev->next == edge);
    }
}

/* There may be very many dependents. */
static size_t check_dependents(const struct core *core, const struct job *job)
{
    size_t count = 0;
    for (const struct edge *edge = job->dependents; edge != NULL; edge = edge->next) {
        const struct job *follower = job_by_key(core, edge->job->key);
        assert(edge->on == job && follower == edge->job && follower->key > job->key);
        assert(edge->next == NULL || follower->key < edge->next->job->key);
        count++;
    }
    return count;
}

static void check_job(const struct job *job)
{
    if (array_is_whole(job)) {
        check_whole(job);
        return;
    }
    bool live = job->attempt != NULL && attempt_is_live(job->attempt);
    assert(!job_state_terminal(job->state) && job->exit_code == -1 && job->slot == 0 &&
           job->job_class != NULL);
    assert(live == (job->state == JOB_PLACED || job->state == JOB_RUNNING));
    check_edges(job);
    assert(live || job->cause != CAUSE_CANCELED);
    assert((job->kept_until_ms != 0) == (live && job->attempt->state == ATTEMPT_KEPT));
    assert((job->kept_since_ms != 0) == (job->kept_until_ms != 0));
    assert(job->state != JOB_STAGING || job->job_class->environment != NULL);
    assert(job->state != JOB_RUNNING || attempt_has_started(job->attempt));
    assert(job->user_failures <= job->retries && job->infra_failures <= job->infra_retries);
    if (live) {
        check_attempt(job->attempt);
    }
}

/* A scheduling pass is due, or is not through: what waits may be due for a move. */
static bool is_pass_pending(const struct core *core)
{
    return core->now_ms >= core->again_ms || core->now_ms < core->pass_rest_ms;
}

static void check_batch(const struct core *core, const struct job_class *job_class, const struct batch *batch,
                        size_t *listed)
{
    assert(batch->key.job_class == job_class && batch->jobs != NULL);
    for (const struct job *job = batch->jobs; job != NULL; job = job->next) {
        assert(job->job_class == job_class && job->batch == batch &&
               (job_is_waiting(job) || array_is_whole(job)));
        assert(job->state != JOB_STAGING || staging_is_coming(job_class->environment) ||
               is_pass_pending(core));
        assert(job->next == NULL || queue_job_before(job, job->next));
        ++*listed;
    }
}

static void check_job_class(const struct core *core, const struct job_class *job_class, size_t *listed)
{
    assert(job_class->entry_count > 0);
    for (size_t i = 0; i < job_class->entry_count; i++) {
        const struct queue_entry *entry = &job_class->entries[i];
        assert(entry->batch->index == i && entry->key == entry->batch->jobs->key);
        check_batch(core, job_class, entry->batch, listed);
    }
}

static void check_jobs(const struct core *core)
{
    size_t queued = 0, listed = 0, edges = 0, dependents = 0;
    for (const struct job *job = core->jobs_by_key; job != NULL; job = job->by_key.next) {
        check_job(job);
        dependents += check_dependents(core, job);
        for (const struct edge *edge = job->dependencies; edge != NULL; edge = edge->next_open) {
            edges++;
        }
        assert(job->key < core->next_job_key);
        queued += job->batch != NULL;
        assert(array_is_whole(job) || (job->batch != NULL) == job_is_waiting(job));
    }
    for (const struct job_class *job_class = core->job_classes; job_class != NULL;
         job_class = job_class->next) {
        check_job_class(core, job_class, &listed);
    }
    assert(edges == dependents);
    assert(queued == listed && HASH_CNT(by_id, core->jobs_by_id) == HASH_CNT(by_key, core->jobs_by_key));
}

/* --- after a step --------------------------------------------------------------------------------------- */

static void check_touched(const struct core *core, const struct job_touch *touch)
{
    const struct job *job = job_by_key(core, touch->key);
    assert((job == NULL) == job_state_terminal(touch->state));
    if (job != NULL) {
        assert(job->seq == touch->seq && job->state == touch->state);
        check_job(job);
    }
}

/* Attempts that ended in this step are the last in the list of ended ones, and each has changed its job. */
static void check_just_ended(const struct core *core, size_t at_most)
{
    const struct attempt *attempt = core->ended != NULL ? core->ended->prev : NULL;
    for (size_t i = 0; i < at_most && attempt != NULL; i++) {
        check_results(attempt);
        attempt = attempt != core->ended ? attempt->prev : NULL;
    }
}

void invariants_after_step(const struct core *core, const struct step *step)
{
    assert(step->ok || (step->change_count == 0 && step->dirty_count == 0));
    assert(!core->place_wanted && core->due == NULL && core->change_set.arena == NULL);
    check_free(core);
    for (size_t i = 0; i < step->touched_count; i++) {
        check_touched(core, &step->touched[i]);
    }
    check_just_ended(core, step->touched_count);
    for (size_t i = 0; i < step->dirty_count; i++) {
        check_node(node_find(core, step->dirty_nodes[i]));
    }
}

void invariants_check(struct core *core)
{
    check_nodes(core);
    check_partitions(core);
    check_attempts(core);
    check_jobs(core);
    check_demand(core);
    turn_check(core);
    staging_check(core);
    array_check_all(core);
    account_check(core);
    window_check(core);
    start_time_check(core);
    webhook_check(core);
    departure_check(core);
    assert(!core->booted || is_pass_pending(core) || !place_would(core));
}
