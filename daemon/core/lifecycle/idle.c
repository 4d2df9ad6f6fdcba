/* SPDX-License-Identifier: Apache-2.0 */
/* Watches jobs whose GPUs are nearly unused. It promises that nobody is told of a moment's pause, that the
 * owner of a job that loses its GPUs was told a grace period earlier, also where the controller was started
 * again meanwhile, and that nothing happens
 * while a node has not said what it sees. */
#include "daemon/core/lifecycle/idle.h"

#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/quota/account.h"
#include "proto/base/clock.h"

void idle_heard(struct core *core, struct member *member, int64_t idle_ms)
{
    if (idle_ms < 0) {
        return;
    }
    bool was_idle = member->idle_since_ms != 0 && member->idle_since_ms != NEVER;
    int64_t since_ms = core->now_ms - idle_ms;
    member->idle_since_ms = idle_ms == 0 ? NEVER : since_ms > 0 ? since_ms : 1;
    if (idle_ms > 0 || was_idle || member->attempt->job->idle_since_ms != 0) {
        deadline_note(core, core->now_ms);
    }
}

/* Since when all its GPUs have been idle; NEVER: they are not; 0: a node has not been heard yet. */
static int64_t since(const struct attempt *attempt)
{
    int64_t since_ms = 1;
    for (size_t i = 0; i < attempt->member_count; i++) {
        int64_t here_ms = attempt->members[i]->idle_since_ms;
        if (here_ms == 0) {
            return 0;
        }
        since_ms = here_ms > since_ms ? here_ms : since_ms;
    }
    return since_ms;
}

static void tell(struct core *core, struct attempt *attempt, const struct idle_rule *rule, int64_t since_ms)
{
    struct job *job = attempt->job;
    char since_text[32], until[32];
    job->idle_since_ms = since_ms + core->wall_offset_ms;
    attempt->idle_told_ms = core->now_ms;
    clock_format_wall(job->idle_since_ms, since_text, sizeof since_text);
    clock_format_wall(core->now_ms + rule->grace_ms + core->wall_offset_ms, until, sizeof until);
    trace_line(core, "attempt %s/%lld has idle GPUs", job->id, (long long)attempt->number);
    record_event(core, job, EVENT_IDLE,
                 rule->action == IDLE_PREEMPT
                     ? record_text(core, "{\"since\":\"%s\",\"preempted_at\":\"%s\"}", since_text, until)
                     : record_text(core, "{\"since\":\"%s\"}", since_text));
    record_job(core, job);
}

static void untell(struct core *core, struct attempt *attempt)
{
    struct job *job = attempt->job;
    job->idle_since_ms = 0;
    trace_line(core, "attempt %s/%lld uses its GPUs again", job->id, (long long)attempt->number);
    record_event(core, job, EVENT_BUSY, NULL);
    record_job(core, job);
}

static void give_back(struct core *core, struct attempt *attempt, int64_t since_ms)
{
    char time[32];
    text_from_duration_ms((core->now_ms - since_ms) / 1000 * 1000, time, sizeof time);
    const struct fault fault = {
        .cause = CAUSE_PREEMPTED,
        .rank = -1,
        .text = record_text(core, "its GPUs were idle for %s, and project %s does not allow that", time,
                            account_name(attempt->job->project)),
    };
    attempt_stop(core, attempt, &fault);
}

void idle_watch(struct core *core, struct attempt *attempt)
{
    if (attempt->state != ATTEMPT_STARTED) {
        return;
    }
    int64_t since_ms = since(attempt);
    bool told = attempt->job->idle_since_ms != 0;
    if (since_ms == 0 || (since_ms == NEVER && !told)) {
        return;
    }
    struct idle_rule rule = account_idle_rule(core, attempt->job->project);
    if (since_ms == NEVER || rule.after_ms == 0) {
        if (told) {
            untell(core, attempt);
        }
        return;
    }
    if (!told && core->now_ms >= since_ms + rule.after_ms) {
        tell(core, attempt, &rule, since_ms);
    } else if (!told) {
        deadline_note(core, since_ms + rule.after_ms);
        return;
    }
    if (rule.action != IDLE_PREEMPT) {
        return;
    }
    if (core->now_ms >= attempt->idle_told_ms + rule.grace_ms) {
        give_back(core, attempt, since_ms);
    } else {
        deadline_note(core, attempt->idle_told_ms + rule.grace_ms);
    }
}

bool idle_gives_way(const struct core *core, const struct job *job)
{
    return job->idle_since_ms != 0 && account_idle_rule(core, job->project).action == IDLE_PREEMPT;
}
