/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the spans of a job from its rows:
 *
 *   job                 from the submission to the end
 *     queued            before each attempt, until it has its GPUs
 *       staging         of that, while nodes prepare the job's environment
 *     attempt           until nothing of it is left
 *       prepare start run   of each node; run has the marks of its ranks as events
 *
 * A span lies within its parent, also where clocks were set or a node has reported less than usual: what lies
 * outside is cut off. Ids are derived from the job's (proto/trace_context.h), so each part can be made
 * and sent by itself. */
#include "daemon/traces/spans.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/store/moments.h"
#include "daemon/traces/otlp.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_agent.h"
#include "proto/limits_controller.h"
#include "proto/trace_context.h"

#define KIND_QUEUED  "queued"
#define KIND_STAGING "staging"
#define KIND_PREPARE "prepare"
#define KIND_START   "start"
#define KIND_RUN     "run"

/* Microseconds since 1970. */
struct period {
    int64_t from_us, to_us;
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t within(const struct period *whole, int64_t at_us)
{
    return at_us < whole->from_us ? whole->from_us : at_us > whole->to_us ? whole->to_us : at_us;
}

static struct period part_of(const struct period *whole, int64_t from_us, int64_t to_us)
{
    struct period part = {within(whole, from_us), within(whole, to_us)};
    part.to_us = later(part.from_us, part.to_us);
    return part;
}

/* --- the job and its trace ------------------------------------------------------------------------------ */

struct subject {
    char id[ID_LENGTH + 1];
    struct trace_parent trace;
    bool with_parent; /* trace.span is the parent of the job's span */
    char *state;      /* tracestate, owned; or NULL */
    int64_t created_ms;
    bool task;
};

static void subject_finish(struct subject *subject)
{
    free(subject->state);
}
#define autosubject __attribute__((cleanup(subject_finish)))

/* Most specs name no trace, and are not parsed. */
static bool read_parent(const struct job_birth *birth, struct subject *subject)
{
    static const char member[] = "\"traceparent\"";
    if (memmem(birth->spec, birth->spec_length, member, strlen(member)) == NULL) {
        return false;
    }
    autojson json_t *spec = json_parse(birth->spec, birth->spec_length, NULL);
    const char *state = json_string_of(spec, "tracestate");
    if (!trace_parent_of_spec(spec, &subject->trace)) {
        return false;
    }
    subject->state = state != NULL ? xstrdup(state) : NULL;
    return true;
}

/* false: the trace is not recorded. */
static bool read_subject(const struct job_birth *birth, struct subject *ret_subject)
{
    struct subject *subject = ret_subject;
    *subject = (struct subject){.created_ms = birth->created_ms, .task = birth->array_id != NULL};
    snprintf(subject->id, sizeof subject->id, "%s", birth->id);
    subject->with_parent = read_parent(birth, subject);
    if (!subject->with_parent) {
        trace_id_of_job(subject->task ? birth->array_id : birth->id, subject->trace.trace);
        subject->trace.sampled = true;
    }
    if (subject->task) {
        trace_span_id(birth->array_id, TRACE_KIND_JOB, 0, 0, subject->trace.span);
        subject->with_parent = true;
    }
    return subject->trace.sampled;
}

/* When the job began: a task when it was placed, because until then its array waited. */
static int64_t began_us(const struct subject *subject, int64_t received_us)
{
    int64_t created_us = subject->created_ms * 1000;
    return subject->task ? later(received_us, created_us) : received_us > 0 ? received_us : created_us;
}

/* When it ended, of what ended at that moment of the wall clock, where milliseconds are cut off. An array
 * ends with its last task, and is known to do so by that clock alone: no task goes on behind it. */
static int64_t ended_us(const struct subject *subject, int64_t at_us, int64_t wall_ms)
{
    int64_t wall_us = (wall_ms + 1) * 1000;
    return subject->task && wall_us < at_us ? wall_us : at_us;
}

/* A span of the job without its parent. */
static struct otlp_span begin_span(const struct subject *subject, const char *kind, int64_t number,
                                   int64_t part, const struct period *period)
{
    struct otlp_span span = {
        .name = kind, .state = subject->state, .start_us = period->from_us, .end_us = period->to_us};
    memcpy(span.trace, subject->trace.trace, sizeof span.trace);
    trace_span_id(subject->id, kind, number, part, span.id);
    otlp_put_text(&span.attributes, "gpuctl.job.id", subject->id);
    return span;
}

static struct otlp_span begin_child(const struct subject *subject, const char *parent_kind,
                                    int64_t parent_number, const char *kind, int64_t number, int64_t part,
                                    const struct period *period)
{
    struct otlp_span span = begin_span(subject, kind, number, part, period);
    trace_span_id(subject->id, parent_kind, parent_number, 0, span.parent);
    return span;
}

/* --- the parts of nodes --------------------------------------------------------------------------------- */

struct part {
    char *node;
    int64_t node_rank, first_rank, local_ranks;
    enum member_state state;
    struct member_moments moments;
    json_t *marks;      /* array, or NULL */
    int64_t exit_code;  /* of the first rank that failed; 0: none has */
    int64_t exit_count; /* ranks of which an exit is known */
};

/* An attempt as far as its spans need it. */
struct attempt_parts {
    int64_t number;
    struct attempt_timing timing;
    char *pool, *gpu_type, *cause_text; /* or NULL */
    enum cause cause;
    int64_t ended_ms;
    int64_t waited_us; /* when the one before had ended, since the submission; 0: there is none */
    struct part *items;
    size_t count, room;
};

static void parts_finish(struct attempt_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        free(parts->items[i].node);
        json_decref(parts->items[i].marks);
    }
    free(parts->items);
    free(parts->pool);
    free(parts->gpu_type);
    free(parts->cause_text);
}
#define autoparts __attribute__((cleanup(parts_finish)))

