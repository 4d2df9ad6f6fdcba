/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the start of a waiting job with bounded work. In queue order, each job ahead gets the first time
 * at which enough GPUs of a pool and type are free for its estimated run time; so does the job itself, last.
 *
 * Limits of the method: it counts GPUs, not nodes, so a gang may find them scattered. It ignores later jobs
 * that go first, nodes that come or go, and the time of staging. Estimates have a known usual error: the
 * earliest and latest start result if all run times are that much shorter or longer. */
#include "daemon/core/explain/forecast.h"

#include "daemon/core/explain/ahead.h"
#include "daemon/core/explain/field.h"
#include "daemon/core/fleet/node.h"
#include "daemon/core/lifecycle/availability.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/history.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/scheduler/fit.h"
#include "daemon/core/scheduler/place.h"
#include "daemon/core/scheduler/prospect.h"
#include "proto/limits.h"

#define UNLIMITED_ERROR 300 /* percent: of an estimate without history */
#define LIMITED_ERROR   100 /* of an estimate that a time limit bounds */
#define MINUTE_MS       60000

enum lean { LEAN_SHORT, LEAN_NONE, LEAN_LONG };

/* --- run times ------------------------------------------------------------------------------------------ */

/* The usual error of a job's estimate. Few runs give little certainty. */
static int64_t error_percent(const struct job *job)
{
    const struct history_trust trust = history_trust(job->pattern);
    if (trust.runs == 0) {
        return job->time_limit_ms > 0 ? LIMITED_ERROR : UNLIMITED_ERROR;
    }
    int64_t least = LIMITED_ERROR / trust.runs;
    return trust.error_percent > least ? trust.error_percent : least;
}

static int64_t lean_on(const struct job *job, int64_t ms, enum lean lean)
{
    int64_t error = error_percent(job);
    switch (lean) {
    case LEAN_SHORT:
        return ms * 100 / (100 + error);
    case LEAN_NONE:
        return ms;
    case LEAN_LONG:
        return ms + ms / 100 * error;
    }
    abort();
}

static int64_t bounded(int64_t ms, int64_t most_ms)
{
    int64_t least_ms = ms > 1 ? ms : 1;
    return most_ms > 0 && least_ms > most_ms ? most_ms : least_ms;
}

static int64_t end_of(const struct core *core, const struct attempt *attempt, enum lean lean)
{
    const struct job *job = attempt->job;
    int64_t rest_ms = availability_end_ms(core, attempt) - core->now_ms;
    int64_t allowed_ms = job->time_limit_ms - availability_held_ms(core, attempt);
    int64_t most_ms = allowed_ms > rest_ms ? allowed_ms : rest_ms;
    return core->now_ms + bounded(lean_on(job, rest_ms, lean), job->time_limit_ms > 0 ? most_ms : 0);
}

static int64_t length_of(struct core *core, const struct job *job, enum lean lean)
{
    return bounded(lean_on(job, queue_entry_of(core, job).estimate_ms, lean), job->time_limit_ms);
}

/* --- free devices over time ----------------------------------------------------------------------------- */

/* This many GPUs are free from at_ms until the next point. */
struct point {
    int64_t at_ms, free;
};

/* A gang of one size and length found no earlier start. Free GPUs only decrease while jobs are added, so a
 * gang that is as large and runs as long finds none either. */
struct hint {
    int64_t length_ms, start_ms;
};

/* For gangs of one size and similar length. */
struct hints {
    int64_t gpus;
    struct hint shortest, last;
};

#define HINT_SIZES   16
#define HINT_LENGTHS 32 /* each twice the previous one */

/* The free GPUs of one partition over time. */
struct profile {
    struct point *points; /* owned; the first is now */
    size_t count, room;
    int64_t floor_ms;    /* no job starts before; used where waiting jobs reserve all that they could use */
    struct hints *hints; /* by size and length; owned; NULL: no search yet */
};

