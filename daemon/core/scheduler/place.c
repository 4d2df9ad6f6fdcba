/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the queue in order and places each job, or keeps it waiting as the policy
 * says and makes its reservations. A gang gets all its devices or none. Nodes stage for a job before it holds
 * any of their devices. A waiting job is not passed over forever: it reserves everything that it could use
 * (fifo, sjf), or has a reservation that shorter jobs may run before but not delay (easy, default). queue.c
 * orders the jobs, fit.c chooses devices, and pass.c decides when and how far to walk. */
#include "daemon/core/scheduler/place.h"

#include "daemon/core/fleet/locality.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/lifecycle/array.h"
#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/queue/turn.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/scheduler/fit.h"
#include "daemon/core/scheduler/preempt.h"
#include "daemon/core/scheduler/reservation.h"
#include "proto/limits_controller.h"

/* The effect of a job that does not fit on the jobs behind it. */
enum waiting {
    WAITING_RESERVES_ALL, /* reserves all that it could use */
    WAITING_RESERVES,     /* reserves the devices that it will get */
    WAITING_PREEMPTS,     /* preempts running jobs, or is skipped */
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

/* Whether the job is kept from all devices that it could ever have, by limits of its accounts (ret_limit says
 * which) or because it could only borrow them. */
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

/* Traces once why the first job of a job class waits. */
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
    const char *reservations = most >= job_class->request.units ? ", kept for earlier jobs" : "";
    trace_line(core, "job %s waits: %lld wanted, %lld free%s", job->id, (long long)job_class->request.units,
               (long long)most, reservations);
}

/* --- plans for a job ------------------------------------------------------------------------------------ */

