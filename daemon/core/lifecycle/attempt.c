/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the states of attempts. No rank is told to start before all nodes are prepared. The first fault
 * counts, and a lost node counts as earlier than a rank that failed because of it. Devices become free
 * exactly when every member is gone and flushed or given up. member.c runs a node's part; job.c decides about
 * the job. */
#include "daemon/core/lifecycle/attempt.h"

#include <string.h>

#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/orders.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/lifecycle/availability.h"
#include "daemon/core/lifecycle/expiry.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/lifecycle/member.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/rule.h"
#include "daemon/core/model/state.h"
#include "daemon/core/lifecycle/timing.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/quota/hours.h"
#include "proto/base/clock.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

/* The events of an attempt. */
enum attempt_event {
    ATTEMPT_EVENT_PREPARED, /* one more member is prepared */
    ATTEMPT_EVENT_ALL_PREPARED,
    ATTEMPT_EVENT_START,
    ATTEMPT_EVENT_KEEP, /* a rank failed, and the job wants its nodes kept */
    ATTEMPT_EVENT_STOP,
    ATTEMPT_EVENT_GONE,    /* no member is left, but log bytes are still arriving */
    ATTEMPT_EVENT_FLUSHED, /* no member is left, and nothing is still arriving */
    ATTEMPT_EVENT_FLUSH_EXPIRED,
};

/* --- the table ------------------------------------------------------------------------------------------ */

static void start(struct core *core, struct attempt *attempt);
static void tell_start(struct core *core, struct attempt *attempt);
static void end_look(struct core *core, struct attempt *attempt);
static void end(struct core *core, struct attempt *attempt);
static void end_cut(struct core *core, struct attempt *attempt);

static const struct attempt_rule {
    enum attempt_state from;
    enum attempt_event event;
    enum attempt_state to;
    void (*effect)(struct core *core, struct attempt *attempt); /* or NULL */
} rules[] = {
    {ATTEMPT_RESERVED, ATTEMPT_EVENT_PREPARED, ATTEMPT_PREPARING, NULL},
    {ATTEMPT_PREPARING, ATTEMPT_EVENT_ALL_PREPARED, ATTEMPT_PREPARED, start},
    {ATTEMPT_RESERVED, ATTEMPT_EVENT_START, ATTEMPT_STARTED, tell_start}, /* gang on one node */
    {ATTEMPT_PREPARED, ATTEMPT_EVENT_START, ATTEMPT_STARTED, tell_start},
    {ATTEMPT_RESERVED, ATTEMPT_EVENT_STOP, ATTEMPT_STOPPING, NULL},
    {ATTEMPT_PREPARING, ATTEMPT_EVENT_STOP, ATTEMPT_STOPPING, NULL},
    {ATTEMPT_STARTED, ATTEMPT_EVENT_STOP, ATTEMPT_STOPPING, NULL},
    {ATTEMPT_STARTED, ATTEMPT_EVENT_KEEP, ATTEMPT_KEPT, NULL},
    {ATTEMPT_KEPT, ATTEMPT_EVENT_STOP, ATTEMPT_STOPPING, end_look},
    {ATTEMPT_STARTED, ATTEMPT_EVENT_GONE, ATTEMPT_FLUSHING, NULL},
    {ATTEMPT_STOPPING, ATTEMPT_EVENT_GONE, ATTEMPT_FLUSHING, NULL},
    {ATTEMPT_STARTED, ATTEMPT_EVENT_FLUSHED, ATTEMPT_ENDED, end},
    {ATTEMPT_STOPPING, ATTEMPT_EVENT_FLUSHED, ATTEMPT_ENDED, end},
    {ATTEMPT_FLUSHING, ATTEMPT_EVENT_FLUSHED, ATTEMPT_ENDED, end},
    {ATTEMPT_FLUSHING, ATTEMPT_EVENT_FLUSH_EXPIRED, ATTEMPT_ENDED, end_cut},
};

DEFINE_RULE_OF(attempt)

static void note_leaving(struct core *core, struct attempt *attempt, enum attempt_state from)
{
    if (from != ATTEMPT_STOPPING) {
        availability_leave(core, attempt);
    }
}

