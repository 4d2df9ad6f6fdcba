/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the scheduling pass: in queue order each waiting job is placed, or waits as the policy says, and
 * what it needs is reserved for it. It promises that a gang gets all or nothing, that nodes get ready
 * for a job before it holds any of their devices, and that one which waits is not skipped for ever: it
 * keeps what it could use (fifo, sjf), or has a reservation that shorter jobs may fill but not put off (easy,
 * default). Whose turn it is is left to queue.c, which devices a job gets to fit.c. */
#include "daemon/core/scheduler/place.h"

#include "daemon/core/fleet/staging.h"
#include "daemon/core/lifecycle/array.h"
#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/scheduler/fit.h"
#include "daemon/core/scheduler/preempt.h"
#include "daemon/core/scheduler/reservation.h"
#include "proto/limits.h"

/* What a job that does not fit does to those behind it. */
enum waiting {
    WAITING_RESERVES_ALL, /* all that it could use */
    WAITING_RESERVES,     /* what it will get */
    WAITING_PREEMPTS,     /* it takes from running ones, or is skipped */
};

static enum waiting waiting_of(const struct core *core)
{
    switch (core->config.policy) {
    case POLICY_FIFO:
    case POLICY_SJF:
        return WAITING_RESERVES_ALL;
    case POLICY_EASY:
    case POLICY_DEFAULT:
        return WAITING_RESERVES;
    case POLICY_SRTF:
    case POLICY_SRSF:
        return WAITING_PREEMPTS;
    case POLICY_COUNT:
        break;
    }
    abort();
}

/* Limits of its accounts keep the job from everything that it could ever have, ret_limit says by which; or it
 * could only borrow. */
static bool is_barred(struct core *core, const struct job *job, bool borrow, struct account_limit *ret_limit)
{
    if (!account_any_limited(core)) {
        return false;
    }
    const struct search search = fit_search(core, &job->job_class->request, VIEW_REGISTERED, NULL);
    bool limited = false;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (fit_allowed(&search, partition)) {
            if (account_may_run(core, job, partition, ret_limit) &&
                (borrow || account_claim(core, job, partition) == CLAIM_ENTITLED)) {
                return false;
            }
            limited = true;
        }
    }
    return limited;
}

bool place_is_limited(struct core *core, const struct job *job, struct account_limit *ret_limit)
{
    return is_barred(core, job, true, ret_limit);
}

static bool tell_limit(struct core *core, const struct job *job)
{
    struct account_limit limit;
    if (!place_is_limited(core, job, &limit)) {
        return false;
    }
    struct text reason = {0};
    account_limit_text(&limit, &reason);
    trace_line(core, "job %s waits: %s", job->id, reason.bytes);
    text_finish(&reason);
    return true;
}

/* Says once why the first job of a job class waits. */
static void tell(struct core *core, struct job_class *job_class, const struct job *job)
{
    if (core->trace == NULL || job_class->told_key == job->key) {
        return;
    }
    job_class->told_key = job->key;
    if (tell_limit(core, job)) {
        return;
    }
    const struct search search = reservation_search(core, job, VIEW_FREE, NULL, READINESS_EVER);
    int64_t most = 0;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        int64_t free_now = fit_allowed(&search, partition) ? fit_largest(&search, partition) : 0;
        most = free_now > most ? free_now : most;
    }
    const char *reservations = most >= job_class->request.gpus ? ", kept for earlier jobs" : "";
    trace_line(core, "job %s waits: %lld wanted, %lld free%s", job->id, (long long)job_class->request.gpus,
               (long long)most, reservations);
}

/* --- what is to be done for a job ----------------------------------------------------------------------- */

struct plan {
    enum move move;
    struct fit fit;
    struct victims victims;
};

static void plan_finish(struct plan *plan)
{
    free(plan->fit.shares);
    victims_finish(&plan->victims);
}

static bool fits(const struct search *search)
{
    struct fit fit;
    bool found = fit_find(search, &fit);
    free(fit.shares);
    return found;
}

static struct search search_of(struct core *core, const struct queue_entry *entry,
                               const struct reservations *reservations)
{
    return reservation_search_until(core, queue_first(entry), entry->estimate_ms, VIEW_FREE, reservations,
                                    READINESS_READY);
}

struct search place_search(struct core *core, const struct job *job, enum view view,
                           const struct reservations *reservations, enum readiness readiness)
{
    return reservation_search_until(core, job, queue_entry_of(core, job).estimate_ms, view, reservations,
                                    readiness);
}

/* Nodes on which the job class could be placed once they are ready: not needed while enough others are, or
 * get ready. */
