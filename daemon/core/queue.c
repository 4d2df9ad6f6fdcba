/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of waiting jobs: what each policy makes of submission, priority and run time. It promises
 * that a job which is requeued has its old place, that equal jobs go first in, first out, and that one more
 * of them costs the same at any length. What fits is left to place.c.
 *
 * The default policy gives each job a due time: its submission and STRETCH times its run time, PATIENCE_MS at
 * most, and some hours for what its accounts have used beyond their shares. In a class of priority whoever is
 * due first goes first. So short jobs wait less than long ones, and nobody is overtaken for ever: only by
 * jobs that came less than PATIENCE_MS later. */
#include "daemon/core/queue.h"

#include <string.h>

#include "daemon/core/array.h"
#include "daemon/core/history.h"
#include "daemon/core/account.h"
#include "daemon/core/constraint.h"
#include "daemon/core/fragment.h"
#include "daemon/core/staging.h"
#include "daemon/core/state.h"
#include "daemon/core/trace.h"

#define STRETCH     10
#define PATIENCE_MS (60LL * 24 * 3600 * 1000)
#define REFRESH_MS  (10LL * 60 * 1000) /* how old a turn may be */

/* --- lanes ------------------------------------------------------------------------------------------- */

/* Wishes are equal when their keys are. A tab cannot be part of a name; types are told apart without regard
 * to case. */
static void wish_key(const struct wish *wish, struct text *out)
{
    const char *const parts[] = {wish->gpu_type,
                                 wish->pool,
                                 wish->host_id,
                                 use_reserved_text(wish->use_reserved),
                                 wish->need,
                                 wish->terms,
                                 placement_text(wish->placement)};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        text_append(out, parts[i] != NULL ? parts[i] : "");
        for (char *at = i == 0 ? out->bytes : NULL; at != NULL && *at != '\0'; at++) {
            *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
        }
        text_append(out, "\t");
    }
    text_append_int(out, wish->gpus);
    text_append(out, "\t");
    text_append_int(out, wish->nodes);
}

struct lane *queue_find(const struct core *core, const struct wish *wish)
{
    autotext struct text key = {0};
    wish_key(wish, &key);
    struct lane *lane;
    HASH_FIND_STR(core->lanes_by_key, key.bytes, lane);
    return lane;
}

static char *copy_or_null(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

static struct lane *lane_create(struct core *core, const struct wish *wish, const struct core_need *need)
{
    struct text key = {0};
    wish_key(wish, &key);
    struct lane *lane = xzalloc(sizeof *lane);
    lane->key = text_take(&key);
    lane->gpu_type = copy_or_null(wish->gpu_type);
    lane->pool = copy_or_null(wish->pool);
    lane->host_id = copy_or_null(wish->host_id);
    lane->constraints = constraints_create(wish->terms);
    lane->stage = staging_join(core, need);
    lane->wish = (struct wish){.gpu_type = lane->gpu_type,
                               .pool = lane->pool,
                               .host_id = lane->host_id,
                               .need = staging_key(lane->stage),
                               .terms = lane->constraints != NULL ? lane->constraints->terms : NULL,
                               .constraints = lane->constraints,
                               .use_reserved = wish->use_reserved,
                               .placement = wish->placement,
                               .gpus = wish->gpus,
                               .nodes = wish->nodes};
    HASH_ADD_KEYPTR(hh, core->lanes_by_key, lane->key, strlen(lane->key), lane);
    return lane;
}

static void lane_destroy(struct core *core, struct lane *lane)
{
    assert(lane->turn_count == 0);
    HASH_DEL(core->lanes_by_key, lane);
    staging_leave(core, lane->stage);
    free(lane->gpu_type);
    free(lane->pool);
    free(lane->host_id);
    free(lane->turns);
    constraints_destroy(lane->constraints);
    free(lane->key);
    free(lane);
}

void queue_join(struct core *core, struct job *job, const struct wish *wish, const struct core_need *need)
{
    assert(job->lane == NULL);
    job->lane = queue_find(core, wish);
    if (job->lane == NULL) {
        job->lane = lane_create(core, wish, need);
    }
    job->lane->job_count++;
    fragment_demand(core, wish->gpus, 1);
}

void queue_share(struct core *core, struct job *job, struct lane *lane)
{
    assert(job->lane == NULL);
    job->lane = lane;
    lane->job_count++;
    fragment_demand(core, lane->wish.gpus, 1);
}

void queue_leave(struct core *core, struct job *job)
{
    struct lane *lane = job->lane;
    job->lane = NULL;
    fragment_demand(core, lane->wish.gpus, -1);
    if (--lane->job_count == 0) {
        lane_destroy(core, lane);
    }
}

/* A clock that was put back before a restart makes no job older than an earlier one. */
void queue_stamp(struct core *core, struct job *job, int64_t steady_ms)
{
    core->submitted_ms = steady_ms > core->submitted_ms ? steady_ms : core->submitted_ms;
    job->submitted_ms = core->submitted_ms;
}

/* --- turns ------------------------------------------------------------------------------------------- */

static int64_t estimate_of(const struct core *core, const struct job *job)
{
    return history_estimate_ms(core, job->pattern, job->time_limit_ms);
}

static int64_t remaining_of(const struct job *job, int64_t estimate_ms)
{
    return estimate_ms > job->ran_ms ? estimate_ms - job->ran_ms : 1;
}

static int64_t due_of(const struct job *job, int64_t estimate_ms)
{
    int64_t allowed_ms = estimate_ms < PATIENCE_MS / STRETCH ? STRETCH * estimate_ms : PATIENCE_MS;
    return job->submitted_ms + allowed_ms;
}

static struct turn turn_of(const struct core *core, const struct job *job)
{
    struct turn turn = {.place = job->place,
                        .task = array_is_task(job),
                        .key = job->key,
                        .estimate_ms = estimate_of(core, job),
                        .batch = job->batch};
    switch (core->config.policy) {
    case POLICY_FIFO:
    case POLICY_EASY:
        break;
    case POLICY_SJF:
        turn.turn = turn.estimate_ms;
        break;
    case POLICY_SRTF:
        turn.turn = remaining_of(job, turn.estimate_ms);
        break;
    case POLICY_SRSF:
        turn.turn = remaining_of(job, turn.estimate_ms) * job->lane->wish.gpus;
        break;
    case POLICY_DEFAULT:
        turn.priority = job->priority;
        turn.turn = due_of(job, turn.estimate_ms) + account_delay_ms(core, job);
        break;
    case POLICY_COUNT:
        abort();
    }
    return turn;
}

bool queue_job_before(const struct job *a, const struct job *b)
{
    if (a->place != b->place) {
        return a->place < b->place;
    }
    bool task = array_is_task(a);
    return task != array_is_task(b) ? task : a->key < b->key;
}

bool queue_before(const struct turn *a, const struct turn *b)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    if (a->turn != b->turn) {
        return a->turn < b->turn;
    }
    if (a->place != b->place) {
        return a->place < b->place;
    }
    return a->task != b->task ? a->task : a->key < b->key;
}

