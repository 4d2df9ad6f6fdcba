/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the policy: strict first in, first out, all or nothing. It promises that the first job of each lane is
 * looked at in order of submission; that one which does not fit keeps the nodes it could use from all later
 * jobs; that nodes get ready for a job before it holds any of their devices; and that a pass costs lanes
 * times nodes, whatever the queue's length. Which devices a job gets is left to fit.c. */
#include "daemon/core/place.h"

#include "daemon/core/attempt.h"
#include "daemon/core/fit.h"
#include "daemon/core/job.h"
#include "daemon/core/queue.h"
#include "daemon/core/record.h"
#include "daemon/core/staging.h"
#include "daemon/core/state.h"
#include "daemon/core/trace.h"

/* --- the pass ---------------------------------------------------------------------------------------- */

static void kept_init(struct kept *kept, const struct core *core)
{
    size_t groups = core->groups != NULL ? core->groups->prev->index + 1 : 0;
    kept->groups = xzalloc(groups + core->node_count);
    kept->nodes = kept->groups + groups;
}

static void kept_finish(struct kept *kept)
{
    free(kept->groups);
}

/* The search for a lane, on nodes that are as ready as that. */
static struct search search_for(const struct core *core, const struct lane *lane, enum view view,
                                const struct kept *kept, enum readiness readiness)
{
    struct search search = fit_search(core, &lane->wish, view, kept);
    search.stage = lane->stage;
    search.readiness = readiness;
    return search;
}

static bool could_hold(const struct search *search, const struct group *group)
{
    int64_t gpus = search->wish->gpus;
    return fit_allowed(search, group) && group->total >= gpus && fit_largest(search, group) >= gpus;
}

static void keep_nodes(struct kept *kept, const struct search *search, const struct group *group)
{
    const struct wish *wish = search->wish;
    for (size_t i = 0; i < group->count; i++) {
        const struct stock *stock = group->stocks[i];
        bool alone = wish->host_id == NULL || stock->total >= wish->gpus;
        if (fit_host_allowed(wish, stock) && alone &&
            staging_allows(search->stage, stock->node, search->readiness)) {
            kept->nodes[stock->node->index] = 1;
        }
    }
}

/* Keeps the nodes that a waiting job could use from the jobs behind it. Nodes that take no work now, or are
 * not ready for it, cannot make a job possible: one that waits for them holds up nobody. */
static void keep_for(struct kept *kept, const struct core *core, const struct lane *lane)
{
    const struct search search = search_for(core, lane, VIEW_WORKING, NULL, READINESS_READY);
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        bool open = group->free > 0 && !kept->groups[group->index]; /* else nobody can take from it anyway */
        if (!open || !could_hold(&search, group)) {
            continue;
        }
        if (lane->wish.host_id != NULL || lane->stage != NULL) {
            keep_nodes(kept, &search, group);
        } else {
            kept->groups[group->index] = 1;
        }
    }
}

/* Says once why the first job of a lane waits. */
static void tell(const struct core *core, struct lane *lane)
{
    if (core->trace == NULL || lane->told_key == lane->jobs->key) {
        return;
    }
    lane->told_key = lane->jobs->key;
    const struct search search = fit_search(core, &lane->wish, VIEW_FREE, NULL);
    int64_t most = 0;
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        int64_t free_now = fit_allowed(&search, group) ? fit_largest(&search, group) : 0;
        most = free_now > most ? free_now : most;
    }
    const char *kept = most >= lane->wish.gpus ? ", kept for earlier jobs" : "";
    trace_line(core, "job %s waits: %lld wanted, %lld free%s", lane->jobs->id, (long long)lane->wish.gpus,
               (long long)most, kept);
}

/* --- one lane ---------------------------------------------------------------------------------------- */

enum move {
    MOVE_NONE,
    MOVE_PLACE, /* the first job gets these devices */
    MOVE_STAGE, /* these nodes are to get ready for it */
};

static bool fits(const struct search *search)
{
    struct fit fit;
    bool found = fit_find(search, &fit);
    free(fit.shares);
    return found;
}

/* Nodes on which the lane could be placed once they are ready: not needed while enough others are, or get
 * ready. */
static bool find_to_stage(const struct core *core, const struct lane *lane, enum view view,
                          const struct kept *kept, struct fit *ret_fit)
{
    const struct search coming = search_for(core, lane, view, kept, READINESS_COMING);
    const struct search possible = search_for(core, lane, view, kept, READINESS_POSSIBLE);
    *ret_fit = (struct fit){0};
    return !fits(&coming) && fit_find(&possible, ret_fit);
}

/* What is to be done for the first job of a lane. Free nodes that are not ready get ready, and where none is
 * free the ones that the job could have next. The caller frees the shares of the fit. */