/* false: the table has no such transition, because the event came too late or twice. */
static bool fire(struct core *core, struct attempt *attempt, enum attempt_event event)
{
    const struct attempt_rule *rule = rule_of(attempt->state, event);
    if (rule == NULL) {
        return false;
    }
    trace_line(core, "attempt %s/%lld %s -> %s", attempt->job->id, (long long)attempt->number,
               attempt_state_text(rule->from), attempt_state_text(rule->to));
    attempt->state = rule->to;
    if (rule->from == ATTEMPT_KEPT) { /* its rank failed when the look began */
        expiry_renew(core, attempt);
    } else if (rule->to != ATTEMPT_PREPARING) { /* there the expiry of RESERVED continues */
        expiry_set(core, attempt);
    }
    record_attempt(core, attempt);
    if (attempt_is_leaving(attempt)) {
        core->place_wanted = true;
        note_leaving(core, attempt, rule->from);
    }
    if (rule->effect != NULL) {
        rule->effect(core, attempt);
    }
    return true;
}

/* --- lists ---------------------------------------------------------------------------------------------- */

struct attempt *attempt_alloc(struct core *core, struct job *job, uint64_t attempt_id, int64_t number)
{
    struct attempt *attempt = xzalloc(sizeof *attempt);
    attempt->attempt_id = attempt_id;
    attempt->job = job;
    attempt->job_key = job->key;
    attempt->number = number;
    attempt->failed_rank = -1;
    attempt->deadline_ms = NEVER;
    HASH_ADD(hh, core->attempts_by_attempt_id, attempt_id, sizeof attempt->attempt_id, attempt);
    return attempt;
}

void attempt_free(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->member_count; i++) {
        member_free(attempt->members[i]);
    }
    free(attempt->members);
    ATTEMPT_ROW(ROW_FREE, attempt->row)
    free(attempt->note);
    free(attempt);
}

void attempt_list_live(struct core *core, struct attempt *attempt)
{
    struct attempt *before = core->attempts != NULL ? core->attempts->prev : NULL;
    while (before != NULL && before->attempt_id > attempt->attempt_id) {
        before = before != core->attempts ? before->prev : NULL;
    }
    if (before != NULL) {
        DL_APPEND_ELEM(core->attempts, before, attempt);
    } else {
        DL_PREPEND(core->attempts, attempt);
    }
}

/* Removes an ended attempt that no message can refer to any more. */
static void forget(struct core *core, struct attempt *attempt)
{
    assert(attempt->state == ATTEMPT_ENDED);
    DL_DELETE(core->ended, attempt);
    core->ended_count--;
    HASH_DEL(core->attempts_by_attempt_id, attempt);
    if (attempt->job != NULL) {
        assert(attempt->job->attempt == attempt); /* an earlier attempt goes when the next one is made */
        attempt->job->attempt = NULL;
    }
    LL_PREPEND(core->released_attempts, attempt);
}

void attempt_list_ended(struct core *core, struct attempt *attempt)
{
    DL_APPEND(core->ended, attempt);
    core->ended_count++;
}

/* --- creation ------------------------------------------------------------------------------------------- */

static const char *placed_detail(struct core *core, const struct attempt *attempt,
                                 const struct partition *partition)
{
    struct text json = {0};
    text_append(&json, "{\"pool\":");
    text_json_string(&json, partition->pool, strlen(partition->pool));
    text_append(&json, ",\"gpu_type\":");
    text_json_string(&json, partition->type, strlen(partition->type));
    text_printf(&json, ",\"nodes\":%zu}", attempt->member_count);
    const char *detail = record_text(core, "%s", json.bytes);
    text_finish(&json);
    return detail;
}

static const char *placed_note(struct core *core, const struct attempt *attempt)
{
    if (core->trace == NULL) {
        return NULL;
    }
    struct text places = {0};
    for (size_t i = 0; i < attempt->member_count; i++) {
        trace_place(attempt->members[i], &places);
    }
    const char *note = record_text(core, " on%s", places.bytes);
    text_finish(&places);
    return note;
}

static uint64_t next_attempt_id(struct core *core)
{
    assert(core->attempt_id_count < UINT32_MAX);
    return (uint64_t)core->config.incarnation << 32 | ++core->attempt_id_count;
}