struct outline {
    struct core *core;
    struct profile *profiles; /* by index of the partition; owned */
    size_t count;
    enum lean lean;
    int64_t steps; /* that are still allowed */
};

static void insert(struct outline *outline, struct profile *profile, size_t at, struct point point)
{
    XGROW(profile->points, profile->count, profile->room, 8);
    size_t moved = profile->count - at;
    for (size_t i = profile->count; i > at; i--) {
        profile->points[i] = profile->points[i - 1];
    }
    profile->points[at] = point;
    profile->count++;
    outline->steps -= (int64_t)moved / 8 + 1;
}

/* The first point at that time or later. */
static size_t find_point(const struct profile *profile, int64_t at_ms)
{
    size_t low = 0, high = profile->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (profile->points[middle].at_ms < at_ms) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The point at that time; made if there is none. */
static size_t point_at(struct outline *outline, struct profile *profile, int64_t at_ms)
{
    size_t at = find_point(profile, at_ms);
    if (at == profile->count || profile->points[at].at_ms != at_ms) {
        assert(at > 0); /* the first is now */
        insert(outline, profile, at, (struct point){at_ms, profile->points[at - 1].free});
    }
    return at;
}

static void take(struct outline *outline, struct profile *profile, int64_t from_ms, int64_t until_ms,
                 int64_t gpus)
{
    size_t first = point_at(outline, profile, from_ms);
    size_t last = point_at(outline, profile, until_ms);
    for (size_t i = first; i < last; i++) {
        profile->points[i].free -= gpus;
    }
    outline->steps -= (int64_t)(last - first);
}

/* The point that applies at that time. */
static size_t point_before(const struct profile *profile, int64_t at_ms)
{
    size_t at = find_point(profile, at_ms);
    bool exact = at < profile->count && profile->points[at].at_ms == at_ms;
    assert(exact || at > 0);
    return exact ? at : at - 1;
}

/* The first time, from from_ms on, at which this many are free for this long; NEVER: none. */
static int64_t first_start(struct outline *outline, const struct profile *profile, int64_t gpus,
                           int64_t length_ms, int64_t from_ms)
{
    int64_t start_ms = NEVER;
    for (size_t i = point_before(profile, from_ms); i < profile->count; i++) {
        const struct point *point = &profile->points[i];
        outline->steps--;
        if (start_ms != NEVER && point->at_ms >= start_ms + length_ms) {
            return start_ms;
        }
        if (point->free < gpus) {
            start_ms = NEVER;
        } else if (start_ms == NEVER) {
            start_ms = point->at_ms > from_ms ? point->at_ms : from_ms;
        }
    }
    return start_ms;
}

static struct hints *hints_for(struct profile *profile, int64_t gpus, int64_t length_ms)
{
    size_t length = 0;
    if (profile->hints == NULL) {
        profile->hints = xzalloc((size_t)HINT_SIZES * HINT_LENGTHS * sizeof *profile->hints);
    }
    while (length + 1 < HINT_LENGTHS && length_ms >> (length + 1) > 0) {
        length++;
    }
    struct hints *hints = &profile->hints[(size_t)(gpus % HINT_SIZES) * HINT_LENGTHS + length];
    if (hints->gpus != gpus) {
        *hints = (struct hints){.gpus = gpus, .shortest.length_ms = NEVER, .last.length_ms = NEVER};
    }
    return hints;
}

static int64_t no_earlier(const struct hint *hint, int64_t length_ms, int64_t from_ms)
{
    return length_ms >= hint->length_ms && hint->start_ms > from_ms ? hint->start_ms : from_ms;
}

/* The first start from the floor on, or from a hint of similar jobs. */
static int64_t start_in(struct outline *outline, struct profile *profile, int64_t gpus, int64_t length_ms)
{
    struct hints *hints = hints_for(profile, gpus, length_ms);
    int64_t from_ms = no_earlier(&hints->shortest, length_ms, profile->floor_ms);
    from_ms = no_earlier(&hints->last, length_ms, from_ms);
    int64_t start_ms = first_start(outline, profile, gpus, length_ms, from_ms);
    if (start_ms != NEVER) {
        hints->last = (struct hint){length_ms, start_ms};
        hints->shortest = length_ms <= hints->shortest.length_ms ? hints->last : hints->shortest;
    }
    return start_ms;
}

/* --- the outline ---------------------------------------------------------------------------------------- */

static int64_t free_of(const struct partition *partition)
{
    int64_t free = 0;
    for (size_t i = 0; i < partition->count; i++) {
        free += node_works(partition->capacities[i]->node) ? partition->capacities[i]->free : 0;
    }
    return free;
}

/* The devices that an attempt gives back on nodes that still take work. */
static int64_t devices_of(const struct attempt *attempt)
{
    int64_t count = 0;
    for (size_t i = 0; i < attempt->member_count; i++) {
        const struct member *member = attempt->members[i];
        count += node_works(member->node) ? node_member_returns(member) : 0;
    }
    return count;
}

struct release {
    int64_t at_ms, count;
    const struct partition *partition;
};

static int by_time(const void *a, const void *b)
{
    const struct release *left = a, *right = b;
    return (left->at_ms > right->at_ms) - (left->at_ms < right->at_ms);
}

static struct release *releases_of(const struct core *core, enum lean lean, size_t *ret_count)
{
    size_t room = 0, count = 0;
    for (const struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        room++;
    }
    struct release *releases = xalloc((room + 1) * sizeof *releases);
    for (const struct attempt *attempt = core->attempts; attempt != NULL; attempt = attempt->next) {
        const struct partition *partition = availability_partition(attempt);
        if (partition != NULL) {
            releases[count++] = (struct release){end_of(core, attempt, lean), devices_of(attempt), partition};
        }
    }
    if (count > 1) {
        qsort(releases, count, sizeof *releases, by_time);
    }
    *ret_count = count;
    return releases;
}

/* Adds each release to the last point of its partition, or after it. */
static void add_releases(struct outline *outline)
{
    size_t count;
    struct release *releases = releases_of(outline->core, outline->lean, &count);
    for (size_t i = 0; i < count; i++) {
        struct profile *profile = &outline->profiles[releases[i].partition->index];
        size_t at = point_at(outline, profile, releases[i].at_ms);
        profile->points[at].free += releases[i].count;
    }
    free(releases);
}

static struct outline outline_begin(struct core *core, enum lean lean)
{
    struct outline outline = {.core = core, .lean = lean, .steps = LIMIT_FORECAST_STEPS};
    outline.count = core->partitions != NULL ? core->partitions->prev->index + 1 : 0;
    outline.profiles = xzalloc((outline.count + 1) * sizeof *outline.profiles);
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        struct profile *profile = &outline.profiles[partition->index];
        profile->floor_ms = core->now_ms;
        insert(&outline, profile, 0, (struct point){core->now_ms, free_of(partition)});
    }
    add_releases(&outline);
    return outline;
}

