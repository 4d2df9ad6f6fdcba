/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the look ahead: the order in which running work is expected to end, and when a gang will fit. It
 * promises to look at what ends first first, and at no more of it than it needs. How good the estimates are
 * is history.c's. */
#include "daemon/core/horizon.h"

#include "daemon/core/attempt.h"
#include "daemon/core/fit.h"
#include "daemon/core/node.h"
#include "daemon/core/state.h"

#define LEAST_MS 1000 /* that one which should have ended is given */

/* --- one attempt ------------------------------------------------------------------------------------- */

const struct group *horizon_group(const struct attempt *attempt)
{
    const struct member *member = attempt->members[0];
    const struct seat *seat = node_seat(member->node, member->devices[0]);
    return seat->stock != NULL ? seat->stock->group : NULL;
}

int64_t horizon_ran_ms(const struct core *core, const struct attempt *attempt)
{
    int64_t ran_ms = attempt->started_ms != 0 ? core->wall_ms - attempt->started_ms : 0;
    return ran_ms > 0 ? ran_ms : 0;
}

static int64_t rest_of(const struct core *core, const struct attempt *attempt)
{
    const struct job *job = attempt->job;
    int64_t ran_ms = horizon_ran_ms(core, attempt);
    int64_t rest_ms = attempt->estimate_ms - ran_ms;
    if (rest_ms <= 0) {
        rest_ms = ran_ms / 2 > LEAST_MS ? ran_ms / 2 : LEAST_MS;
    }
    int64_t allowed_ms = job->time_limit_ms - ran_ms;
    bool limited = job->time_limit_ms > 0 && allowed_ms < rest_ms;
    return limited ? (allowed_ms > LEAST_MS ? allowed_ms : LEAST_MS) : rest_ms;
}

int64_t horizon_end_ms(const struct core *core, const struct attempt *attempt)
{
    bool ends = attempt->state == ATTEMPT_STOPPING || attempt->state == ATTEMPT_FLUSHING;
    return core->now_ms + (ends ? LEAST_MS : rest_of(core, attempt));
}

/* --- what is free ------------------------------------------------------------------------------------ */

void horizon_begin(const struct search *search)
{
    for (struct group *group = search->core->groups; group != NULL; group = group->next) {
        group->coming = group->free;
        for (size_t i = 0; i < group->count && fit_open(search, group); i++) {
            group->stocks[i]->coming = group->stocks[i]->free;
        }
    }
}

static void release(struct seat *seat, int64_t count)
{
    if (seat->stock != NULL) {
        seat->stock->coming += count;
        seat->stock->group->coming += count;
    }
}

void horizon_release(const struct attempt *attempt, bool free)
{
    for (size_t i = 0; i < attempt->member_count; i++) {
        const struct member *member = attempt->members[i];
        for (size_t j = 0; j < member->device_count; j++) {
            release(node_seat(member->node, member->devices[j]), free ? 1 : -1);
        }
    }
}

/* --- the look ahead ---------------------------------------------------------------------------------- */

struct end {
    int64_t at_ms;
    const struct attempt *attempt;
};

struct ends {
    struct end *items; /* a heap: the first ends first; owned */
    size_t count;
};

static bool sooner(const struct end *a, const struct end *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->attempt->epoch < b->attempt->epoch;
}

static void sift(struct ends *ends, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < ends->count; child++) {
            least = sooner(&ends->items[child], &ends->items[least]) ? child : least;
        }
        if (least == at) {
            return;
        }
        struct end kept = ends->items[at];
        ends->items[at] = ends->items[least];
        ends->items[least] = kept;
        at = least;
    }
}

static struct end take_first(struct ends *ends)
{
    struct end first = ends->items[0];
    ends->items[0] = ends->items[--ends->count];
    sift(ends, 0);
    return first;
}

/* Those whose devices the search could use. */
static struct ends ends_of(const struct search *search)
{
    const struct core *core = search->core;
    size_t room = 0;
    for (const struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        room++;
    }
    struct ends ends = {.items = xalloc((room + 1) * sizeof *ends.items)};
    for (const struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        const struct group *group = horizon_group(attempt);
        if (group != NULL && fit_open(search, group)) {
            ends.items[ends.count++] = (struct end){horizon_end_ms(core, attempt), attempt};
        }
    }
    for (size_t i = ends.count / 2; i > 0; i--) {
        sift(&ends, i - 1);
    }
    return ends;
}

static bool enough(const struct search *search)
{
    for (const struct group *group = search->core->groups; group != NULL; group = group->next) {
        if (group->coming >= search->wish->gpus && fit_open(search, group)) {
            return true;
        }
    }
    return false;
}

bool horizon_find(const struct search *search, int64_t *ret_at_ms, struct fit *ret_fit)
{
    struct ends ends = ends_of(search);
    horizon_begin(search);
    bool found = false;
    int64_t at_ms = search->core->now_ms;
    for (size_t seen = 0, next = 0; !found;) {
        if (seen >= next && enough(search)) {
            found = fit_find(search, ret_fit);
            next = seen + seen / 8 + 1;
        }
        if (found || ends.count == 0) {
            break;
        }
        do {
            struct end end = take_first(&ends);
            at_ms = end.at_ms;
            horizon_release(end.attempt, true);
            seen++;
        } while (ends.count > 0 && ends.items[0].at_ms == at_ms);
        next = ends.count == 0 ? seen : next; /* the last look is not left out */
    }
    free(ends.items);
    *ret_at_ms = at_ms;
    return found;
}
