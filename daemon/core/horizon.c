/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the look ahead: the order in which running work is expected to end, and when a gang will fit. It
 * promises to look at what ends first first, and at no more of it than it needs, whatever runs. How good the
 * estimates are is history.c's. */
#include "daemon/core/horizon.h"

#include "daemon/core/attempt.h"
#include "daemon/core/fit.h"
#include "daemon/core/node.h"
#include "daemon/core/state.h"
#include "proto/limits.h"

#define LEAST_MS 1000 /* that anything is expected to run */

/* --- one attempt ------------------------------------------------------------------------------------- */

const struct group *horizon_group(const struct attempt *attempt)
{
    const struct member *member = attempt->members[0];
    const struct seat *seat = node_seat(member->node, member->devices[0]);
    return seat->stock != NULL ? seat->stock->group : NULL;
}

int64_t horizon_held_ms(const struct core *core, const struct attempt *attempt)
{
    int64_t held_ms = core->steady_ms - attempt->held_since_ms;
    return held_ms > 0 ? held_ms : 0;
}

/* How long it is expected to run in all: longer by half each time that it outruns this, so that what is
 * expected changes at moments that are known. */
static int64_t expected_run_ms(const struct attempt *attempt, int64_t held_ms)
{
    int64_t expected_ms = attempt->estimate_ms > LEAST_MS ? attempt->estimate_ms : LEAST_MS;
    while (expected_ms <= held_ms) {
        expected_ms += expected_ms / 2;
    }
    int64_t limit_ms = attempt->job->time_limit_ms;
    return limit_ms > held_ms && limit_ms < expected_ms ? limit_ms : expected_ms;
}

static int64_t expect_end(const struct core *core, const struct attempt *attempt)
{
    return attempt->held_since_ms + expected_run_ms(attempt, horizon_held_ms(core, attempt));
}

int64_t horizon_end_ms(const struct core *core, const struct attempt *attempt)
{
    bool leaves = attempt_is_leaving(attempt);
    return leaves ? core->now_ms : core->now_ms + expect_end(core, attempt) - core->steady_ms;
}

/* --- the heap of ends -------------------------------------------------------------------------------- */

static bool sooner(const struct attempt *a, const struct attempt *b)
{
    return a->expected_ms != b->expected_ms ? a->expected_ms < b->expected_ms : a->epoch < b->epoch;
}

static void put_end(struct horizon *horizon, size_t at, struct attempt *attempt)
{
    horizon->ends[at] = attempt;
    attempt->end_index = at;
}

static void sift_up(struct horizon *horizon, size_t at)
{
    struct attempt *attempt = horizon->ends[at];
    for (; at > 0 && sooner(attempt, horizon->ends[(at - 1) / 2]); at = (at - 1) / 2) {
        put_end(horizon, at, horizon->ends[(at - 1) / 2]);
    }
    put_end(horizon, at, attempt);
}

static void sift_down(struct horizon *horizon, size_t at)
{
    struct attempt *attempt = horizon->ends[at];
    for (size_t child; (child = 2 * at + 1) < horizon->end_count; at = child) {
        bool second =
            child + 1 < horizon->end_count && sooner(horizon->ends[child + 1], horizon->ends[child]);
        child += second;
        if (!sooner(horizon->ends[child], attempt)) {
            break;
        }
        put_end(horizon, at, horizon->ends[child]);
    }
    put_end(horizon, at, attempt);
}

static void grow(struct attempt ***items, size_t count, size_t *room)
{
    if (count == *room) {
        *room = *room > 0 ? 2 * *room : 16;
        *items = xrealloc(*items, *room * sizeof(struct attempt *));
    }
}

static void add_end(struct core *core, struct attempt *attempt)
{
    struct horizon *horizon = &core->horizon;
    attempt->expected_ms = expect_end(core, attempt);
    grow(&horizon->ends, horizon->end_count, &horizon->end_room);
    put_end(horizon, horizon->end_count++, attempt);
    sift_up(horizon, attempt->end_index);
}

static void remove_end(struct core *core, const struct attempt *attempt)
{
    struct horizon *horizon = &core->horizon;
    size_t at = attempt->end_index;
    assert(at < horizon->end_count && horizon->ends[at] == attempt);
    put_end(horizon, at, horizon->ends[--horizon->end_count]);
    if (at < horizon->end_count) {
        sift_down(horizon, at);
        sift_up(horizon, at);
    }
}

static void add_leaving(struct core *core, struct attempt *attempt)
{
    struct horizon *horizon = &core->horizon;
    grow(&horizon->leaving, horizon->leaving_count, &horizon->leaving_room);
    attempt->end_index = horizon->leaving_count++;
    horizon->leaving[attempt->end_index] = attempt;
}

void horizon_add(struct core *core, struct attempt *attempt)
{
    if (attempt_is_leaving(attempt)) {
        add_leaving(core, attempt);
    } else {
        add_end(core, attempt);
    }
}