void attempt_create(struct core *core, struct job *job, const struct share *shares, size_t count,
                    int64_t estimate_ms)
{
    assert(job_is_waiting(job) && (job->attempt == NULL || !attempt_is_live(job->attempt)));
    const struct partition *partition = shares[0].capacity->partition;
    if (job->attempt != NULL) {
        forget(core, job->attempt);
    }
    struct attempt *attempt = attempt_alloc(core, job, next_attempt_id(core), ++job->attempt_number);
    attempt_list_live(core, attempt);
    job->attempt = attempt;
    attempt->estimate_ms = estimate_ms;
    attempt->pool = xstrdup(partition->pool);
    attempt->gpu_type = xstrdup(partition->type);
    attempt->claim = account_claim(core, job, partition);
    free(job->pool);
    job->pool = xstrdup(partition->pool);
    attempt->members = xalloc(count * sizeof(struct member *));
    int64_t first_rank = 0;
    for (size_t i = 0; i < count; i++) {
        attempt->members[i] = member_create(core, attempt, &shares[i], (int64_t)i, first_rank);
        first_rank += attempt->members[i]->local_ranks;
        attempt->member_count++;
    }
    bool fired = job_fire(core, job, JOB_EVENT_PLACE, placed_detail(core, attempt, partition),
                          placed_note(core, attempt));
    assert(fired);
    attempt->created_ms = job->event_ms;
    timing_place(core, attempt);
    attempt->held_since_ms = core->steady_ms;
    account_take(core, attempt);
    availability_add(core, attempt);
    expiry_set(core, attempt);
    record_attempt_birth(core, attempt);
    for (size_t i = 0; i < count; i++) {
        record_member_birth(core, attempt->members[i]);
        orders_changed(core, attempt->members[i]);
    }
    if (count == 1) {
        fire(core, attempt, ATTEMPT_EVENT_START);
    }
}

/* --- start ---------------------------------------------------------------------------------------------- */

/* Starts the gang: this decision must be on disk before any node hears of it. */
static void start(struct core *core, struct attempt *attempt)
{
    core->change_set.lazy = false;
    fire(core, attempt, ATTEMPT_EVENT_START);
}

static void tell_start(struct core *core, struct attempt *attempt)
{
    record_event(core, attempt->job, EVENT_STARTED, NULL);
    attempt->started_ms = attempt->job->event_ms;
    attempt->ran_since_ms = core->steady_ms;
    timing_start(core, attempt);
    for (size_t i = 0; i < attempt->member_count; i++) {
        orders_changed(core, attempt->members[i]);
    }
}

static bool all_in(const struct attempt *attempt, bool (*test)(const struct member *member))
{
    for (size_t i = 0; i < attempt->member_count; i++) {
        if (!test(attempt->members[i])) {
            return false;
        }
    }
    return true;
}

static bool is_prepared(const struct member *member)
{
    return member->state == MEMBER_PREPARED;
}

/* Whether the member has run. Members that have exited have: in a STARTED gang no member exits otherwise
 * without a fault. */
static bool has_run(const struct member *member)
{
    return member->state == MEMBER_RUNNING || member->state == MEMBER_EXITED ||
           member->state == MEMBER_FLUSHED;
}

void attempt_note_prepared(struct core *core, struct attempt *attempt)
{
    fire(core, attempt, ATTEMPT_EVENT_PREPARED);
    if (all_in(attempt, is_prepared)) {
        fire(core, attempt, ATTEMPT_EVENT_ALL_PREPARED);
    }
}

void attempt_note_running(struct core *core, struct attempt *attempt)
{
    bool started = attempt->state == ATTEMPT_STARTED || attempt->state == ATTEMPT_KEPT;
    if (started && all_in(attempt, has_run)) {
        assert(attempt->job->state == JOB_PLACED); /* the last member has just started */
        job_fire(core, attempt->job, JOB_EVENT_RUN, NULL, NULL);
    }
}

/* --- stop ----------------------------------------------------------------------------------------------- */

static void keep_fault(struct attempt *attempt, const struct fault *fault)
{
    assert(attempt->cause == CAUSE_NONE && fault->cause != CAUSE_NONE && fault->text != NULL);
    attempt->cause = fault->cause;
    attempt->cause_text = xstrdup(fault->text);
    attempt->failed_rank = fault->rank;
    attempt->failed_code = fault->code;
    attempt->worst_code = fault->code;
    attempt->failed_node = fault->member != NULL ? fault->member->node->name : NULL;
}