static enum move next_move(const struct core *core, const struct lane *lane, const struct kept *kept,
                           struct fit *ret_fit)
{
    const struct search ready = search_for(core, lane, VIEW_FREE, kept, READINESS_READY);
    *ret_fit = (struct fit){0};
    if (core->free > 0 && fit_find(&ready, ret_fit)) {
        return MOVE_PLACE;
    }
    if (lane->stage == NULL) {
        return MOVE_NONE;
    }
    if (core->free > 0 && find_to_stage(core, lane, VIEW_FREE, kept, ret_fit)) {
        return MOVE_STAGE;
    }
    const struct search soon = search_for(core, lane, VIEW_FREE, kept, READINESS_COMING);
    if (core->free > 0 && fits(&soon)) {
        return MOVE_NONE;
    }
    return find_to_stage(core, lane, VIEW_WORKING, NULL, ret_fit) ? MOVE_STAGE : MOVE_NONE;
}

static bool somewhere(const struct core *core, const struct lane *lane, enum view view,
                      enum readiness readiness)
{
    const struct search search = search_for(core, lane, view, NULL, readiness);
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        if (could_hold(&search, group)) {
            return true;
        }
    }
    return false;
}

static void begin_staging(struct core *core, struct job *job)
{
    struct text nodes = {0};
    staging_list_coming(job->lane->stage, &nodes);
    const char *detail = record_text(core, "{\"nodes\":%s}", nodes.bytes);
    job_fire(core, job, JOB_EVENT_STAGE, detail, NULL);
    text_finish(&nodes);
}

/* All of them wait for GPUs again: the first job, and those that were first before it came. */
static void end_staging(struct core *core, struct lane *lane, enum job_event event)
{
    for (struct job *job = lane->jobs; job != NULL && lane->staging_count > 0; job = job->next) {
        if (job->state == JOB_STAGING) {
            job_fire(core, job, event, NULL, NULL);
        }
    }
}

/* The state of the first job of a lane says whether it waits for nodes to get ready, or for GPUs. One for
 * which no node can ever get ready ends. */
static void settle(struct core *core, struct lane *lane)
{
    struct job *job = lane->jobs;
    if (somewhere(core, lane, VIEW_WORKING, READINESS_READY)) {
        end_staging(core, lane, JOB_EVENT_STAGED);
    } else if (!staging_is_coming(lane->stage)) {
        end_staging(core, lane, JOB_EVENT_REQUEUE);
        const char *failure = staging_last_failure(core, lane->stage);
        if (failure != NULL && !somewhere(core, lane, VIEW_REGISTERED, READINESS_EVER)) {
            job_stage_impossible(core, job, failure);
        }
    } else if (job->state == JOB_QUEUED) {
        begin_staging(core, job);
    }
}

/* Where to go on; *moved: something was done that may change what earlier lanes need. */
static struct lane *work_lane(struct core *core, struct lane *lane, struct kept *kept, bool *moved)
{
    struct job *job = lane->jobs;
    int64_t key = job->key;
    struct fit fit;
    enum move move = next_move(core, lane, kept, &fit);
    *moved = *moved || move != MOVE_NONE;
    if (move == MOVE_PLACE) {
        attempt_create(core, job, fit.shares, fit.count);
        free(fit.shares);
        return queue_after(core, key);
    }
    for (size_t i = 0; i < fit.count; i++) {
        staging_order(core, lane->stage, fit.shares[i].stock->node);
    }
    free(fit.shares);
    tell(core, lane);
    if (core->free > 0) {
        keep_for(kept, core, lane);
    }
    if (lane->stage == NULL) {
        return lane->next;
    }
    settle(core, lane);
    return queue_after(core, key);
}

/* One look at all lanes; true: another is due, for what was placed may be what an earlier job would have got
 * ready. */
static bool look_around(struct core *core)
{
    struct kept kept;
    kept_init(&kept, core);
    bool moved = false;
    for (struct lane *lane = core->lanes; lane != NULL;) {
        lane = work_lane(core, lane, &kept, &moved);
    }
    kept_finish(&kept);
    return moved && HASH_COUNT(core->stages) > core->idle_stage_count;
}

void place_pass(struct core *core)
{
    while (look_around(core)) {
    }
    core->place_wanted = false;
}

bool place_would(const struct core *core)
{
    struct kept kept;
    kept_init(&kept, core);
    bool would = false;
    for (const struct lane *lane = core->lanes; lane != NULL && !would; lane = lane->next) {
        struct fit fit;
        would = next_move(core, lane, &kept, &fit) != MOVE_NONE;
        free(fit.shares);
        keep_for(&kept, core, lane);
    }
    kept_finish(&kept);
    return would;
}

/* --- what is possible at all ------------------------------------------------------------------------- */

int64_t place_largest(const struct core *core, const struct wish *wish, const struct group **ret_group)
{
    const struct search search = fit_search(core, wish, VIEW_REGISTERED, NULL);
    const struct group *best = NULL;
    int64_t largest = 0;
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        int64_t here = fit_allowed(&search, group) ? fit_largest(&search, group) : 0;
        if (here > largest) {
            largest = here;
            best = group;
        }
    }
    if (ret_group != NULL) {
        *ret_group = best;
    }
    return largest;
}

int64_t place_lane_largest(const struct core *core, struct lane *lane)
{
    if (lane->registry != core->registry) {
        lane->registry = core->registry;
        lane->largest = place_largest(core, &lane->wish, NULL);
    }
    return lane->largest;
}
