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

int64_t horizon_held_ms(const struct core *core, const struct attempt *attempt)
{
    int64_t ran_ms = core->wall_ms - attempt->created_ms;
    return ran_ms > 0 ? ran_ms : 0;
}

/* How long it is expected to run in all: longer by half each time that it outruns this, so that what is
 * expected changes at moments that are known. */
static int64_t expected_ms(const struct attempt *attempt, int64_t ran_ms)
{
    int64_t expected_ms = attempt->estimate_ms > LEAST_MS ? attempt->estimate_ms : LEAST_MS;
    while (expected_ms <= ran_ms) {
        expected_ms += expected_ms / 2;
    }
    int64_t limit_ms = attempt->job->time_limit_ms;
    return limit_ms > ran_ms && limit_ms < expected_ms ? limit_ms : expected_ms;
}

int64_t horizon_end_ms(const struct core *core, const struct attempt *attempt)
{
    if (attempt_is_leaving(attempt)) {
        return core->now_ms;
    }
    int64_t ran_ms = horizon_held_ms(core, attempt);
    return core->now_ms + expected_ms(attempt, ran_ms) - ran_ms;
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

/* What is leaving already says so itself. */
static int64_t first_change(const struct ends *ends, int64_t now_ms)
{
    int64_t first_ms = NEVER;
    for (size_t i = 0; i < ends->count; i++) {
        int64_t at_ms = ends->items[i].at_ms;
        first_ms = at_ms > now_ms && at_ms < first_ms ? at_ms : first_ms;
    }
    return first_ms;
}

bool horizon_find(const struct search *search, int64_t *ret_at_ms, int64_t *ret_change_ms,
                  struct fit *ret_fit)
{
    struct ends ends = ends_of(search);
    horizon_begin(search);
    *ret_change_ms = first_change(&ends, search->core->now_ms);
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