static bool find_to_environment(struct core *core, const struct job *job, enum view view,
                                const struct reservations *reservations, struct fit *ret_fit)
{
    const struct search coming = reservation_search(core, job, view, reservations, READINESS_COMING);
    const struct search possible = reservation_search(core, job, view, reservations, READINESS_POSSIBLE);
    return !fits(&coming) && fit_find(&possible, ret_fit);
}

/* Free nodes that are not ready get ready, and where none is free the ones that the job could have next. */
static enum move plan_staging(struct core *core, const struct job *job,
                              const struct reservations *reservations, struct fit *ret_fit)
{
    if (core->free > 0 && find_to_environment(core, job, VIEW_FREE, reservations, ret_fit)) {
        return MOVE_STAGE;
    }
    const struct search soon = reservation_search(core, job, VIEW_FREE, reservations, READINESS_COMING);
    if (core->free > 0 && fits(&soon)) {
        return MOVE_NONE;
    }
    return find_to_environment(core, job, VIEW_WORKING, NULL, ret_fit) ? MOVE_STAGE : MOVE_NONE;
}

static enum move plan_preemption(struct core *core, const struct queue_entry *entry,
                                 const struct reservations *reservations, struct plan *plan)
{
    const struct job *job = queue_first(entry);
    struct search search = reservation_search(core, job, VIEW_FUTURE, reservations, READINESS_READY);
    search.job = job;
    search.borrow = reservations->borrow;
    if (!preempt_choose(core, entry, &search, &plan->victims, &plan->fit)) {
        return MOVE_NONE;
    }
    return plan->victims.count > 0 ? MOVE_PREEMPT : MOVE_AWAIT;
}

static struct plan plan_for(struct core *core, const struct queue_entry *entry,
                            const struct reservations *reservations)
{
    struct plan plan = {0};
    const struct search ready = search_of(core, entry, reservations);
    const struct job_class *job_class = queue_first(entry)->job_class;
    if (core->free > 0 && fit_find(&ready, &plan.fit)) {
        plan.move = MOVE_PLACE;
        return plan;
    }
    if (preempt_possible(core) && !reservations->borrow) {
        plan.move = plan_preemption(core, entry, reservations, &plan);
    }
    if (plan.move == MOVE_NONE && job_class->environment != NULL) {
        plan.move = plan_staging(core, queue_first(entry), reservations, &plan.fit);
    }
    return plan;
}

/* --- getting ready -------------------------------------------------------------------------------------- */

static bool somewhere(struct core *core, const struct job *job, enum view view, enum readiness readiness)
{
    const struct search search = reservation_search(core, job, view, NULL, readiness);
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (fit_could_hold(&search, partition)) {
            return true;
        }
    }
    return false;
}

static void begin_staging(struct core *core, struct job *job)
{
    struct text nodes = {0};
    staging_list_coming(job->job_class->environment, &nodes);
    const char *detail = record_text(core, "{\"nodes\":%s}", nodes.bytes);
    job_fire(core, job, JOB_EVENT_ENVIRONMENT, detail, NULL);
    text_finish(&nodes);
}

static void end_staging_of(struct core *core, struct job *job, void *closure)
{
    const enum job_event *event = closure;
    if (job->state == JOB_STAGING) {
        job_fire(core, job, *event, NULL, NULL);
    }
}

/* All of them wait for GPUs again: the first job, and those that were first before it came. */
static void end_staging(struct core *core, struct job_class *job_class, enum job_event event)
{
    if (job_class->staging_count > 0) {
        queue_each(core, job_class, end_staging_of, &event);
    }
}

/* Nodes are ready for it, though perhaps busy: all of those over which it would spread. */
static bool is_ready(struct core *core, const struct job *job)
{
    const struct search search = reservation_search(core, job, VIEW_WORKING, NULL, READINESS_READY);
    return somewhere(core, job, VIEW_WORKING, READINESS_READY) &&
           (job->job_class->request.placement != PLACEMENT_SPREAD || fits(&search));
}

/* The state of the first job of a job class says whether it waits for nodes to get ready, or for GPUs. One
 * for which no node can ever get ready ends. */
static void settle(struct core *core, struct job_class *job_class, struct job *job)
{
    if (is_ready(core, job)) {
        end_staging(core, job_class, JOB_EVENT_STAGED);
    } else if (!staging_is_coming(job_class->environment)) {
        end_staging(core, job_class, JOB_EVENT_REQUEUE);
        const char *failure = staging_last_failure(core, job_class->environment);
        if (failure != NULL && !somewhere(core, job, VIEW_REGISTERED, READINESS_EVER)) {
            job_environment_impossible(core, job, failure);
        }
    } else if (job->state == JOB_QUEUED) {
        begin_staging(core, job);
    }
}

