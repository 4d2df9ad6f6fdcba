/* SPDX-License-Identifier: Apache-2.0 */
/* Records the times of a job's start. Times never decrease within an attempt. The time of a commit is
 * written with the attempt's next row, so that it costs no row of its own. A time that nobody reported is
 * not recorded. Durations that a node measured are stored as they are: the clocks of node and controller are
 * never compared. */
#include "daemon/core/lifecycle/timing.h"

#include <stdlib.h>

#include "daemon/core/model/state.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void timing_open(struct core *core, const struct input *input)
{
    int64_t boot_us = input->at_us != 0 ? input->at_us : core->now_ms * 1000;
    core->at_us = larger(core->at_us, boot_us + core->steady_offset_ms * 1000);
}

void timing_clear(struct core *core)
{
    free(core->moments);
}

/* --- moments that a step has ---------------------------------------------------------------------------- */

static int64_t latest(const struct attempt *attempt)
{
    const struct attempt_timing *timing = &attempt->timing;
    int64_t most = larger(larger(timing->queued_us, timing->placed_us), larger(timing->started_us, 1));
    for (size_t i = 0; i < attempt->member_count; i++) {
        const struct member_timing *member = &attempt->members[i]->timing;
        most = larger(most, larger(member->ready_us, member->heard_us));
    }
    return most;
}

/* Between two starts of the controller the wall clock may have been set. */
static int64_t now_of(const struct core *core, const struct attempt *attempt)
{
    return larger(core->at_us - attempt->timing.received_us, latest(attempt));
}

/* Beyond the limit a moment stays unknown. */
static void await_commit(struct core *core, enum durable what, uint64_t id, int64_t received_us)
{
    if (core->moments == NULL) {
        core->moments = xalloc(LIMIT_COMMIT_MOMENTS * sizeof *core->moments);
    }
    if (core->moment_count < LIMIT_COMMIT_MOMENTS) {
        core->moments[core->moment_count++] = (struct commit_moment){what, id, received_us};
    }
}

void timing_submit(struct core *core, struct job *job, const struct input *input)
{
    int64_t arrived_us = input->arrived_us + core->steady_offset_ms * 1000;
    job->received_us = input->arrived_us != 0 && arrived_us < core->at_us ? arrived_us : core->at_us;
    job->fresh = true;
    await_commit(core, DURABLE_JOB, (uint64_t)job->key, job->received_us);
}

void timing_share(struct job *task, const struct job *whole)
{
    task->received_us = whole->received_us;
    task->queued_us = whole->queued_us;
    task->fresh = whole->fresh;
}

void timing_place(struct core *core, struct attempt *attempt)
{
    const struct job *job = attempt->job;
    attempt->timing = (struct attempt_timing){.received_us = job->received_us, .queued_us = job->queued_us};
    attempt->timing.placed_us = now_of(core, attempt);
    if (job->fresh) {
        await_commit(core, DURABLE_ATTEMPT, attempt->attempt_id, job->received_us);
    }
}

void timing_start(struct core *core, struct attempt *attempt)
{
    await_commit(core, DURABLE_START, attempt->attempt_id, attempt->timing.received_us);
}

void timing_end(struct core *core, struct attempt *attempt)
{
    attempt->timing.settled_us = now_of(core, attempt);
    await_commit(core, DURABLE_END, attempt->attempt_id, attempt->timing.received_us);
}

/* --- moments of a commit -------------------------------------------------------------------------------- */

static void note_job(struct core *core, int64_t key, int64_t queued_us)
{
    struct job *job = job_by_key(core, key);
    if (job != NULL) {
        job->queued_us = queued_us;
        job->fresh = false;
    }
}

static void note_attempt(struct core *core, uint64_t attempt_id, int64_t queued_us)
{
    struct attempt *attempt = attempt_find(core, attempt_id);
    if (attempt != NULL) {
        attempt->timing.queued_us = queued_us;
        if (attempt->job != NULL) {
            note_job(core, attempt->job->key, queued_us);
        }
    }
}