static void outline_finish(struct outline *outline)
{
    for (size_t i = 0; i < outline->count; i++) {
        free(outline->profiles[i].points);
        free(outline->profiles[i].hints);
    }
    free(outline->profiles);
}

/* The earliest start of a job in the partitions that it may use; NEVER: none. */
static int64_t earliest(struct outline *outline, const struct job *job, int64_t length_ms,
                        const struct partition **ret_partition)
{
    const struct search search = fit_search(outline->core, &job->job_class->request, VIEW_WORKING, NULL);
    int64_t best_ms = NEVER;
    for (const struct partition *partition = outline->core->partitions; partition != NULL;
         partition = partition->next) {
        if (!fit_allowed(&search, partition)) {
            continue;
        }
        int64_t start_ms =
            start_in(outline, &outline->profiles[partition->index], search.request->units, length_ms);
        if (start_ms < best_ms) {
            best_ms = start_ms;
            *ret_partition = partition;
        }
    }
    return best_ms;
}

/* If the policy lets no job pass, jobs behind this one start no earlier in any partition that it could
 * use. */
static void raise_floors(struct outline *outline, const struct job *job, int64_t start_ms)
{
    const struct search search = fit_search(outline->core, &job->job_class->request, VIEW_WORKING, NULL);
    for (const struct partition *partition = outline->core->partitions; partition != NULL;
         partition = partition->next) {
        struct profile *profile = &outline->profiles[partition->index];
        if (fit_allowed(&search, partition) && profile->floor_ms < start_ms) {
            profile->floor_ms = start_ms;
        }
    }
}

