/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the values of all states, kinds and choices to their spellings and back, and returns the facts of
 * their lists. Text and value map one to one, and case matters. A value outside its list is a defect and
 * aborts. The tables of the core define the transitions. */
#include "proto/states.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The index of text among count spellings; count when there is none. */
static unsigned find(const char *const *spellings, unsigned count, const char *text)
{
    unsigned i = 0;
    while (i < count && strcmp(spellings[i], text) != 0) {
        i++;
    }
    return i;
}

/* Checks that a value is an index of its list; any other value means corrupted memory. */
static unsigned checked(unsigned value, unsigned count)
{
    if (value >= count) {
        abort();
    }
    return value;
}

#define SPELLED_BY_NAME(name, ...)           #name,
#define SPELLED_BY_TEXT(name, spelling, ...) spelling,

#define DEFINE_SPELLINGS(type, LIST, SPELLED)                                                                \
    static const char *const type##_spellings[] = {LIST(SPELLED)};                                           \
    enum { type##_count = sizeof type##_spellings / sizeof type##_spellings[0] };                            \
                                                                                                             \
    const char *type##_text(enum type value)                                                                 \
    {                                                                                                        \
        return type##_spellings[checked((unsigned)value, type##_count)];                                     \
    }                                                                                                        \
                                                                                                             \
    bool type##_from_text(const char *text, enum type *ret_value)                                            \
    {                                                                                                        \
        unsigned value = find(type##_spellings, type##_count, text);                                         \
        if (value == type##_count) {                                                                         \
            return false;                                                                                    \
        }                                                                                                    \
        *ret_value = (enum type)value;                                                                       \
        return true;                                                                                         \
    }

DEFINE_SPELLINGS(job_state, JOB_STATES, SPELLED_BY_NAME)
DEFINE_SPELLINGS(attempt_state, ATTEMPT_STATES, SPELLED_BY_NAME)
DEFINE_SPELLINGS(member_state, MEMBER_STATES, SPELLED_BY_NAME)
DEFINE_SPELLINGS(node_state, NODE_STATES, SPELLED_BY_NAME)
DEFINE_SPELLINGS(gpu_state, GPU_STATES, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(cause, CAUSES, SPELLED_BY_NAME)
DEFINE_SPELLINGS(event_kind, EVENT_KINDS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(order_phase, ORDER_PHASES, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(report_kind, REPORT_KINDS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(staging_state, STAGING_STATES, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(role, ROLES, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(launch_mode, LAUNCH_MODES, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(on_disconnect, DISCONNECTS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(stream, STREAMS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(result_kind, RESULT_KINDS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(pool_kind, POOL_KINDS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(use_reserved, RESERVED_CHOICES, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(isolation, ISOLATIONS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(policy, POLICIES, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(claim, CLAIMS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(dependency, DEPENDENCIES, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(placement, PLACEMENTS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(confidence, CONFIDENCES, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(wait_reason, WAIT_REASONS, SPELLED_BY_NAME)
DEFINE_SPELLINGS(node_test, NODE_TESTS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(account_kind, ACCOUNT_KINDS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(early_signal, EARLY_SIGNALS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(idle_action, IDLE_ACTIONS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(webhook_scope, WEBHOOK_SCOPES, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(delivery_state, DELIVERY_STATES, SPELLED_BY_NAME)
DEFINE_SPELLINGS(schedule_overlap, SCHEDULE_OVERLAPS, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(schedule_missed, SCHEDULE_MISSES, SPELLED_BY_TEXT)
DEFINE_SPELLINGS(schedule_outcome, SCHEDULE_OUTCOMES, SPELLED_BY_TEXT)

#define SECOND(name, second, ...)  second,
#define THIRD(name, second, third) third,

bool job_state_terminal(enum job_state state)
{
    static const bool terminal[] = { JOB_STATES(SECOND) };
    return terminal[checked((unsigned)state, JOB_STATE_COUNT)];
}

bool attempt_state_holds_gpus(enum attempt_state state)
{
    static const bool holds[] = { ATTEMPT_STATES(SECOND) };
    return holds[checked((unsigned)state, ATTEMPT_STATE_COUNT)];
}

bool stream_is_output(enum stream stream)
{
    return stream == STREAM_STDOUT || stream == STREAM_STDERR;
}

bool cause_user_fault(enum cause cause)
{
    static const bool user_fault[] = {CAUSES(SECOND)};
    return user_fault[checked((unsigned)cause, CAUSE_COUNT)];
}

const char *cause_sentence(enum cause cause)
{
    static const char *const sentences[] = {CAUSES(THIRD)};
    return sentences[checked((unsigned)cause, CAUSE_COUNT)];
}
