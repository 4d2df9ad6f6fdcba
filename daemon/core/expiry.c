/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the time limits of attempts: how long one may stay in its state, and what happens then. It promises
 * that no attempt waits for ever for a node that is silent about it before it has started, for log bytes, or
 * longer than its user allowed. */
#include "daemon/core/expiry.h"

#include "daemon/core/attempt.h"
#include "daemon/core/node.h"
#include "daemon/core/record.h"
#include "daemon/core/state.h"
#include "daemon/core/tick.h"
#include "proto/limits.h"

/* How long an attempt may stay in its present state. */
static int64_t patience(const struct attempt *attempt)
{
    switch (attempt->state) {
    case ATTEMPT_RESERVED:
    case ATTEMPT_PREPARING:
        return PREPARE_EXPIRY_MS;
    case ATTEMPT_STARTED:
        return attempt->job->time_limit_ms > 0 ? attempt->job->time_limit_ms : NEVER;
    case ATTEMPT_FLUSHING:
        return FLUSH_EXPIRY_MS;
    case ATTEMPT_PREPARED:
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
    int64_t allowed = patience(attempt);
    attempt->deadline_ms = allowed < NEVER - core->now_ms ? core->now_ms + allowed : NEVER;
    tick_note(core, attempt->deadline_ms);
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
        .text = record_text(core, "node %s did not get prepared within %d s", silent->node->name,
                            PREPARE_EXPIRY_MS / 1000),
    };
    attempt_stop(core, attempt, &fault);
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
        expire_time_limit(core, attempt);
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