/* Tells the members that are up to stop, or to end their ranks, and counts them. */
static size_t tell_stop(struct core *core, struct attempt *attempt, const struct member *except)
{
    size_t up = 0;
    for (size_t i = 0; i < attempt->member_count; i++) {
        struct member *member = attempt->members[i];
        if (member_is_up(member)) {
            up++;
            if (member != except) {
                orders_changed(core, member);
            }
        }
    }
    return up;
}

static bool is_infrastructures(enum cause cause)
{
    return cause == CAUSE_NODE_LOST || cause == CAUSE_SHIM_LOST || cause == CAUSE_PORT_TAKEN;
}

/* Whether the fault may be older than the failure of the rank, although it is reported later. A look may lie
 * between the two. */
static bool may_be_older(const struct core *core, const struct attempt *attempt, const struct fault *fault)
{
    if (fault->cause == CAUSE_NODE_LOST && fault->member->state == MEMBER_LOST) {
        return fault->member->node->heartbeat_ms <= attempt->since_ms;
    }
    return attempt->job->keep_ms == 0 || core->now_ms - attempt->since_ms <= FAILED_GRACE_MS;
}

/* Whether a stopping or kept attempt's failed rank failed because of this fault. A rank whose peer is gone
 * fails and reports that at once, but the loss of the peer's node is known only later. Then the node failed
 * first, unless it was heard after the rank had failed. */
static bool is_behind(const struct core *core, const struct attempt *attempt, const struct fault *fault)
{
    return (attempt->state == ATTEMPT_STOPPING || attempt->state == ATTEMPT_KEPT) &&
           attempt->cause == CAUSE_RANK_FAILED && fault->witnessed && is_infrastructures(fault->cause) &&
           fault->member->node->name != attempt->failed_node && may_be_older(core, attempt, fault);
}

static void blame(struct core *core, struct attempt *attempt, const struct fault *fault)
{
    trace_line(core, "attempt %s/%lld failed before that: %s", attempt->job->id, (long long)attempt->number,
               fault->text);
    row_free(&attempt->cause_text);
    attempt->cause = CAUSE_NONE;
    keep_fault(attempt, fault);
    record_attempt(core, attempt);
    record_event(core, attempt->job, EVENT_STOPPING, record_detail(core, "reason", fault->text));
}

void attempt_stop(struct core *core, struct attempt *attempt, const struct fault *fault)
{
    bool kept = attempt->state == ATTEMPT_KEPT, behind = is_behind(core, attempt, fault);
    if (behind) {
        blame(core, attempt, fault);
    }
    if (!fire(core, attempt, ATTEMPT_EVENT_STOP)) {
        return;
    }
    if (!kept) { /* else it has its cause */
        keep_fault(attempt, fault);
    }
    trace_line(core, "attempt %s/%lld ends: %s", attempt->job->id, (long long)attempt->number, fault->text);
    if (fault->cause == CAUSE_DECLINED) {
        if (node_member_returns(fault->member) == (int64_t)fault->member->device_count) {
            node_hold(core, fault->member->node); /* else its devices are unavailable already */
        }
        staging_doubt(core, attempt->job->job_class->environment, fault->member->node);
    }
    if (tell_stop(core, attempt, fault->stops_itself ? fault->member : NULL) > 0 && !behind) {
        record_event(core, attempt->job, EVENT_STOPPING, record_detail(core, "reason", fault->text));
    }
}

/* --- look ----------------------------------------------------------------------------------------------- */

/* The time in which people can look into an attempt whose rank failed. */

static const char *kept_detail(struct core *core, const struct attempt *attempt)
{
    char until[32];
    clock_format_wall(attempt->job->kept_until_ms, until, sizeof until);
    return record_details(core, "reason", attempt->cause_text, "until", until);
}

bool attempt_keep(struct core *core, struct attempt *attempt, const struct fault *fault)
{
    struct job *job = attempt->job;
    bool wanted =
        job->keep_ms > 0 && (fault->cause == CAUSE_RANK_FAILED || fault->cause == CAUSE_OUT_OF_MEMORY);
    if (!wanted || (attempt->state != ATTEMPT_STARTED && attempt->state != ATTEMPT_KEPT)) {
        return false;
    }
    if (attempt->state == ATTEMPT_KEPT) {
        return true; /* the first failure counts */
    }
    int64_t limit_ms = expiry_limit_ms(attempt), until_ms = core->now_ms + job->keep_ms;
    job->kept_until_ms = (until_ms < limit_ms ? until_ms : limit_ms) + core->wall_offset_ms;
    job->idle_since_ms = 0; /* nobody expects it to use its GPUs */
    keep_fault(attempt, fault);
    fire(core, attempt, ATTEMPT_EVENT_KEEP);
    trace_line(core, "attempt %s/%lld is kept: %s", job->id, (long long)attempt->number, fault->text);
    record_event(core, job, EVENT_KEPT, kept_detail(core, attempt));
    job->kept_since_ms = job->event_ms; /* the time of that event, from which a restart knows it */
    record_job(core, job);
    tell_stop(core, attempt, fault->member);
    return true;
}

