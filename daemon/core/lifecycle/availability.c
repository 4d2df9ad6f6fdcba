/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps running attempts in the order in which they are expected to end. To add or remove an attempt costs
 * the logarithm of their number. A walk costs no more than the attempts that it visits. history.c makes the
 * estimates, and prospect.c predicts when a gang will fit. */
#include "daemon/core/lifecycle/availability.h"

#include "daemon/core/fleet/node.h"
#include "daemon/core/model/state.h"

#define LEAST_MS 1000 /* the shortest expected run time */

/* --- one attempt ---------------------------------------------------------------------------------------- */

const struct partition *availability_partition(const struct attempt *attempt)
{
    const struct member *member = attempt->members[0];
    const struct capacity *capacity = node_member_capacity(member);
    return capacity != NULL ? capacity->partition : NULL;
}

int64_t availability_held_ms(const struct core *core, const struct attempt *attempt)
{
    int64_t held_ms = core->steady_ms - attempt->held_since_ms;
    return held_ms > 0 ? held_ms : 0;
}

/* The whole expected run time. Each time that an attempt exceeds it, it grows by half, so that expectations
 * change only at known moments. */
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
    return attempt->held_since_ms + expected_run_ms(attempt, availability_held_ms(core, attempt));
}

int64_t availability_end_ms(const struct core *core, const struct attempt *attempt)
{
    bool leaves = attempt_is_leaving(attempt);
    return leaves ? core->now_ms : core->now_ms + expect_end(core, attempt) - core->steady_ms;
}

/* --- the heap of ends ----------------------------------------------------------------------------------- */

static bool sooner(const struct attempt *a, const struct attempt *b)
{
    return a->expected_ms != b->expected_ms ? a->expected_ms < b->expected_ms : a->attempt_id < b->attempt_id;
}

static void put_end(struct availability *availability, size_t at, struct attempt *attempt)
{
    availability->ends[at] = attempt;
    attempt->end_index = at;
}

static void sift_up(struct availability *availability, size_t at)
{
    struct attempt *attempt = availability->ends[at];
    for (; at > 0 && sooner(attempt, availability->ends[(at - 1) / 2]); at = (at - 1) / 2) {
        put_end(availability, at, availability->ends[(at - 1) / 2]);
    }
    put_end(availability, at, attempt);
}

static void sift_down(struct availability *availability, size_t at)
{
    struct attempt *attempt = availability->ends[at];
    for (size_t child; (child = 2 * at + 1) < availability->end_count; at = child) {
        bool second = child + 1 < availability->end_count &&
                      sooner(availability->ends[child + 1], availability->ends[child]);
        child += second;
        if (!sooner(availability->ends[child], attempt)) {
            break;
        }
        put_end(availability, at, availability->ends[child]);
    }
    put_end(availability, at, attempt);
}

static void grow(struct attempt ***items, size_t count, size_t *room)
{
    XGROW(*items, count, *room, 16);
}

static void add_end(struct core *core, struct attempt *attempt)
{
    struct availability *availability = &core->availability;
    attempt->expected_ms = expect_end(core, attempt);
    grow(&availability->ends, availability->end_count, &availability->end_room);
    put_end(availability, availability->end_count++, attempt);
    sift_up(availability, attempt->end_index);
}

static void remove_end(struct core *core, const struct attempt *attempt)
{
    struct availability *availability = &core->availability;
    size_t at = attempt->end_index;
    assert(at < availability->end_count && availability->ends[at] == attempt);
    put_end(availability, at, availability->ends[--availability->end_count]);
    if (at < availability->end_count) {
        sift_down(availability, at);
        sift_up(availability, at);
    }
}

static void add_leaving(struct core *core, struct attempt *attempt)
{
    struct availability *availability = &core->availability;
    grow(&availability->stopping, availability->stopping_count, &availability->stopping_room);
    attempt->end_index = availability->stopping_count++;
    availability->stopping[attempt->end_index] = attempt;
}

void availability_add(struct core *core, struct attempt *attempt)
{
    if (attempt_is_leaving(attempt)) {
        add_leaving(core, attempt);
    } else {
        add_end(core, attempt);
    }
}

void availability_leave(struct core *core, struct attempt *attempt)
{
    remove_end(core, attempt);
    add_leaving(core, attempt);
}

/* An attempt may be removed from either list: gangs that were never heard of again end without having been
 * stopping. */
void availability_remove(struct core *core, struct attempt *attempt)
{
    struct availability *availability = &core->availability;
    size_t at = attempt->end_index;
    if (at < availability->stopping_count && availability->stopping[at] == attempt) {
        availability->stopping[at] = availability->stopping[--availability->stopping_count];
        availability->stopping[at]->end_index = at;
    } else {
        remove_end(core, attempt);
    }
}

void availability_clear(struct core *core)
{
    free(core->availability.ends);
    free(core->availability.stopping);
    core->availability = (struct availability){0};
}

void availability_refresh(struct core *core)
{
    struct availability *availability = &core->availability;
    while (availability->end_count > 0 && availability->ends[0]->expected_ms <= core->steady_ms) {
        availability->ends[0]->expected_ms = expect_end(core, availability->ends[0]);
        sift_down(availability, 0);
    }
}

/* --- the walk ------------------------------------------------------------------------------------------- */

static bool place_sooner(const struct availability *availability, size_t a, size_t b)
{
    return sooner(availability->ends[a], availability->ends[b]);
}

static void walk_push(struct availability_walk *walk, const struct availability *availability, size_t place)
{
    if (place >= availability->end_count) {
        return;
    }
    XGROW(walk->places, walk->count, walk->room, 64);
    size_t at = walk->count++;
    for (; at > 0 && place_sooner(availability, place, walk->places[(at - 1) / 2]); at = (at - 1) / 2) {
        walk->places[at] = walk->places[(at - 1) / 2];
    }
    walk->places[at] = place;
}

static size_t walk_pop(struct availability_walk *walk, const struct availability *availability)
{
    size_t first = walk->places[0];
    size_t last = walk->places[--walk->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < walk->count; at = child) {
        bool second = child + 1 < walk->count &&
                      place_sooner(availability, walk->places[child + 1], walk->places[child]);
        child += second;
        if (!place_sooner(availability, walk->places[child], last)) {
            break;
        }
        walk->places[at] = walk->places[child];
    }
    walk->places[at] = last;
    walk_push(walk, availability, 2 * first + 1);
    walk_push(walk, availability, 2 * first + 2);
    return first;
}

void availability_walk_begin(const struct core *core, struct availability_walk *ret_walk)
{
    *ret_walk = (struct availability_walk){.availability = &core->availability};
    walk_push(ret_walk, ret_walk->availability, 0);
}

const struct attempt *availability_walk_peek(const struct availability_walk *walk)
{
    return walk->count > 0 ? walk->availability->ends[walk->places[0]] : NULL;
}

const struct attempt *availability_walk_next(struct availability_walk *walk)
{
    return walk->availability->ends[walk_pop(walk, walk->availability)];
}

void availability_walk_finish(struct availability_walk *walk)
{
    free(walk->places);
}