static void note_start(struct core *core, uint64_t attempt_id, int64_t started_us)
{
    struct attempt *attempt = attempt_find(core, attempt_id);
    if (attempt != NULL) {
        attempt->timing.started_us = started_us;
    }
}

static void note_moment(struct core *core, const struct commit_moment *moment, int64_t since_us)
{
    switch (moment->what) {
    case DURABLE_JOB:
        note_job(core, (int64_t)moment->id, since_us);
        return;
    case DURABLE_ATTEMPT:
        note_attempt(core, moment->id, since_us);
        return;
    case DURABLE_START:
        note_start(core, moment->id, since_us);
        return;
    case DURABLE_END: /* too late to be written */
        return;
    }
    abort();
}

void timing_committed(struct core *core, int64_t at_us,
                      void (*ended)(void *closure, uint64_t attempt_id, int64_t visible_us), void *closure)
{
    core->at_us = larger(core->at_us, at_us + core->steady_offset_ms * 1000);
    for (size_t i = 0; i < core->moment_count; i++) {
        const struct commit_moment *moment = &core->moments[i];
        int64_t since_us = larger(core->at_us - moment->received_us, 1);
        if (moment->what == DURABLE_END) {
            ended(closure, moment->id, since_us);
        } else {
            note_moment(core, moment, since_us);
        }
    }
    core->moment_count = 0;
}

/* --- what nodes say ------------------------------------------------------------------------------------- */

static void keep(int64_t *ours, int64_t said)
{
    if (said > 0) {
        *ours = said;
    }
}

/* The order that brought the report about was the last that left before it. */
static void keep_sent(const struct core *core, const struct attempt *attempt, int64_t sent_us, int64_t *ours)
{
    if (*ours == 0 && sent_us != 0) {
        *ours = larger(sent_us + core->steady_offset_ms * 1000 - attempt->timing.received_us, 1);
    }
}

static char *marks_text(const struct node_timing *timing)
{
    struct text json = {0};
    for (size_t i = 0; i < timing->mark_count; i++) {
        const struct timing_mark *mark = &timing->marks[i];
        text_printf(&json, "%s{\"name\":\"%s\",\"rank\":%lld,\"after_us\":%lld}", i > 0 ? "," : "[",
                    mark->name, (long long)mark->rank, (long long)mark->after_us);
    }
    text_append(&json, "]");
    return json.bytes;
}

/* The first time that it says so. */
static void keep_said(const struct core *core, const struct attempt *attempt, int64_t *ours)
{
    if (*ours == 0) {
        *ours = now_of(core, attempt);
    }
}

void timing_take(struct core *core, struct member *member, const struct report_message *report)
{
    struct member_timing *ours = &member->timing;
    const struct attempt *attempt = member->attempt;
    const struct node_timing *said = &report->timing;
    bool alone = attempt->member_count == 1;
    keep_sent(core, attempt, alone ? report->start_sent_us : report->prepare_sent_us, &ours->ordered_us);
    keep_sent(core, attempt, alone ? 0 : report->start_sent_us, &ours->told_us);
    if (report->kind == REPORT_PREPARED) {
        keep_said(core, attempt, &ours->ready_us);
    } else if (report->kind == REPORT_RUNNING || report->rank_count > 0) {
        keep_said(core, attempt, &ours->heard_us);
    }
    keep(&ours->prepared_us, said->prepared_us);
    keep(&ours->begun_us, said->begun_us);
    keep(&ours->running_us, said->running_us);
    keep(&ours->output_us, said->output_us);
    keep(&ours->ended_us, said->ended_us);
    if (report->start != NULL) {
        replace_text(&member->start, report->start);
    }
    if (said->mark_count > 0) {
        row_free(&member->marks);
        member->marks = marks_text(said);
    }
}
