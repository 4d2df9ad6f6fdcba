/* SPDX-License-Identifier: Apache-2.0 */
/* Divides what an attempt held among the hours in which it held it. It promises that the parts add up to the
 * whole, to the millisecond. Live attempts have no part yet: whoever shows the use of now adds them. */
#include "daemon/core/quota/hours.h"

#include "daemon/core/model/attempt.h"
#include "daemon/core/model/job.h"
#include "daemon/core/model/member.h"
#include "daemon/core/model/node.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/quota/account_state.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

/* The part of a sum that lies in the first `done` of `all` ms. */
static int64_t part(int64_t sum, int64_t done_ms, int64_t all_ms)
{
    return done_ms == all_ms ? sum : (int64_t)((double)sum * (double)done_ms / (double)all_ms);
}

static int64_t between(int64_t sum, int64_t from_ms, int64_t until_ms, int64_t all_ms)
{
    return part(sum, until_ms, all_ms) - part(sum, from_ms, all_ms);
}

/* Of an attempt that lasted for very long, what lies more than LIMIT_HOURS_CHARGED before its end counts for
 * the first hour that has a row. */
void hours_charge(struct core *core, const struct attempt *attempt)
{
    const struct job *job = attempt->job;
    if (account_gpus(attempt) == 0) {
        return;
    }
    const int64_t begin_ms = attempt->created_ms, all_ms = attempt->ended_ms - begin_ms;
    const int64_t last_ms = attempt->ended_ms - attempt->ended_ms % HOUR_MS;
    const int64_t first_ms = last_ms - (LIMIT_HOURS_CHARGED - 1) * HOUR_MS;
    struct member_use use = {0};
    for (size_t i = 0; i < attempt->member_count; i++) {
        use.measured_ms += attempt->members[i]->use.measured_ms;
        use.idle_ms += attempt->members[i]->use.idle_ms;
        use.energy_mj += attempt->members[i]->use.energy_mj;
    }
    int64_t at_ms = begin_ms - begin_ms % HOUR_MS, from_ms = 0;
    for (at_ms = at_ms > first_ms ? at_ms : first_ms; at_ms <= last_ms; at_ms += HOUR_MS) {
        int64_t until_ms = at_ms < last_ms ? at_ms + HOUR_MS - begin_ms : all_ms;
        record_hour(core, &(struct hour_row){
                              .hour_ms = at_ms,
                              .project = account_name(job->project),
                              .owner = account_name(job->owner),
                              .pool = attempt->pool,
                              .gpu_type = attempt->gpu_type,
                              .reserved = attempt->members[0]->node->pool_kind == POOL_RESERVED,
                              .attempts = at_ms == last_ms,
                              .gpu_ms = account_gpus(attempt) * (until_ms - from_ms),
                              .measured_ms = between(use.measured_ms, from_ms, until_ms, all_ms),
                              .idle_ms = between(use.idle_ms, from_ms, until_ms, all_ms),
                              .energy_mj = between(use.energy_mj, from_ms, until_ms, all_ms),
                          });
        from_ms = until_ms;
    }
}
