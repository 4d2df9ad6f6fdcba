/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the look ahead: the order in which running work is expected to end, and when a gang will fit. It
 * promises to look at what ends first first, and at no more of it than it needs, whatever runs. How good the
 * estimates are is history.c's. */
#include "daemon/core/availability.h"

#include "daemon/core/attempt.h"
#include "daemon/core/fit.h"
#include "daemon/core/node.h"
#include "daemon/core/state.h"
#include "proto/limits.h"

#define LEAST_MS 1000 /* that anything is expected to run */

/* --- one attempt ---------------------------------------------------------------------------------------- */

const struct partition *availability_partition(const struct attempt *attempt)
{
    const struct member *member = attempt->members[0];
    const struct node_device *device = node_device(member->node, member->devices[0]);
    return device->capacity != NULL ? device->capacity->partition : NULL;
}

int64_t availability_held_ms(const struct core *core, const struct attempt *attempt)
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

/* It ends from either: gangs that were never heard of again leave without having been about to. */
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

/* Those that have outrun what was expected are expected to end later. */
static void refresh(struct core *core)
{
    struct availability *availability = &core->availability;
    while (availability->end_count > 0 && availability->ends[0]->expected_ms <= core->steady_ms) {
        availability->ends[0]->expected_ms = expect_end(core, availability->ends[0]);
        sift_down(availability, 0);
    }
}

/* --- what is free --------------------------------------------------------------------------------------- */

static void release(struct node_device *device, int64_t count)
{
    if (device->capacity != NULL && device->unavailable == NULL) {
        device->capacity->free_then += count;
        device->capacity->partition->free_then += count;
    }
}

void availability_release(const struct attempt *attempt, bool free)
{
    for (size_t i = 0; i < attempt->member_count; i++) {
        const struct member *member = attempt->members[i];
        for (size_t j = 0; j < member->device_count; j++) {
            release(node_device(member->node, member->devices[j]), free ? 1 : -1);
        }
    }
}

void availability_begin(const struct search *search)
{
    const struct core *core = search->core;
    for (struct partition *partition = core->partitions; partition != NULL; partition = partition->next) {
        partition->free_then = partition->free;
        for (size_t i = 0; i < partition->count && fit_open(search, partition); i++) {
            partition->capacities[i]->free_then = partition->capacities[i]->free;
        }
    }
    for (size_t i = 0; i < core->availability.stopping_count; i++) {
        availability_release(core->availability.stopping[i], true);
    }
}

/* --- the look ahead ------------------------------------------------------------------------------------- */

/* A walk over the heap in order of ends, which leaves it as it is: the front holds the places in the heap
 * that may be next. */
struct front {
    size_t *places; /* itself a heap; owned */
    size_t count, room;
};

static bool place_sooner(const struct availability *availability, size_t a, size_t b)
{
    return sooner(availability->ends[a], availability->ends[b]);
}

static void front_push(struct front *front, const struct availability *availability, size_t place)
{
    if (place >= availability->end_count) {
        return;
    }
    XGROW(front->places, front->count, front->room, 64);
    size_t at = front->count++;
    for (; at > 0 && place_sooner(availability, place, front->places[(at - 1) / 2]); at = (at - 1) / 2) {
        front->places[at] = front->places[(at - 1) / 2];
    }
    front->places[at] = place;
}

static size_t front_pop(struct front *front, const struct availability *availability)
{
    size_t first = front->places[0];
    size_t last = front->places[--front->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < front->count; at = child) {
        bool second = child + 1 < front->count &&
                      place_sooner(availability, front->places[child + 1], front->places[child]);
        child += second;
        if (!place_sooner(availability, front->places[child], last)) {
            break;
        }
        front->places[at] = front->places[child];
    }
    front->places[at] = last;
    front_push(front, availability, 2 * first + 1);
    front_push(front, availability, 2 * first + 2);
    return first;
}

static bool enough(const struct search *search)
{
    for (const struct partition *partition = search->core->partitions; partition != NULL;
         partition = partition->next) {
        if (partition->free_then >= search->request->gpus && fit_open(search, partition)) {
            return true;
        }
    }
    return false;
}

/* Counts as free what ends next, and all that ends with it; NULL: nothing is left that runs. */
static const struct attempt *release_next(const struct availability *availability, struct front *front,
                                          size_t *seen)
{
    const struct attempt *next = NULL;
    while (front->count > 0 &&
           (next == NULL || availability->ends[front->places[0]]->expected_ms == next->expected_ms)) {
        next = availability->ends[front_pop(front, availability)];
        availability_release(next, true);
        ++*seen;
    }
    return next;
}

bool availability_find(const struct search *search, struct prospect *prospect)
{
    struct core *core = (struct core *)(uintptr_t)search->core;
    const struct availability *availability = &core->availability;
    refresh(core);
    availability_begin(search);
    struct front front = {0};
    front_push(&front, availability, 0);
    int64_t ahead_ms = core->now_ms - core->steady_ms;
    prospect->change_ms = availability->end_count > 0 ? availability->ends[0]->expected_ms + ahead_ms : NEVER;
    prospect->at_ms = core->now_ms;
    bool found = enough(search) && fit_find(search, prospect->fit);
    for (size_t seen = 0, next = 0; !found && seen < LIMIT_AVAILABILITY;) {
        const struct attempt *ended = release_next(availability, &front, &seen);
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