/* Others of its job class may be shorter, and fill a gap. */
static void pass_by(struct core *core, struct queue_entry *entry, const struct reservations *reservations)
{
    const struct job *job = queue_first(entry);
    struct job_class *job_class = job->job_class;
    const struct search search = reservation_search(core, job, VIEW_FREE, NULL, READINESS_READY);
    int64_t longest_ms = reservation_gap_ms(core, &search, reservations);
    if (job_class->tries >= LIMIT_BACKFILL_TRIES) {
        queue_close(job_class);
    } else if (core->departing_count > 0) { /* a shorter one may end before a node leaves */
        job_class->tries++;
        queue_skip(entry);
    } else if (longest_ms == 0 || !fits(&search)) {
        queue_close(job_class);
    } else if (entry->estimate_ms > longest_ms) {
        queue_narrow(job_class, longest_ms);
    } else {
        job_class->tries++;
        queue_skip(entry);
    }
}

/* --- the scheduling pass -------------------------------------------------------------------------------- */

/* What a job that is not placed means for the others. Returns when another look is due; NEVER: when something
 * happens. */
static int64_t wait(struct core *core, struct queue_entry *entry, const struct plan *plan,
                    struct reservations *reservations)
{
    int64_t again_ms = NEVER;
    struct job_class *job_class = queue_first(entry)->job_class;
    bool awaits = plan->move == MOVE_AWAIT || plan->move == MOVE_PREEMPT;
    if (is_barred(core, queue_first(entry), reservations->borrow, NULL)) {
        queue_skip_owner(job_class, queue_first(entry));
        return NEVER;
    }
    switch (waiting_of(core)) {
    case WAITING_RESERVES_ALL:
        if (core->free > 0) {
            reserve_all(reservations, core, queue_first(entry));
        }
        queue_close(job_class);
        return NEVER;
    case WAITING_RESERVES:
        if (awaits) {
            reserve_fit(reservations, queue_first(entry), &plan->fit, core->now_ms, true);
        } else if (core->free > 0) {
            again_ms = reserve_start(core, entry, reservations);
        }
        pass_by(core, entry, reservations);
        return again_ms;
    case WAITING_PREEMPTS:
        if (awaits) {
            reserve_fit(reservations, queue_first(entry), &plan->fit, core->now_ms, true);
        }
        queue_close(job_class);
        return NEVER;
    }
    abort();
}

static void place(struct core *core, const struct queue_entry *entry, const struct plan *plan,
                  const struct reservations *reservations)
{
    const struct search search = search_of(core, entry, reservations);
    struct job *job = array_send(core, queue_first(entry));
    reservation_spend(&search, &plan->fit);
    attempt_create(core, job, plan->fit.shares, plan->fit.count, entry->estimate_ms);
    array_sent(core, job);
}

static void carry_out(struct core *core, struct queue_entry *entry, const struct plan *plan,
                      struct reservations *reservations)
{
    struct job *job = queue_first(entry);
    struct job_class *job_class = job->job_class;
    if (plan->move == MOVE_PLACE) {
        place(core, entry, plan, reservations);
        return;
    }
    for (size_t i = 0; plan->move == MOVE_STAGE && i < plan->fit.count; i++) {
        staging_order(core, job_class->environment, plan->fit.shares[i].capacity->node);
    }
    tell(core, job_class, job);
    int64_t again_ms = wait(core, entry, plan, reservations);
    core->again_ms = again_ms < core->again_ms ? again_ms : core->again_ms;
    if (plan->move == MOVE_PREEMPT) {
        preempt_stop(core, entry, &plan->victims);
    } else if (job_class->environment != NULL) {
        settle(core, job_class, job);
    }
}

static bool moves(enum move move)
{
    return move == MOVE_PLACE || move == MOVE_STAGE || move == MOVE_PREEMPT;
}

/* Where running jobs give way, what is placed by an old sort key would at once give way to the next of its
 * kind, whose sort key is a new one. *renewed becomes true when a queue entry has another sort key now: it
 * may come too late. */
static struct queue_entry *next_entry(struct core *core, bool apply, bool *renewed)
{
    struct queue_entry *entry = queue_next(core);
    bool renews = apply && waiting_of(core) == WAITING_PREEMPTS;
    while (renews && entry != NULL && queue_renew(core, entry)) {
        *renewed = true;
        entry = queue_next(core);
    }
    return entry;
}

/* Everybody in turn. apply: what is to be done is done. true: there was something, or a queue entry was
 * renewed. */
