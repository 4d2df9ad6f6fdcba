/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the moments of a controller and of its nodes on one line. A node measures its moments from an order,
 * and they are counted from the moment at which that order left, so that no two clocks are compared. */
#include "daemon/store/moments.h"

static int64_t since(int64_t from_ms, int64_t at_ms)
{
    return at_ms == 0 ? 0 : at_ms > from_ms ? (at_ms - from_ms) * 1000 : 1;
}

struct attempt_timing moments_of_attempt(const struct attempt_row *row, int64_t created_ms)
{
    struct attempt_timing timing = row->timing;
    if (timing.received_us == 0) {
        timing.received_us = created_ms * 1000;
        timing.placed_us = since(created_ms, row->created_ms);
        timing.started_us = since(created_ms, row->started_ms);
        timing.settled_us = since(created_ms, row->ended_ms);
    }
    return timing;
}

int64_t moments_behind(int64_t base_us, int64_t after_us)
{
    return base_us > 0 && after_us > 0 ? base_us + after_us : 0;
}

/* When the order left that started the ranks. If nobody noted that, the moment when the start was on disk. */
static int64_t base_of(const struct attempt_timing *attempt, const struct member_timing *timing)
{
    if (timing->told_us > 0) {
        return timing->told_us;
    }
    bool gang = timing->ready_us > 0;
    return !gang && timing->ordered_us > 0 ? timing->ordered_us : attempt->started_us;
}

struct member_moments moments_of_member(const struct attempt_timing *attempt, const struct member_row *row)
{
    struct member_moments moments = {.base_us = base_of(attempt, &row->timing), .at = row->timing};
    struct member_timing *at = &moments.at;
    at->prepared_us = moments_behind(at->ordered_us, at->prepared_us);
    at->begun_us = moments_behind(moments.base_us, at->begun_us);
    at->running_us = moments_behind(moments.base_us, at->running_us);
    at->output_us = moments_behind(moments.base_us, at->output_us);
    at->ended_us = moments_behind(moments.base_us, at->ended_us);
    return moments;
}
