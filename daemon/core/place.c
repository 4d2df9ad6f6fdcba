/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the policy: strict first in, first out, all or nothing. It promises that the first job of each lane is
 * looked at in order of submission; that one which does not fit keeps the nodes it could use from all later
 * jobs; and that a pass costs lanes times nodes, whatever the queue's length. Which devices a job gets is
 * left to fit.c. */
#include "daemon/core/place.h"

#include "daemon/core/attempt.h"
#include "daemon/core/fit.h"
#include "daemon/core/queue.h"
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

static void keep_host(struct kept *kept, const struct wish *wish, const struct group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct stock *stock = group->stocks[i];
        if (fit_host_allowed(wish, stock) && stock->total >= wish->gpus) {
            kept->nodes[stock->node->index] = 1;
        }
    }
}

/* Keeps the nodes that a waiting job could use from the jobs behind it. Nodes that take no work now cannot
 * make a job possible: one that waits for them holds up nobody. */
static void keep_for(struct kept *kept, const struct core *core, const struct wish *wish)
{
    const struct search search = fit_search(core, wish, VIEW_WORKING, NULL);
    for (const struct group *group = core->groups; group != NULL; group = group->next) {
        bool open = group->free > 0 && !kept->groups[group->index]; /* else nobody can take from it anyway */
        if (!open || !fit_allowed(&search, group) || group->total < wish->gpus ||
            fit_largest(&search, group) < wish->gpus) {
            continue;
        }
        if (wish->host_id != NULL) {
            keep_host(kept, wish, group);
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

void place_pass(struct core *core)
{
    struct kept kept;
    kept_init(&kept, core);
    for (struct lane *lane = core->lanes; lane != NULL;) {
        struct job *job = lane->jobs;
        int64_t key = job->key;
        const struct search search = fit_search(core, &lane->wish, VIEW_FREE, &kept);
        struct fit fit;
        if (core->free > 0 && fit_find(&search, &fit)) {
            attempt_create(core, job, fit.shares, fit.count);
            free(fit.shares);
            lane = queue_after(core, key);
        } else {
            tell(core, lane);
            if (core->free > 0) {
                keep_for(&kept, core, &lane->wish);
            }
            lane = lane->next;
        }
    }
    kept_finish(&kept);
    core->place_wanted = false;
}

bool place_would(const struct core *core)
{
    struct kept kept;
    kept_init(&kept, core);
    bool would = false;
    for (const struct lane *lane = core->lanes; lane != NULL && !would; lane = lane->next) {
        const struct search search = fit_search(core, &lane->wish, VIEW_FREE, &kept);
        struct fit fit;
        would = fit_find(&search, &fit);
        free(fit.shares);
        keep_for(&kept, core, &lane->wish);
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
