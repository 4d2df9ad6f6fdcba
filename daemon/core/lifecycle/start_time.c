/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the jobs that wait for a moment of the wall clock, in a heap with the earliest first. A job is
 * BLOCKED until its moment, unless it is held. After a restart a moment that has passed meanwhile is due at
 * once. */
#include "daemon/core/lifecycle/start_time.h"

#include "daemon/core/fleet/departure.h"
#include "daemon/core/model/state.h"

/* --- the heap: job->timed is 1 + the index of the job ----------------------------------------------------
 */

static bool is_before(const struct job *a, const struct job *b)
{
    return a->not_before_ms != b->not_before_ms ? a->not_before_ms < b->not_before_ms : a->key < b->key;
}

static void put(struct core *core, size_t at, struct job *job)
{
    core->timed[at] = job;
    job->timed = (uint32_t)at + 1;
}

/* Moves the job from a free place up to where it belongs. */
static void rise(struct core *core, size_t at, struct job *job)
{
    while (at > 0 && is_before(job, core->timed[(at - 1) / 2])) {
        put(core, at, core->timed[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(core, at, job);
}

/* The same down. */
static void sink(struct core *core, size_t at, struct job *job)
{
    for (size_t child; (child = 2 * at + 1) < core->timed_count; at = child) {
        if (child + 1 < core->timed_count && is_before(core->timed[child + 1], core->timed[child])) {
            child++;
        }
        if (!is_before(core->timed[child], job)) {
            break;
        }
        put(core, at, core->timed[child]);
    }
    put(core, at, job);
}

static void push(struct core *core, struct job *job)
{
    if (core->timed_count == core->timed_room) {
        core->timed_room = 2 * core->timed_room + 16;
        core->timed = xrealloc(core->timed, core->timed_room * sizeof core->timed[0]);
    }
    rise(core, core->timed_count++, job);
}

/* --- moments ---------------------------------------------------------------------------------------------
 */

void start_time_set(struct core *core, struct job *job, int64_t not_before_ms)
{
    assert(job->timed == 0);
    bool passed = core->booted && departure_time(core, not_before_ms) <= core->now_ms;
    if (not_before_ms == 0 || passed) {
        return;
    }
    job->not_before_ms = not_before_ms;
    push(core, job);
    deadline_note(core, departure_time(core, not_before_ms));
}

void start_time_forget(struct core *core, struct job *job)
{
    if (job->timed == 0) {
        return;
    }
    size_t at = job->timed - 1;
    struct job *last = core->timed[--core->timed_count];
    job->timed = 0;
    job->not_before_ms = 0;
    if (last != job) {
        rise(core, at, last);
        sink(core, last->timed - 1, last);
    }
}

struct job *start_time_next(struct core *core)
{
    struct job *job = core->timed_count > 0 ? core->timed[0] : NULL;
    if (job == NULL) {
        return NULL;
    }
    int64_t due_ms = departure_time(core, job->not_before_ms);
    if (due_ms > core->now_ms) {
        deadline_note(core, due_ms);
        return NULL;
    }
    start_time_forget(core, job);
    return job;
}

void start_time_clear(struct core *core)
{
    free(core->timed);
    core->timed = NULL;
    core->timed_count = core->timed_room = 0;
}

void start_time_check(const struct core *core)
{
    for (size_t i = 0; i < core->timed_count; i++) {
        const struct job *job = core->timed[i];
        assert(job->timed == i + 1 && job->not_before_ms != 0 && job_is_kept_back(job));
        assert(i == 0 || !is_before(job, core->timed[(i - 1) / 2]));
    }
}