struct plan {
    enum move move;
    struct fit fit;
    struct victims victims;
    bool stuck; /* more nodes would have to stage, and none can */
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

/* Chooses nodes that should stage: those that were ready before, where these can hold the gang; of others
 * that are equal otherwise, those that have parts of the environment. */
static bool find_stagers(const struct job *job, const struct search *possible, struct fit *ret_fit)
{
    const struct environment *environment = job->job_class->environment;
    struct search known = *possible, any = *possible;
    known.readiness = READINESS_KNOWN;
    any.locality = locality_is_known(environment);
    return (environment != NULL && environment->unpinned && fit_find(&known, ret_fit)) ||
           fit_find(&any, ret_fit);
}

/* Finds nodes that should stage for the job class. None are needed while enough others are ready or
 * staging. */
static enum move plan_staging_ahead(struct core *core, const struct job *job, struct plan *plan)
{
    const struct search coming = reservation_search(core, job, VIEW_WORKING, NULL, READINESS_COMING);
    const struct search possible = reservation_search(core, job, VIEW_WORKING, NULL, READINESS_POSSIBLE);
    if (fits(&coming)) {
        return MOVE_NONE;
    }
    plan->stuck = !find_stagers(job, &possible, &plan->fit);
    return plan->stuck ? MOVE_NONE : MOVE_STAGE;
}

/* Whether free devices could be of nodes with this readiness for the job class. */
static bool may_fit(const struct core *core, const struct job_class *job_class, enum readiness readiness)
{
    const struct environment *environment = job_class->environment;
    return core_free(core) > 0 &&
           (core->turns.all || environment == NULL || staging_has_free(environment, readiness));
}

/* Chooses free nodes that are not ready; if none is free, the nodes that the job could get next. Free nodes
 * stage for as many jobs as their devices could hold. */
static enum move plan_staging(struct core *core, const struct job *job, struct reservations *reservations,
                              struct plan *plan)
{
    const struct search soon = reservation_search(core, job, VIEW_FREE, reservations, READINESS_COMING);
    const struct search possible = reservation_search(core, job, VIEW_FREE, reservations, READINESS_POSSIBLE);
    bool coming = may_fit(core, job->job_class, READINESS_COMING) && fits(&soon);
    bool wanted = !coming && core_free(core) > reservations->staged;
    if (coming || (wanted && find_stagers(job, &possible, &plan->fit))) {
        reservations->staged += job->job_class->request.units;
        bool wider = coming && job->job_class->whole && job->job_class->request.placement == PLACEMENT_SPREAD;
        return wider    ? plan_staging_ahead(core, job, plan) /* over nodes that others have now, too */
               : coming ? MOVE_NONE
                        : MOVE_STAGE;
    }
    return job->job_class->whole ? plan_staging_ahead(core, job, plan) : MOVE_NONE;
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
                            struct reservations *reservations)
{
    struct plan plan = {0};
    const struct search ready = search_of(core, entry, reservations);
    const struct job_class *job_class = queue_first(entry)->job_class;
    if (may_fit(core, job_class, READINESS_READY) && fit_find(&ready, &plan.fit)) {
        plan.move = MOVE_PLACE;
        return plan;
    }
    if (preempt_possible(core) && !reservations->borrow) {
        plan.move = plan_preemption(core, entry, reservations, &plan);
    }
    if (plan.move == MOVE_NONE && job_class->environment != NULL) {
        plan.move = plan_staging(core, queue_first(entry), reservations, &plan);
    }
    return plan;
}

/* --- staging -------------------------------------------------------------------------------------------- */

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

/* Lets all jobs of the class in STAGING wait for GPUs again: the first job, and earlier first jobs. */
static void end_staging(struct core *core, struct job_class *job_class, enum job_event event)
{
    if (job_class->staging_count > 0) {
        queue_each(core, job_class, end_staging_of, &event);
    }
}

/* Whether nodes are ready for the job, though perhaps busy: all nodes over which it would spread. */
static bool is_ready(struct core *core, const struct job *job)
{
    const struct search search = reservation_search(core, job, VIEW_WORKING, NULL, READINESS_READY);
    return somewhere(core, job, VIEW_WORKING, READINESS_READY) &&
           (job->job_class->request.placement != PLACEMENT_SPREAD || fits(&search));
}

/* Sets the state of the first job of a job class: waiting for staging, or for GPUs. A job that no node can
 * ever stage for ends. */
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

/* Whether limits keep the job from some of the devices that its job class may have. */
static bool is_narrowed(struct core *core, const struct job *job)
{
    if (!account_any_limited(core)) {
        return false;
    }
    const struct search search = fit_search(core, &job->job_class->request, VIEW_REGISTERED, NULL);
    const struct partition *partition = core->partitions;
    while (partition != NULL &&
           (!fit_allowed(&search, partition) || account_may_run(core, job, partition, NULL))) {
        partition = partition->next;
    }
    return partition != NULL;
}

/* What keeps the job from its devices keeps all of its job class from them; or, where it is the limits of its
 * accounts, those that are of the same. */
static void close_turn(struct core *core, const struct job *job)
{
    if (is_narrowed(core, job)) {
        turn_skip_owner(core, job->job_class, job);
    } else {
        turn_close(core, job->job_class);
    }
}

/* Skips as few jobs of the job class as possible: others may be shorter and fill a gap. */
static void pass_by(struct core *core, struct queue_entry *entry, const struct reservations *reservations)
{
    const struct job *job = queue_first(entry);
    struct job_class *job_class = job->job_class;
    const struct search search = reservation_search(core, job, VIEW_FREE, NULL, READINESS_READY);
    int64_t longest_ms = reservation_gap_ms(core, &search, reservations);
    if (job_class->tries >= LIMIT_BACKFILL_TRIES) {
        close_turn(core, job);
    } else if (core->departing_count > 0) { /* a shorter one may end before a node leaves */
        job_class->tries++;
        turn_skip(core, entry);
    } else if (longest_ms == 0 || !fits(&search)) {
        close_turn(core, job);
    } else if (entry->estimate_ms > longest_ms) {
        turn_narrow(core, job_class, longest_ms);
    } else {
        job_class->tries++;
        turn_skip(core, entry);
    }
}

/* --- walks over the queue --------------------------------------------------------------------------------
 */

/* Whether enough devices for a job are of nodes that are ready for it. */
static bool is_ready_for_all(const struct job_class *job_class)
{
    return job_class->environment == NULL ||
           staging_ready_devices(job_class->environment) >= job_class->request.units;
}

/* Applies the effect of a job that is not placed on the others. Returns when another look is due; NEVER: only
 * after an event. */
static int64_t wait(struct core *core, struct queue_entry *entry, const struct plan *plan,
                    struct reservations *reservations)
{
    int64_t again_ms = NEVER;
    struct job_class *job_class = queue_first(entry)->job_class;
    bool awaits = plan->move == MOVE_AWAIT || plan->move == MOVE_PREEMPT;
    if (is_barred(core, queue_first(entry), reservations->borrow, NULL)) {
        turn_skip_owner(core, job_class, queue_first(entry));
        return NEVER;
    }
    switch (waiting_of(core)) {
    case WAITING_RESERVES_ALL:
        if (may_fit(core, job_class, READINESS_READY) && is_ready_for_all(job_class)) {
            reserve_all(reservations, core, queue_first(entry));
        }
        close_turn(core, queue_first(entry));
        return NEVER;
    case WAITING_RESERVES:
        if (awaits) {
            reserve_fit(reservations, queue_first(entry), &plan->fit, core->now_ms, true);
        } else if (core_free(core) > 0 && is_ready_for_all(job_class)) {
            again_ms = reserve_start(core, entry, reservations);
        }
        pass_by(core, entry, reservations);
        return again_ms;
    case WAITING_PREEMPTS:
        if (awaits) {
            reserve_fit(reservations, queue_first(entry), &plan->fit, core->now_ms, true);
        }
        close_turn(core, queue_first(entry));
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
    bool whole = job_class->whole;
    tell(core, job_class, job);
    int64_t again_ms = wait(core, entry, plan, reservations);
    core->look_again_ms = again_ms < core->look_again_ms ? again_ms : core->look_again_ms;
    if (plan->move == MOVE_PREEMPT) {
        preempt_stop(core, entry, &plan->victims);
    } else if (job_class->environment != NULL && whole) {
        settle(core, job_class, job);
    }
}

static bool moves(enum move move)
{
    return move == MOVE_PLACE || move == MOVE_STAGE || move == MOVE_PREEMPT;
}

/* If running jobs can be preempted, a job placed by an outdated sort key would at once be preempted by the
 * next equal job, whose sort key is new. So entries are renewed first. *renewed: an entry has a new sort key
 * and may now belong later. */
static struct queue_entry *next_entry(struct core *core, bool apply, bool *renewed)
{
    struct queue_entry *entry = turn_next(core);
    bool renews = apply && waiting_of(core) == WAITING_PREEMPTS;
    while (renews && entry != NULL && turn_renew(core, entry)) {
        *renewed = true;
        entry = turn_next(core);
    }
    return entry;
}

/* Whether settled job classes need no visit once their family is closed: nothing then depends on time alone,
 * and no job makes others give way. */
static bool may_close(const struct core *core)
{
    return core->departing_count == 0 && !preempt_possible(core);
}

/* Whether a job of the family could still reserve its start, if it were ready on all nodes. */
static bool may_reserve(const struct core *core, const struct search *search)
{
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (partition->free > 0 && search->reservations->until_ms[partition->index] == 0 &&
            fit_allowed(search, partition)) {
            return true;
        }
    }
    return false;
}

/* Whether the entry could not be placed even if all nodes were ready. Then neither can longer jobs of its
 * family. */
static bool is_in_vain(struct core *core, const struct queue_entry *entry, const struct search *search)
{
    const struct job *job = queue_first(entry);
    struct job_family *family = job->job_class->family;
    int64_t limit_ms = job->time_limit_ms > 0 ? job->time_limit_ms : NEVER;
    if (turn_is_hopeless(core, family, entry->estimate_ms, limit_ms)) {
        return true;
    }
    if (core_free(core) > 0 && fits(search)) {
        return false;
    }
    turn_note_hopeless(core, family, entry->estimate_ms, limit_ms);
    return true;
}

/* Whether the entry needs more than a look at what is free: an environment that was not considered, or a line
 * in the trace. */
static bool is_new(const struct core *core, const struct queue_entry *entry)
{
    const struct job *job = queue_first(entry);
    const struct job_class *job_class = job->job_class;
    return (job_class->whole && job_class->environment != NULL) ||
           (core->trace != NULL && job_class->told_key != job->key);
}

/* Closes the family of an entry if no more jobs of it can be placed, but those that are ready on free
 * devices. Where a waiting job reserves all that it could use, these come in any case. */
static void close_family(struct core *core, const struct queue_entry *entry, bool vain, bool spent)
{
    struct job_family *family = queue_first(entry)->job_class->family;
    if (vain ? !turn_all_hopeless(core, family) : !spent) {
        return;
    }
    if (!vain || waiting_of(core) == WAITING_RESERVES_ALL) {
        turn_add_ready(core);
    }
    turn_close_family(core, family);
}

/* Skips an entry that cannot be placed, make a reservation or have nodes staged, and all others of its family
 * of which that is known, too. false: it has to be visited. */
static bool skip_in_vain(struct core *core, const struct queue_entry *entry,
                         const struct reservations *reservations)
{
    struct job_class *job_class = queue_first(entry)->job_class;
    bool reserves_all = waiting_of(core) == WAITING_RESERVES_ALL;
    bool ready = may_fit(core, job_class, READINESS_READY);
    bool spent = reservations->staged >= core_free(core); /* no free node stages for a job from here on */
    struct search search = search_of(core, entry, reservations);
    search.environment = NULL;
    search.job = NULL;
    search.borrow = true;
    if (core->turns.all || (!reserves_all && may_reserve(core, &search))) {
        return false;
    }
    bool vain = is_in_vain(core, entry, &search);
    close_family(core, entry, vain, spent);
    if (is_new(core, entry) || (reserves_all && ready) || (!vain && (ready || !spent))) {
        return false;
    }
    if (vain) {
        turn_skip_hopeless(core, job_class);
    } else {
        turn_close(core, job_class);
    }
    return true;
}

static void visit(struct core *core, struct queue_entry *entry, struct reservations *reservations, bool apply,
                  bool *moved)
{
    if (skip_in_vain(core, entry, reservations)) {
        return;
    }
    struct plan plan = plan_for(core, entry, reservations);
    *moved = *moved || (moves(plan.move) && (apply || plan.move != MOVE_STAGE || !core->pass_in_parts));
    if (apply) {
        if (plan.move == MOVE_NONE || plan.move == MOVE_STAGE) {
            turn_consider(core, queue_first(entry)->job_class, plan.stuck);
        }
        carry_out(core, entry, &plan, reservations);
    } else {
        wait(core, entry, &plan, reservations);
    }
    plan_finish(&plan);
}

bool place_walk(struct walk *walk)
{
    struct core *core = walk->core;
    turn_open(core, !walk->apply || !may_close(core), walk->from);
    bool one = false;
    for (struct queue_entry *entry; (entry = next_entry(core, walk->apply, &walk->moved)) != NULL;) {
        if (one && core->pass_work >= walk->most) {
            walk->reached = *entry;
            walk->reached.batch = NULL;
            return false;
        }
        one = true;
        core->pass_work += PASS_VISIT_WORK;
        visit(core, entry, walk->reservations, walk->apply, &walk->moved);
        if (turn_is_spent(core)) {
            return true;
        }
    }
    return true;
}

/* true: there would be a move. */
static bool walk_all(struct core *core, struct reservations *reservations)
{
    reservations_begin(reservations, core);
    reservations->trial = true;
    struct walk all = {.core = core, .reservations = reservations, .most = NEVER};
    place_walk(&all);
    reservations->borrow = true;
    if (account_any_limited(core)) {
        place_walk(&all);
    }
    return all.moved;
}

bool place_would(struct core *core)
{
    struct reservations reservations;
    bool moved = walk_all(core, &reservations);
    reservations_end(&reservations);
    return moved;
}

void place_reserve(struct core *core, struct reservations *ret_reservations)
{
    walk_all(core, ret_reservations);
}

/* --- dry run for one job -------------------------------------------------------------------------------- */

/* true: the pass reaches the job, and its move is known. */
static bool consider(struct core *core, const struct job *job, struct outlook *outlook)
{
    const struct queue_entry own = queue_entry_of(core, job);
    turn_open(core, true, NULL);
    for (struct queue_entry *entry; (entry = turn_next(core)) != NULL;) {
        bool reached = queue_first(entry) == job;
        if (!reached && queue_before(&own, entry)) {
            return false; /* it was skipped with its job class, or is not the first of its batch */
        }
        core->pass_work += PASS_VISIT_WORK;
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