static bool visit_queue(struct core *core, struct reservations *reservations, bool apply)
{
    bool moved = false;
    queue_open(core);
    for (struct queue_entry *entry; (entry = next_entry(core, apply, &moved)) != NULL;) {
        struct plan plan = plan_for(core, entry, reservations);
        moved = moved || moves(plan.move);
        if (apply) {
            carry_out(core, entry, &plan, reservations);
        } else {
            wait(core, entry, &plan, reservations);
        }
        plan_finish(&plan);
    }
    return moved;
}

/* First those who are entitled to what they get, then, of what these leave, those who borrow it. So nobody
 * takes anew what it has just given back. */
static bool visit_twice(struct core *core, bool apply)
{
    struct reservations reservations;
    reservations_begin(&reservations, core);
    reservations.trial = !apply;
    bool moved = visit_queue(core, &reservations, apply);
    reservations.borrow = true;
    if (account_any_limited(core)) {
        moved = visit_queue(core, &reservations, apply) || moved;
    }
    reservations_end(&reservations);
    return moved;
}

/* One look at all that wait; true: another is due, for what was done may be what an earlier job would have
 * got ready, have changed what is reserved, or have brought that job to a limit of its accounts. */
static bool run_pass(struct core *core)
{
    bool settled = waiting_of(core) == WAITING_RESERVES_ALL && !account_any_limited(core);
    return visit_twice(core, true) &&
           (!settled || HASH_COUNT(core->environments) > core->idle_environment_count);
}

void place_pass(struct core *core)
{
    core->look_ms = core->now_ms;
    queue_refresh(core);
    do {
        core->again_ms = NEVER;
        array_queue_due(core);
    } while (run_pass(core) || core->due_arrays != NULL);
    deadline_note(core, core->again_ms);
    core->place_wanted = false;
}

bool place_would(struct core *core)
{
    return visit_twice(core, false);
}

/* --- what it would do for one job ----------------------------------------------------------------------- */

/* true: the job's turn has come, and what would be done for it is known. */
static bool consider(struct core *core, const struct job *job, struct outlook *outlook)
{
    const struct queue_entry own = queue_entry_of(core, job);
    queue_open(core);
    for (struct queue_entry *entry; (entry = queue_next(core)) != NULL;) {
        bool reached = queue_first(entry) == job;
        if (!reached && queue_before(&own, entry)) {
            return false; /* it was skipped with its job class, or is not the first of its kind */
        }
        struct plan plan = plan_for(core, entry, &outlook->reservations);
        enum move move = plan.move;
        if (!reached) {
            wait(core, entry, &plan, &outlook->reservations);
        }
        plan_finish(&plan);
        if (reached) {
            outlook->reached = true;
            outlook->move = move;
            return move != MOVE_NONE;
        }
        outlook->unsettled = outlook->unsettled || moves(move);
    }
    return false;
}

void place_consider(struct core *core, const struct job *job, struct outlook *ret_outlook)
{
    *ret_outlook = (struct outlook){0};
    reservations_begin(&ret_outlook->reservations, core);
    ret_outlook->reservations.trial = true;
    if (!consider(core, job, ret_outlook) && account_any_limited(core)) {
        ret_outlook->reservations.borrow = true;
        consider(core, job, ret_outlook);
    }
}

void outlook_finish(struct outlook *outlook)
{
    reservations_end(&outlook->reservations);
}

int64_t place_gap_ms(struct core *core, const struct job *job, const struct reservations *reservations)
{
    const struct search search = reservation_search(core, job, VIEW_FREE, NULL, READINESS_READY);
    return reservation_gap_ms(core, &search, reservations);
}

bool place_reserves_all(const struct core *core)
{
    return waiting_of(core) == WAITING_RESERVES_ALL;
}

/* --- what is possible at all ---------------------------------------------------------------------------- */

int64_t place_largest(struct core *core, const struct resource_request *request,
                      const struct partition **ret_partition)
{
    const struct search search = fit_search(core, request, VIEW_REGISTERED, NULL);
    const struct partition *best = NULL;
    int64_t largest = 0;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        int64_t here = fit_allowed(&search, partition) ? fit_largest(&search, partition) : 0;
        if (here > largest) {
            largest = here;
            best = partition;
        }
    }
    if (ret_partition != NULL) {
        *ret_partition = best;
    }
    return largest;
}

int64_t place_job_class_largest(struct core *core, struct job_class *job_class)
{
    if (job_class->registry != core->registry) {
        job_class->registry = core->registry;
        job_class->largest = place_largest(core, &job_class->request, NULL);
    }
    return job_class->largest;
}