static int64_t lay_down(struct outline *outline, const struct job *job)
{
    const struct partition *partition = NULL;
    int64_t length_ms = length_of(outline->core, job, outline->lean);
    int64_t start_ms = earliest(outline, job, length_ms, &partition);
    if (start_ms == NEVER) {
        return NEVER;
    }
    take(outline, &outline->profiles[partition->index], start_ms, start_ms + length_ms,
         job->job_class->request.units);
    if (place_reserves_all(outline->core)) {
        raise_floors(outline, job, start_ms);
    }
    return start_ms;
}

/* NEVER: not with the working nodes. *ret_beyond: later than the result. */
static int64_t start_when(struct core *core, const struct job *job, const struct ahead *ahead, enum lean lean,
                          bool *ret_beyond)
{
    struct outline outline = outline_begin(core, lean);
    int64_t latest_ms = core->now_ms;
    for (size_t i = 0; i < ahead->count && outline.steps > 0; i++) {
        int64_t start_ms = lay_down(&outline, ahead->jobs[i]);
        latest_ms = start_ms != NEVER && start_ms > latest_ms ? start_ms : latest_ms;
    }
    *ret_beyond = ahead->more || outline.steps <= 0;
    int64_t start_ms = *ret_beyond ? latest_ms : lay_down(&outline, job);
    outline_finish(&outline);
    return start_ms;
}

/* --- the forecast --------------------------------------------------------------------------------------- */

/* The first time at which nodes could hold the gang if no job were ahead. */
static bool first_fit(struct core *core, const struct job *job, int64_t *ret_at_ms)
{
    const struct search search = place_search(core, job, VIEW_FUTURE, NULL, READINESS_EVER);
    struct fit fit = {0};
    struct prospect prospect = {.fit = &fit};
    bool found = prospect_find(&search, &prospect);
    *ret_at_ms = prospect.at_ms;
    free(fit.shares);
    return found;
}

/* Derives the confidence from the width of the window compared with the remaining wait. If the window is not
 * narrow, the job's own estimate counts, too: a guess, or an estimate that is off by a factor of two, says
 * little about the gaps that the job fits into. */
static enum confidence confidence_of(const struct core *core, const struct job *job,
                                     const struct forecast *forecast)
{
    int64_t wait_ms = forecast->at_ms - core->now_ms;
    int64_t width_ms = forecast->latest_ms - forecast->earliest_ms;
    if (forecast->beyond) {
        return CONFIDENCE_LOW;
    }
    if (width_ms <= MINUTE_MS || width_ms <= wait_ms / 4) {
        return CONFIDENCE_HIGH;
    }
    bool guessed = job->time_limit_ms == 0 && error_percent(job) >= LIMITED_ERROR;
    bool narrow = width_ms <= 10 * MINUTE_MS || width_ms <= wait_ms;
    return narrow && !guessed ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW;
}

struct forecast forecast_of(struct core *core, const struct job *job, const struct starts *starts)
{
    struct forecast forecast = {.beyond = starts->beyond};
    int64_t fits_ms;
    if (starts->at_ms == NEVER || !first_fit(core, job, &fits_ms)) {
        return forecast;
    }
    forecast.known = true;
    forecast.at_ms = starts->at_ms > fits_ms ? starts->at_ms : fits_ms;
    forecast.earliest_ms = starts->short_ms < forecast.at_ms ? starts->short_ms : forecast.at_ms;
    forecast.latest_ms = starts->long_ms > forecast.at_ms ? starts->long_ms : forecast.at_ms;
    forecast.confidence = confidence_of(core, job, &forecast);
    return forecast;
}