void attempt_move_look(struct core *core, struct attempt *attempt, int64_t old_limit_ms)
{
    struct job *job = attempt->job;
    int64_t limit_ms = job->time_limit_ms;
    bool longer = old_limit_ms != 0 && (limit_ms == 0 || limit_ms > old_limit_ms);
    if (longer) { /* it may have been cut */
        job->kept_until_ms = job->kept_since_ms + job->keep_ms;
    }
    if (limit_ms != 0 && job->kept_until_ms > attempt->started_ms + limit_ms) {
        job->kept_until_ms = attempt->started_ms + limit_ms;
    }
    record_job(core, job);
}

static void end_look(struct core *core, struct attempt *attempt)
{
    attempt->job->kept_since_ms = attempt->job->kept_until_ms = 0;
    record_job(core, attempt->job);
}

void attempt_end_look(struct core *core, struct attempt *attempt, const char *text)
{
    const struct fault fault = {.cause = attempt->cause, .rank = -1, .text = text};
    attempt_stop(core, attempt, &fault);
}

void attempt_lose(struct core *core, struct member *member, const char *text)
{
    if (!member_fire(core, member, MEMBER_EVENT_LOSE)) {
        return;
    }
    trace_line(core, "member %s@%s is lost: %s", member->attempt->job->id, member->node->name, text);
    const struct fault fault = {
        .cause = CAUSE_NODE_LOST, .member = member, .witnessed = true, .rank = -1, .text = text};
    attempt_stop(core, member->attempt, &fault);
    attempt_settle(core, member->attempt);
}

/* --- end ------------------------------------------------------------------------------------------------ */

void attempt_settle(struct core *core, struct attempt *attempt)
{
    bool flushed = true;
    for (size_t i = 0; i < attempt->member_count; i++) {
        if (member_is_up(attempt->members[i])) {
            return;
        }
        flushed = flushed && attempt->members[i]->state != MEMBER_EXITED;
    }
    if (attempt->state == ATTEMPT_KEPT) { /* nothing is left to look at */
        fire(core, attempt, ATTEMPT_EVENT_STOP);
    }
    fire(core, attempt, flushed ? ATTEMPT_EVENT_FLUSHED : ATTEMPT_EVENT_GONE);
}

static void free_devices(struct core *core, struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->member_count; i++) {
        struct member *member = attempt->members[i];
        if (member->state == MEMBER_EXITED) {
            orders_dropped(core, member); /* given up: the attempt id is still in the node's live list */
        }
        node_release(core, member);
    }
}

static void end(struct core *core, struct attempt *attempt)
{
    struct job *job = attempt->job;
    attempt->ended_ms = record_time(core, job);
    timing_end(core, attempt);
    if (attempt_has_started(attempt) && core->steady_ms > attempt->ran_since_ms) {
        job->ran_ms += core->steady_ms - attempt->ran_since_ms;
    }
    DL_DELETE(core->attempts, attempt);
    availability_remove(core, attempt);
    free_devices(core, attempt);
    account_give_back(core, attempt);
    hours_charge(core, attempt);
    attempt_list_ended(core, attempt);
    if (core->ended_count > LIMIT_ENDED_ATTEMPTS) {
        forget(core, core->ended);
    }
    core->place_wanted = true;
    job_conclude(core, job, attempt);
}

static void end_cut(struct core *core, struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->member_count; i++) {
        const struct member *member = attempt->members[i];
        if (member->state == MEMBER_EXITED) {
            record_event(core, attempt->job, EVENT_LOGS_CUT, record_detail(core, "node", member->node->name));
        }
    }
    end(core, attempt);
}

void attempt_give_up_logs(struct core *core, struct attempt *attempt)
{
    fire(core, attempt, ATTEMPT_EVENT_FLUSH_EXPIRED);
}