static char *copy(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

/* *ret_found false: there is no such attempt. */
static bool read_attempt(struct reader *reader, const struct subject *subject, int64_t job_key,
                         int64_t number, struct attempt_parts *parts, bool *ret_found, struct err *err)
{
    autorows struct rows rows = reader_attempts(reader, job_key, number + 1, err);
    struct attempt_row row;
    *ret_found = rows_attempt(&rows, &row) && row.number == number;
    if (!*ret_found) {
        return !rows.failed;
    }
    parts->number = number;
    parts->timing = moments_of_attempt(&row, subject->created_ms);
    parts->pool = copy(row.pool);
    parts->gpu_type = copy(row.gpu_type);
    parts->cause = row.cause;
    parts->ended_ms = row.ended_ms;
    parts->cause_text = copy(row.cause_text);
    if (rows_attempt(&rows, &row)) {
        parts->waited_us = moments_of_attempt(&row, subject->created_ms).settled_us;
    }
    return !rows.failed;
}

static bool read_parts(struct reader *reader, uint64_t attempt_id, struct attempt_parts *parts,
                       struct err *err)
{
    autorows struct rows rows = reader_members(reader, attempt_id, err);
    struct member_row row;
    while (rows_member(&rows, &row)) {
        XGROW(parts->items, parts->count, parts->room, 8);
        parts->items[parts->count++] =
            (struct part){.node = xstrdup(row.node),
                          .node_rank = row.node_rank,
                          .first_rank = row.first_rank,
                          .local_ranks = row.local_ranks,
                          .state = row.state,
                          .moments = moments_of_member(&parts->timing, &row),
                          .marks = row.marks != NULL ? json_parse(row.marks, strlen(row.marks), NULL) : NULL};
    }
    return !rows.failed;
}

/* Nodes and ranks are both in order of rank. */
static bool read_exits(struct reader *reader, uint64_t attempt_id, struct attempt_parts *parts,
                       struct err *err)
{
    autorows struct rows rows = reader_ranks(reader, attempt_id, err);
    struct rank_row row;
    size_t at = 0;
    while (rows_rank(&rows, &row)) {
        while (at < parts->count && row.rank >= parts->items[at].first_rank + parts->items[at].local_ranks) {
            at++;
        }
        if (at < parts->count) {
            parts->items[at].exit_count++;
            parts->items[at].exit_code =
                parts->items[at].exit_code != 0 ? parts->items[at].exit_code : row.code;
        }
    }
    return !rows.failed;
}

static void put_marks(const struct part *part, int64_t received_us, const struct period *run,
                      struct text *events)
{
    for (size_t i = 0; i < json_array_size(part->marks) && i < LIMIT_MARKS; i++) {
        const json_t *mark = json_array_get(part->marks, i);
        int64_t after_us = json_integer_value(json_object_get(mark, "after_us"));
        const char *name = json_string_of(mark, "name");
        autotext struct text attributes = {0};
        if (name != NULL) {
            otlp_put_int(&attributes, "gpuctl.rank", json_integer_value(json_object_get(mark, "rank")));
            otlp_put_event(events, name,
                           within(run, received_us + moments_behind(part->moments.base_us, after_us)),
                           &attributes);
        }
    }
}

/* What all parts of a node have. */
static struct otlp_span begin_part(const struct subject *subject, const struct attempt_parts *parts,
                                   const struct part *part, const char *kind, const struct period *period)
{
    struct otlp_span span =
        begin_child(subject, TRACE_KIND_ATTEMPT, parts->number, kind, parts->number, part->node_rank, period);
    otlp_put_int(&span.attributes, "gpuctl.attempt", parts->number);
    otlp_put_text(&span.attributes, "gpuctl.node", part->node);
    otlp_put_int(&span.attributes, "gpuctl.node_rank", part->node_rank);
    return span;
}

static void add_run(const struct subject *subject, const struct attempt_parts *parts, const struct part *part,
                    const struct period *run, struct text_list *out)
{
    struct otlp_span span = begin_part(subject, parts, part, KIND_RUN, run);
    otlp_put_int(&span.attributes, "gpuctl.first_rank", part->first_rank);
    otlp_put_int(&span.attributes, "gpuctl.ranks", part->local_ranks);
    if (part->exit_count > 0) {
        otlp_put_int(&span.attributes, "process.exit.code", part->exit_code);
    }
    put_marks(part, parts->timing.received_us, run, &span.events);
    bool lost = part->state == MEMBER_LOST;
    span.failed = lost || part->exit_code != 0;
    span.message = lost ? cause_text(CAUSE_NODE_LOST) : span.failed ? cause_text(CAUSE_RANK_FAILED) : NULL;
    text_list_add(out, otlp_take_span(&span));
}

static void add_part(const struct subject *subject, const struct attempt_parts *parts,
                     const struct part *part, const struct period *attempt, struct text_list *out)
{
    const struct member_timing *at = &part->moments.at;
    int64_t zero_us = parts->timing.received_us;
    struct period rest = *attempt; /* what is left of the attempt behind the part before */
    if (at->ordered_us > 0 && at->prepared_us > 0) {
        struct period prepare = part_of(&rest, zero_us + at->ordered_us, zero_us + at->prepared_us);
        struct otlp_span span = begin_part(subject, parts, part, KIND_PREPARE, &prepare);
        text_list_add(out, otlp_take_span(&span));
        rest.from_us = prepare.to_us;
    }
    if (at->running_us == 0) {
        return;
    }
    struct period start = part_of(&rest, zero_us + part->moments.base_us, zero_us + at->running_us);
    struct otlp_span span = begin_part(subject, parts, part, KIND_START, &start);
    text_list_add(out, otlp_take_span(&span));
    rest.from_us = start.to_us;
    struct period run = part_of(&rest, start.to_us, at->ended_us > 0 ? zero_us + at->ended_us : rest.to_us);
    add_run(subject, parts, part, &run, out);
}

/* --- an attempt ----------------------------------------------------------------------------------------- */

/* When nodes staged for an attempt: from the first event to the last before it; 0: they did not. */
static bool read_staging(struct reader *reader, int64_t job_key, int64_t number, struct period *ret_period,
                         struct err *err)
{
    autorows struct rows rows = reader_events(reader, job_key, 0, LIMIT_TRACE_EVENTS, err);
    struct event_row row;
    *ret_period = (struct period){0};
    while (rows_event(&rows, &row)) {
        if (row.attempt != number - 1) {
            continue;
        }
        if (row.kind == EVENT_STAGING && ret_period->from_us == 0) {
            ret_period->from_us = row.at_ms * 1000;
        } else if (row.kind == EVENT_STAGED) {
            ret_period->to_us = row.at_ms * 1000;
        }
    }
    return !rows.failed;
}

static bool add_waiting(struct reader *reader, const struct subject *subject, int64_t job_key, int64_t number,
                        const struct period *waiting, struct text_list *out, struct err *err)
{
    struct period said;
    if (!read_staging(reader, job_key, number, &said, err)) {
        return false;
    }
    struct otlp_span span = begin_child(subject, TRACE_KIND_JOB, 0, KIND_QUEUED, number, 0, waiting);
    otlp_put_int(&span.attributes, "gpuctl.attempt", number);
    text_list_add(out, otlp_take_span(&span));
    if (said.from_us > 0) {
        struct period staging = part_of(waiting, said.from_us, said.to_us > 0 ? said.to_us : waiting->to_us);
        span = begin_child(subject, KIND_QUEUED, number, KIND_STAGING, number, 0, &staging);
        otlp_put_int(&span.attributes, "gpuctl.attempt", number);
        text_list_add(out, otlp_take_span(&span));
    }
    return true;
}

/* Ends that somebody wanted are no failures. */
static bool is_failure(enum cause cause)
{
    return cause != CAUSE_NONE && cause != CAUSE_CANCELED && cause != CAUSE_PREEMPTED;
}

static void put_cause(struct otlp_span *span, enum cause cause, const char *reason)
{
    span->failed = is_failure(cause);
    span->message = reason != NULL ? reason : cause_text(cause);
    otlp_put_text(&span->attributes, "gpuctl.cause", cause != CAUSE_NONE ? cause_text(cause) : NULL);
    otlp_put_text(&span->attributes, "error.type", span->failed ? cause_text(cause) : NULL);
}

static void add_attempt(const struct subject *subject, const struct attempt_parts *parts,
                        const struct period *period, struct text_list *out)
{
    struct otlp_span span =
        begin_child(subject, TRACE_KIND_JOB, 0, TRACE_KIND_ATTEMPT, parts->number, 0, period);
    otlp_put_int(&span.attributes, "gpuctl.attempt", parts->number);
    otlp_put_text(&span.attributes, "gpuctl.pool", parts->pool);
    otlp_put_text(&span.attributes, "gpuctl.gpu_type", parts->gpu_type);
    otlp_put_int(&span.attributes, "gpuctl.nodes", (int64_t)parts->count);
    put_cause(&span, parts->cause, parts->cause_text);
    text_list_add(out, otlp_take_span(&span));
}

static bool read_job(struct reader *reader, int64_t job_key, struct subject *ret_subject, bool *ret_recorded,
                     struct err *err)
{
    autorows struct rows rows = reader_job_by_key(reader, job_key, err);
    struct job_record job;
    *ret_recorded = rows_job(&rows, &job) && read_subject(&job.birth, ret_subject);
    return !rows.failed;
}

bool spans_of_attempt(struct reader *reader, uint64_t attempt_id, struct text_list *out, struct err *err)
{
    struct attempt_record record;
    autosubject struct subject subject = {0};
    autoparts struct attempt_parts parts = {0};
    bool found;
    if (!reader_attempt_record(reader, attempt_id, &found, &record, err) ||
        (found && !read_job(reader, record.job_key, &subject, &found, err)) ||
        (found && !read_attempt(reader, &subject, record.job_key, record.number, &parts, &found, err))) {
        return false;
    }
    if (!found) {
        return true;
    }
    if (!read_parts(reader, attempt_id, &parts, err) || !read_exits(reader, attempt_id, &parts, err)) {
        return false;
    }
    int64_t zero_us = parts.timing.received_us, from_us = began_us(&subject, zero_us);
    int64_t to_us = ended_us(&subject, zero_us + parts.timing.settled_us, parts.ended_ms);
    struct period whole = {from_us, later(from_us, to_us)};
    struct period waiting = part_of(&whole, zero_us + parts.waited_us, zero_us + parts.timing.placed_us);
    struct period attempt = {waiting.to_us, whole.to_us};
    if (!add_waiting(reader, &subject, record.job_key, record.number, &waiting, out, err)) {
        return false;
    }
    add_attempt(&subject, &parts, &attempt, out);
    for (size_t i = 0; i < parts.count; i++) {
        add_part(&subject, &parts, &parts.items[i], &attempt, out);
    }
    return true;
}

/* --- a job ---------------------------------------------------------------------------------------------- */

static bool find_period(struct reader *reader, const struct subject *subject, const struct job_life *life,
                        struct period *ret_period, struct err *err)
{
    autorows struct rows rows = reader_attempts(reader, life->key, ALL_ATTEMPTS, err);
    struct attempt_row row;
    struct attempt_timing newest = {0};
    if (rows_attempt(&rows, &row)) {
        newest = moments_of_attempt(&row, subject->created_ms);
    }
    ret_period->from_us = began_us(subject, newest.received_us);
    int64_t settled_us = newest.received_us + newest.settled_us, wall_us = (life->ended_ms + 1) * 1000;
    int64_t to_us = ended_us(subject, later(settled_us, wall_us), life->ended_ms);
    ret_period->to_us = later(ret_period->from_us, to_us);
    return !rows.failed;
}

static void put_job(const struct job_record *job, struct text *attributes)
{
    const struct job_birth *birth = &job->birth;
    otlp_put_text(attributes, "gpuctl.job.name", birth->name);
    otlp_put_text(attributes, "gpuctl.job.owner", birth->owner);
    otlp_put_text(attributes, "gpuctl.job.project", birth->project);
    otlp_put_int(attributes, "gpuctl.job.gpus", birth->gpus);
    otlp_put_text(attributes, "gpuctl.job.gpu_type", birth->gpu_type);
    otlp_put_text(attributes, "gpuctl.job.state", job_state_text(job->life.state));
    otlp_put_int(attributes, "gpuctl.job.attempts", job->life.attempt);
    if (birth->array_id != NULL) {
        otlp_put_text(attributes, "gpuctl.array.id", birth->array_id);
        otlp_put_int(attributes, "gpuctl.array.task", birth->task);
    } else if (job->array.tasks > 0) {
        otlp_put_int(attributes, "gpuctl.array.tasks", job->array.tasks);
    }
    if (job->life.exit_code >= 0) {
        otlp_put_int(attributes, "process.exit.code", job->life.exit_code);
    }
    otlp_put_text(attributes, "gpuctl.node", job->life.failed_node);
}

static bool add_job(struct reader *reader, const struct job_record *job, const struct subject *subject,
                    struct text_list *out, struct err *err)
{
    struct period period;
    if (!find_period(reader, subject, &job->life, &period, err)) {
        return false;
    }
    struct otlp_span span = begin_span(subject, TRACE_KIND_JOB, 0, 0, &period);
    if (subject->with_parent) {
        memcpy(span.parent, subject->trace.span, sizeof span.parent);
    }
    put_job(job, &span.attributes);
    put_cause(&span, job->life.cause, job->life.reason);
    span.failed = job->life.state == JOB_FAILED || job->life.state == JOB_TIMED_OUT;
    text_list_add(out, otlp_take_span(&span));
    return true;
}

bool spans_of_job(struct reader *reader, int64_t job_key, struct text_list *out, struct err *err)
{
    autorows struct rows rows = reader_job_by_key(reader, job_key, err);
    struct job_record job;
    autosubject struct subject subject = {0};
    if (!rows_job(&rows, &job)) {
        return !rows.failed;
    }
    if (!job_state_terminal(job.life.state) || !read_subject(&job.birth, &subject)) {
        return true;
    }
    return add_job(reader, &job, &subject, out, err);
}