struct turn queue_turn(const struct core *core, const struct job *job)
{
    bool first = job->batch != NULL && job->batch->jobs == job;
    return first ? job->lane->turns[job->batch->index] : turn_of(core, job);
}

int64_t queue_due_ms(const struct core *core, const struct turn *turn)
{
    return core->config.policy == POLICY_DEFAULT ? turn->turn : 0;
}

/* --- batches ----------------------------------------------------------------------------------------- */

static struct batch_key key_of(const struct core *core, const struct job *job)
{
    bool goes_on = core->config.policy == POLICY_SRTF || core->config.policy == POLICY_SRSF;
    struct batch_key key;
    memset(&key, 0, sizeof key); /* it is hashed with its gaps */
    key.lane = job->lane;
    key.pattern = job->pattern;
    key.priority = job->priority;
    key.time_limit_ms = job->time_limit_ms;
    key.ran_ms = goes_on ? job->ran_ms : 0;
    key.alone = job->trial ? job->key : 0;
    return key;
}

static void list_turn(struct core *core, struct batch *batch)
{
    struct lane *lane = batch->key.lane;
    if (lane->turn_count == 0) {
        DL_APPEND(core->lanes, lane);
    }
    if (lane->turn_count == lane->turn_room) {
        lane->turn_room = lane->turn_room > 0 ? 2 * lane->turn_room : 1;
        lane->turns = xrealloc(lane->turns, lane->turn_room * sizeof *lane->turns);
    }
    batch->index = lane->turn_count++;
    lane->turns[batch->index] = turn_of(core, batch->jobs);
    lane->best = WALK_UNKNOWN;
}

static void unlist_turn(struct core *core, struct batch *batch)
{
    struct lane *lane = batch->key.lane;
    lane->turns[batch->index] = lane->turns[--lane->turn_count];
    lane->turns[batch->index].batch->index = batch->index;
    lane->best = WALK_UNKNOWN;
    if (lane->turn_count == 0) {
        DL_DELETE(core->lanes, lane);
    }
}

/* Its first job is another one. */
static void renew_turn(struct core *core, struct batch *batch)
{
    struct turn *turn = &batch->key.lane->turns[batch->index];
    bool passed = turn->passed;
    *turn = turn_of(core, batch->jobs);
    turn->passed = passed;
    batch->key.lane->best = WALK_UNKNOWN;
}

static void insert(struct batch *batch, struct job *job)
{
    struct job *last = batch->jobs != NULL ? batch->jobs->prev : NULL;
    if (last == NULL || queue_job_before(last, job)) {
        DL_APPEND(batch->jobs, job);
        return;
    }
    struct job *after = batch->jobs;
    while (queue_job_before(after, job)) {
        after = after->next;
    }
    DL_PREPEND_ELEM(batch->jobs, after, job);
}