struct forecast forecast_start(struct core *core, const struct job *job, const struct ahead *ahead)
{
    bool beyond;
    struct starts starts = {0};
    starts.at_ms = start_when(core, job, ahead, LEAN_NONE, &starts.beyond);
    if (starts.at_ms != NEVER) {
        starts.short_ms = start_when(core, job, ahead, LEAN_SHORT, &beyond);
        starts.long_ms = start_when(core, job, ahead, LEAN_LONG, &beyond);
    }
    return forecast_of(core, job, &starts);
}

struct forecast forecast_now(const struct core *core)
{
    return (struct forecast){.known = true,
                             .at_ms = core->now_ms,
                             .earliest_ms = core->now_ms,
                             .latest_ms = core->now_ms,
                             .confidence = CONFIDENCE_HIGH};
}

/* --- many jobs ------------------------------------------------------------------------------------------ */

/* Where the jobs so far were laid down, by lean. */
struct forecasts {
    struct outline outlines[LEAN_LONG + 1];
    int64_t latest_ms[LEAN_LONG + 1];
};

struct forecasts *forecasts_begin(struct core *core)
{
    struct forecasts *forecasts = xzalloc(sizeof *forecasts);
    for (enum lean lean = LEAN_SHORT; lean <= LEAN_LONG; lean++) {
        forecasts->outlines[lean] = outline_begin(core, lean);
        forecasts->latest_ms[lean] = core->now_ms;
    }
    return forecasts;
}

void forecasts_finish(struct forecasts *forecasts)
{
    for (enum lean lean = LEAN_SHORT; lean <= LEAN_LONG; lean++) {
        outline_finish(&forecasts->outlines[lean]);
    }
    free(forecasts);
}

static int64_t next_start(struct forecasts *forecasts, const struct job *job, enum lean lean)
{
    int64_t *latest_ms = &forecasts->latest_ms[lean];
    if (forecasts->outlines[lean].steps <= 0) {
        return *latest_ms;
    }
    int64_t start_ms = lay_down(&forecasts->outlines[lean], job);
    *latest_ms = start_ms != NEVER && start_ms > *latest_ms ? start_ms : *latest_ms;
    return start_ms;
}

struct starts forecasts_next(struct forecasts *forecasts, const struct job *job)
{
    bool beyond = forecasts->outlines[LEAN_NONE].steps <= 0;
    return (struct starts){.at_ms = next_start(forecasts, job, LEAN_NONE),
                           .short_ms = next_start(forecasts, job, LEAN_SHORT),
                           .long_ms = next_start(forecasts, job, LEAN_LONG),
                           .beyond = beyond};
}

/* --- the answer ----------------------------------------------------------------------------------------- */

static void write_window(const struct core *core, const struct forecast *forecast, struct text *out)
{
    if (forecast->beyond) {
        text_append(out, "{\"at\":null,\"earliest_at\":null,\"latest_at\":null");
        field_write_time(core, out, ",\"later_than\":", forecast->at_ms);
    } else {
        field_write_time(core, out, "{\"at\":", forecast->at_ms);
        field_write_time(core, out, ",\"earliest_at\":", forecast->earliest_ms);
        field_write_time(core, out, ",\"latest_at\":", forecast->latest_ms);
        text_append(out, ",\"later_than\":null");
    }
    text_printf(out, ",\"confidence\":\"%s\"}", confidence_text(forecast->confidence));
}

void forecast_write(const struct core *core, const struct forecast *forecast, struct text *out)
{
    if (forecast->known) {
        write_window(core, forecast, out);
    } else {
        text_append(out, "null");
    }
}
