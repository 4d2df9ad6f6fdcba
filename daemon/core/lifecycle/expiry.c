/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the time of attempts in each state, and acts when it is over. No attempt waits forever for a silent
 * node before it has started, or for log bytes, or runs longer than its user allowed. A job with an early
 * signal always has the whole requested time between signal and limit, even if the controller restarts. */
#include "daemon/core/lifecycle/expiry.h"

#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/orders.h"
#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "proto/limits.h"

/* How long an attempt may run: up to its early signal, and from there to its limit. */
static int64_t running_time(const struct attempt *attempt)
{
    int64_t limit_ms = attempt->job->time_limit_ms, before_ms = attempt->job->early_signal.before_ms;
    if (limit_ms == 0) {
        return NEVER;
    }
    if (attempt->job->early_signal.signal == EARLY_NONE) {
        return limit_ms;
    }
    if (attempt->warned_ms != 0) {
        return before_ms;
    }
    return limit_ms > before_ms ? limit_ms - before_ms : 0;
}

/* A later attempt has its checkpoint laid out first, as has the first one of a job that goes on from another.
 */
static int64_t preparing_time(const struct attempt *attempt)
{
    return attempt->number > 1 || attempt->job->restores ? RESTORE_EXPIRY_MS : PREPARE_EXPIRY_MS;
}

/* How long an attempt may stay in its current state. */
static int64_t patience(const struct attempt *attempt)
{
    switch (attempt->state) {
    case ATTEMPT_RESERVED:
    case ATTEMPT_PREPARING:
        return preparing_time(attempt);
    case ATTEMPT_STARTED:
        return running_time(attempt);
    case ATTEMPT_FLUSHING:
        return FLUSH_EXPIRY_MS;
    case ATTEMPT_PREPARED:
    case ATTEMPT_KEPT: /* has a moment of its own */
    case ATTEMPT_STOPPING:
    case ATTEMPT_ENDED:
        return NEVER;
    case ATTEMPT_STATE_COUNT:
        break;
    }
    abort();
}

void expiry_set(struct core *core, struct attempt *attempt)
{
    attempt->since_ms = core->now_ms;
    expiry_renew(core, attempt);
}

void expiry_renew(struct core *core, struct attempt *attempt)
{
    int64_t allowed = patience(attempt);
    attempt->deadline_ms = allowed < NEVER - attempt->since_ms ? attempt->since_ms + allowed : NEVER;
    if (attempt->state == ATTEMPT_KEPT) { /* it is known also after a restart */
        attempt->deadline_ms = attempt->job->kept_until_ms - core->wall_offset_ms;
    }
    deadline_note(core, attempt->deadline_ms);
}

int64_t expiry_limit_ms(const struct attempt *attempt)
{
    const struct job_early_signal *early = &attempt->job->early_signal;
    bool warns = early->signal != EARLY_NONE && attempt->warned_ms == 0;
    assert(attempt->state == ATTEMPT_STARTED);
    return attempt->deadline_ms != NEVER && warns ? attempt->deadline_ms + early->before_ms
                                                  : attempt->deadline_ms;
}

static void expire_prepare(struct core *core, struct attempt *attempt)
{
    struct member *silent = NULL;
    for (size_t i = 0; i < attempt->member_count; i++) {
        struct member *member = attempt->members[i];
        if (member->state == MEMBER_ORDERED) {
            silent = silent != NULL ? silent : member;
            node_hold(core, member->node);
        }
    }
    assert(silent != NULL);
    const struct fault fault = {
        .cause = CAUSE_PREPARE_EXPIRED,
        .member = silent,
        .rank = -1,
        .text = record_text(core, "node %s did not get prepared within %lld s", silent->node->name,
                            (long long)preparing_time(attempt) / 1000),
    };
    attempt_stop(core, attempt, &fault);
}

static const char *warning(struct core *core, const struct job *job)
{
    char before[32], limit[32];
    text_from_duration_ms(job->early_signal.before_ms, before, sizeof before);
    text_from_duration_ms(job->time_limit_ms, limit, sizeof limit);
    return record_text(core, "%s before its time limit of %s", before, limit);
}

static void warn(struct core *core, struct attempt *attempt)
{
    struct job *job = attempt->job;
    const char *signal = early_signal_text(job->early_signal.signal);
    const char *reason = warning(core, job);
    trace_line(core, "attempt %s/%lld is warned with %s, %s", job->id, (long long)attempt->number, signal,
               reason);
    record_event(core, job, EVENT_WARNED,
                 record_text(core, "{\"signal\":\"%s\",\"reason\":\"%s\"}", signal, reason));
    attempt->warned_ms = job->event_ms;
    record_attempt(core, attempt);
    for (size_t i = 0; i < attempt->member_count; i++) {
        if (member_is_up(attempt->members[i])) {
            orders_changed(core, attempt->members[i]);
        }
    }
    expiry_set(core, attempt);
}

static void expire_time_limit(struct core *core, struct attempt *attempt)
{
    char limit[32];
    text_from_duration_ms(attempt->job->time_limit_ms, limit, sizeof limit);
    const struct fault fault = {
        .cause = CAUSE_TIME_LIMIT,
        .rank = -1,
        .text = record_text(core, "ran longer than its time limit of %s", limit),
    };
    attempt_stop(core, attempt, &fault);
}

void expiry_due(struct core *core, struct attempt *attempt)
{
    switch (attempt->state) {
    case ATTEMPT_RESERVED:
    case ATTEMPT_PREPARING:
        expire_prepare(core, attempt);
        return;
    case ATTEMPT_STARTED:
        if (attempt->job->early_signal.signal != EARLY_NONE && attempt->warned_ms == 0) {
            warn(core, attempt);
        } else {
            expire_time_limit(core, attempt);
        }
        return;
    case ATTEMPT_KEPT:
        attempt_end_look(core, attempt, "its time to be looked at is over");
        return;
    case ATTEMPT_FLUSHING:
        attempt_give_up_logs(core, attempt);
        return;
    case ATTEMPT_PREPARED:
    case ATTEMPT_STOPPING:
    case ATTEMPT_ENDED:
    case ATTEMPT_STATE_COUNT:
        break;
    }
    abort();
}