void queue_put(struct core *core, struct job *job)
{
    assert(job->batch == NULL);
    const struct batch_key key = key_of(core, job);
    struct batch *batch;
    HASH_FIND(hh, core->batches, &key, sizeof key, batch);
    if (batch != NULL) {
        insert(batch, job);
        job->batch = batch;
        if (batch->jobs != job) {
            trace_line(core, "job %s waits behind %s", job->id, job->prev->id);
            return;
        }
        renew_turn(core, batch);
    } else {
        batch = xzalloc(sizeof *batch);
        batch->key = key;
        HASH_ADD(hh, core->batches, key, sizeof batch->key, batch);
        insert(batch, job);
        job->batch = batch;
        list_turn(core, batch);
    }
    core->place_wanted = true;
}

void queue_take(struct core *core, struct job *job)
{
    struct batch *batch = job->batch;
    bool first = batch->jobs == job;
    DL_DELETE(batch->jobs, job);
    job->prev = job->next = NULL;
    job->batch = NULL;
    if (batch->jobs == NULL) {
        unlist_turn(core, batch);
        HASH_DEL(core->batches, batch);
        free(batch);
    } else if (first) {
        renew_turn(core, batch);
    }
    core->place_wanted = core->place_wanted || first;
}

static int by_key_downwards(const void *a, const void *b)
{
    const struct turn *left = a, *right = b;
    return (left->key < right->key) - (left->key > right->key);
}

/* The order of the turns depends on questions that were asked. What is done to their jobs must not. */
static void sort_turns(struct lane *lane)
{
    qsort(lane->turns, lane->turn_count, sizeof *lane->turns, by_key_downwards);
    for (size_t i = 0; i < lane->turn_count; i++) {
        lane->turns[i].batch->index = i;
    }
    lane->best = WALK_UNKNOWN;
}

void queue_each(struct core *core, struct lane *lane,
                void (*visit)(struct core *core, struct job *job, void *closure), void *closure)
{
    if (lane->turn_count > 1) {
        sort_turns(lane);
    }
    for (size_t i = lane->turn_count; i > 0; i--) { /* the last one takes the place of one that goes */
        struct job *job, *next;
        DL_FOREACH_SAFE (lane->turns[i - 1].batch->jobs, job, next) {
            visit(core, job, closure);
        }
    }
}

/* --- walks ------------------------------------------------------------------------------------------- */

void queue_refresh(struct core *core)
{
    for (struct lane *lane = core->lanes; lane != NULL; lane = lane->next) {
        if (core->now_ms - lane->turned_ms >= REFRESH_MS) {
            lane->turned_ms = core->now_ms;
            for (size_t i = 0; i < lane->turn_count; i++) {
                renew_turn(core, lane->turns[i].batch);
            }
        }
    }
}

void queue_open(const struct core *core)
{
    for (struct lane *lane = core->lanes; lane != NULL; lane = lane->next) {
        lane->closed = false;
        lane->best = WALK_UNKNOWN;
        lane->longest_ms = NEVER;
        lane->tries = 0;
        for (size_t i = 0; i < lane->turn_count; i++) {
            lane->turns[i].passed = false;
        }
    }
}

static void find_best(struct lane *lane)
{
    lane->best = WALK_NONE;
    for (size_t i = 0; i < lane->turn_count; i++) {
        const struct turn *turn = &lane->turns[i];
        bool open = !turn->passed && turn->estimate_ms <= lane->longest_ms;
        if (open && (lane->best == WALK_NONE || queue_before(turn, &lane->turns[lane->best]))) {
            lane->best = (int64_t)i;
        }
    }
}

struct turn *queue_next(const struct core *core)
{
    struct turn *next = NULL;
    for (struct lane *lane = core->lanes; lane != NULL; lane = lane->next) {
        if (lane->closed) {
            continue;
        }
        if (lane->best == WALK_UNKNOWN) {
            find_best(lane);
        }
        if (lane->best == WALK_NONE) {
            lane->closed = true;
        } else if (next == NULL || queue_before(&lane->turns[lane->best], next)) {
            next = &lane->turns[lane->best];
        }
    }
    return next;
}

bool queue_renew(struct core *core, struct turn *turn)
{
    const struct turn old = *turn;
    renew_turn(core, turn->batch);
    return turn->turn != old.turn || turn->estimate_ms != old.estimate_ms;
}

struct job *queue_first(const struct turn *turn)
{
    return turn->batch->jobs;
}

void queue_close(struct lane *lane)
{
    lane->closed = true;
}

void queue_narrow(struct lane *lane, int64_t longest_ms)
{
    lane->longest_ms = longest_ms < lane->longest_ms ? longest_ms : lane->longest_ms;
    lane->best = WALK_UNKNOWN;
}

void queue_pass_owner(struct lane *lane, const struct job *job)
{
    for (size_t i = 0; i < lane->turn_count; i++) {
        const struct job *other = lane->turns[i].batch->jobs;
        lane->turns[i].passed =
            lane->turns[i].passed || (other->project == job->project && other->owner == job->owner);
    }
    lane->best = WALK_UNKNOWN;
}

void queue_pass(struct turn *turn)
{
    struct lane *lane = turn->batch->key.lane;
    turn->passed = true;
    lane->best = WALK_UNKNOWN;
}