void horizon_leave(struct core *core, struct attempt *attempt)
{
    remove_end(core, attempt);
    add_leaving(core, attempt);
}

/* It ends from either: gangs that were never heard of again leave without having been about to. */
void horizon_remove(struct core *core, struct attempt *attempt)
{
    struct horizon *horizon = &core->horizon;
    size_t at = attempt->end_index;
    if (at < horizon->leaving_count && horizon->leaving[at] == attempt) {
        horizon->leaving[at] = horizon->leaving[--horizon->leaving_count];
        horizon->leaving[at]->end_index = at;
    } else {
        remove_end(core, attempt);
    }
}

void horizon_clear(struct core *core)
{
    free(core->horizon.ends);
    free(core->horizon.leaving);
    core->horizon = (struct horizon){0};
}

/* Those that have outrun what was expected are expected to end later. */
static void refresh(struct core *core)
{
    struct horizon *horizon = &core->horizon;
    while (horizon->end_count > 0 && horizon->ends[0]->expected_ms <= core->steady_ms) {
        horizon->ends[0]->expected_ms = expect_end(core, horizon->ends[0]);
        sift_down(horizon, 0);
    }
}

/* --- what is free ------------------------------------------------------------------------------------ */

static void release(struct seat *seat, int64_t count)
{
    if (seat->stock != NULL && seat->unavailable == NULL) {
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

void horizon_begin(const struct search *search)
{
    const struct core *core = search->core;
    for (struct group *group = core->groups; group != NULL; group = group->next) {
        group->coming = group->free;
        for (size_t i = 0; i < group->count && fit_open(search, group); i++) {
            group->stocks[i]->coming = group->stocks[i]->free;
        }
    }
    for (size_t i = 0; i < core->horizon.leaving_count; i++) {
        horizon_release(core->horizon.leaving[i], true);
    }
}

/* --- the look ahead ---------------------------------------------------------------------------------- */

/* A walk over the heap in order of ends, which leaves it as it is: the front holds the places in the heap
 * that may be next. */
struct front {
    size_t *places; /* itself a heap; owned */
    size_t count, room;
};

static bool place_sooner(const struct horizon *horizon, size_t a, size_t b)
{
    return sooner(horizon->ends[a], horizon->ends[b]);
}

static void front_push(struct front *front, const struct horizon *horizon, size_t place)
{
    if (place >= horizon->end_count) {
        return;
    }
    if (front->count == front->room) {
        front->room = front->room > 0 ? 2 * front->room : 64;
        front->places = xrealloc(front->places, front->room * sizeof *front->places);
    }
    size_t at = front->count++;
    for (; at > 0 && place_sooner(horizon, place, front->places[(at - 1) / 2]); at = (at - 1) / 2) {
        front->places[at] = front->places[(at - 1) / 2];
    }
    front->places[at] = place;
}

static size_t front_pop(struct front *front, const struct horizon *horizon)
{
    size_t first = front->places[0];
    size_t last = front->places[--front->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < front->count; at = child) {
        bool second =
            child + 1 < front->count && place_sooner(horizon, front->places[child + 1], front->places[child]);
        child += second;
        if (!place_sooner(horizon, front->places[child], last)) {
            break;
        }
        front->places[at] = front->places[child];
    }
    front->places[at] = last;
    front_push(front, horizon, 2 * first + 1);
    front_push(front, horizon, 2 * first + 2);
    return first;
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

/* Counts as free what ends next, and all that ends with it; NULL: nothing is left that runs. */
static const struct attempt *release_next(const struct horizon *horizon, struct front *front, size_t *seen)
{
    const struct attempt *next = NULL;
    while (front->count > 0 &&
           (next == NULL || horizon->ends[front->places[0]]->expected_ms == next->expected_ms)) {
        next = horizon->ends[front_pop(front, horizon)];
        horizon_release(next, true);
        ++*seen;
    }
    return next;
}

bool horizon_find(const struct search *search, struct prospect *prospect)
{
    struct core *core = (struct core *)(uintptr_t)search->core;
    const struct horizon *horizon = &core->horizon;
    refresh(core);
    horizon_begin(search);
    struct front front = {0};
    front_push(&front, horizon, 0);
    int64_t ahead_ms = core->now_ms - core->steady_ms;
    prospect->change_ms = horizon->end_count > 0 ? horizon->ends[0]->expected_ms + ahead_ms : NEVER;
    prospect->at_ms = core->now_ms;
    bool found = enough(search) && fit_find(search, prospect->fit);
    for (size_t seen = 0, next = 0; !found && seen < LIMIT_HORIZON;) {
        const struct attempt *ended = release_next(horizon, &front, &seen);
        if (ended == NULL) {
            break;
        }
        prospect->at_ms = ended->expected_ms + ahead_ms;
        if ((seen >= next || front.count == 0) && enough(search)) {
            found = fit_find(search, prospect->fit);
            next = seen + seen / 8 + 1;
        }
    }
    free(front.places);
    return found;
}
