/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a store in memory. It aborts on changes that no store could take, or that break the promises
 * about histories: gapless, final, with attempt ids that rise. cluster.c decides who reads and writes when.
 */
#include "tests/trace/harness/rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/trace/harness/rows_tables.h"

#include "proto/base/text/json.h"

static char *copy(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

/* Drops a string that a row owns. */
static void drop(const char *text)
{
    free((void *)(uintptr_t)text);
}

struct rows *rows_create(void)
{
    return xzalloc(sizeof(struct rows));
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

static struct node_row node_copy(const struct node_row *row)
{
    struct node_row mine = *row;
    NODE_ROW(ROW_OWN, mine)
    return mine;
}

static void delete_node(struct rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->node_count; i++) {
        if (strcmp(rows->nodes[i].name, name) == 0) {
            NODE_ROW(ROW_FREE, rows->nodes[i])
            rows->node_count--;
            memmove(&rows->nodes[i], &rows->nodes[i + 1], (rows->node_count - i) * sizeof rows->nodes[0]);
            return;
        }
    }
    abort(); /* it is not there */
}

static void put_node(struct rows *rows, const struct node_row *row)
{
    for (size_t i = 0; i < rows->node_count; i++) {
        if (strcmp(rows->nodes[i].name, row->name) == 0) {
            NODE_ROW(ROW_FREE, rows->nodes[i])
            rows->nodes[i] = node_copy(row);
            return;
        }
    }
    rows->nodes = xrealloc(rows->nodes, (rows->node_count + 1) * sizeof *rows->nodes);
    rows->nodes[rows->node_count++] = node_copy(row);
}

/* --- windows -------------------------------------------------------------------------------------------- */

static void insert_window(struct rows *rows, const struct window_row *row)
{
    rows->windows = xrealloc(rows->windows, (rows->window_count + 1) * sizeof *rows->windows);
    struct window_row *mine = &rows->windows[rows->window_count++];
    *mine = *row;
    WINDOW_ROW(ROW_OWN, *mine)
}

static void delete_window(struct rows *rows, const char *id)
{
    size_t at = 0;
    while (at < rows->window_count && strcmp(rows->windows[at].id, id) != 0) {
        at++;
    }
    assert(at < rows->window_count);
    WINDOW_ROW(ROW_FREE, rows->windows[at])
    rows->windows[at] = rows->windows[--rows->window_count];
}

/* --- jobs ----------------------------------------------------------------------------------------------- */

static struct job_rows *job_at(const struct rows *rows, int64_t key)
{
    assert(key >= 1 && (size_t)key <= rows->job_count && !rows->jobs[key - 1].removed);
    return &rows->jobs[key - 1];
}

static void put_life(struct job_rows *job, const struct job_life *life)
{
    assert(life->seq == job->life.seq + (life->seq - job->life.seq) && life->seq >= job->life.seq);
    assert(job_state_terminal(life->state) == (life->exit_code >= 0));
    assert(life->state != JOB_SUCCEEDED || (life->exit_code == 0 && life->started_ms > 0));
    int64_t event_ms = job->life.event_ms, kept_since_ms = job->life.kept_since_ms;
    JOB_LIFE_ROW(ROW_FREE, job->life)
    job->life = *life;
    job->life.event_ms = event_ms;
    job->life.kept_since_ms = life->kept_until_ms != 0 ? kept_since_ms : 0;
    JOB_LIFE_ROW(ROW_OWN, job->life)
}

/* No number becomes a job twice. */
static void insert_task(struct rows *rows, const struct job_birth *birth)
{
    struct job_rows *array = job_at(rows, birth->array_key);
    assert(birth->task >= 0 && birth->task < array->spec.tasks);
    int64_t place = array->spec.only != NULL ? task_list_place(array->spec.only, birth->task) : birth->task;
    assert(place >= 0 && place < array->array.tasks && array->owners[place] == 0);
    array->owners[place] = birth->key;
}

/* Of a task all but its number is its array's. */
static void insert_job(struct rows *rows, const struct change *change, const struct job_spec *own)
{
    struct job_birth whole = change->job.birth;
    const struct job_birth *birth = &whole;
    struct job_spec copied;
    const struct job_spec *spec = own;
    if (birth->array_key != 0) {
        const struct job_rows *array = job_at(rows, birth->array_key);
        insert_task(rows, birth);
        copied = array->spec;
        spec = &copied;
        whole.owner = array->birth.owner;
        whole.name = array->birth.name;
        whole.project = array->birth.project;
        whole.gpu_type = array->birth.gpu_type;
    }
    assert(birth->key == (int64_t)rows->job_count + 1 && spec != NULL);
    if (rows->job_count == rows->job_room) {
        rows->job_room = 2 * rows->job_room + 1;
        rows->jobs = xrealloc(rows->jobs, rows->job_room * sizeof *rows->jobs);
    }
    struct job_rows *job = &rows->jobs[rows->job_count++];
    *job = (struct job_rows){.birth = *birth, .spec = *spec};
    JOB_BIRTH_ROW(ROW_OWN, job->birth)
    job->birth.spec = NULL;
    job->spec.gpu_type = copy(spec->gpu_type);
    job->spec.pool = copy(spec->pool);
    job->spec.host_id = copy(spec->host_id);
    job->spec.bundle.blob = copy(spec->bundle.blob);
    job->spec.name = copy(spec->name);
    job->spec.project = copy(spec->project);
    job->spec.terms = copy(spec->terms);
    job->spec.only = task_list_copy(spec->only);
    put_life(job, &change->job.life);
}

static void update_job(struct rows *rows, const struct job_life *life)
{
    struct job_rows *job = job_at(rows, life->key);
    assert(!job_state_terminal(job->life.state));
    put_life(job, life);
}

static void put_array(struct rows *rows, const struct array_row *row)
{
    struct job_rows *job = job_at(rows, row->whole);
    const struct array_row *was = &job->array;
    assert(row->placed >= was->placed && row->succeeded >= was->succeeded && row->failed >= was->failed &&
           row->canceled >= was->canceled && row->worst_code >= was->worst_code);
    assert(row->parallel == 0 || row->running <= row->parallel);
    if (was->tasks == 0) {
        job->owners = xzalloc((size_t)row->tasks * sizeof *job->owners);
    }
    job->array = *row;
}

static void insert_event(struct rows *rows, const struct event_row *row)
{
    struct job_rows *job = job_at(rows, row->job_key);
    assert(row->seq == job->event_count + 1 && row->seq <= job->life.seq);
    assert(row->at_ms >= job->life.event_ms);
    job->events = xrealloc(job->events, (size_t)row->seq * sizeof *job->events);
    job->events[job->event_count++] = row->kind;
    job->life.event_ms = row->at_ms;
    job->life.kept_since_ms = row->kind == EVENT_KEPT ? row->at_ms : job->life.kept_since_ms;
}

/* A job follows one that was there before. */
static void insert_dependency(struct rows *rows, const struct dependency_row *row)
{
    assert(row->job_key == (int64_t)rows->job_count && row->on_key >= 1 && row->on_key < row->job_key);
    if (rows->dependency_count == rows->dependency_room) {
        rows->dependency_room = 2 * rows->dependency_room + 1;
        rows->dependencies = xrealloc(rows->dependencies, rows->dependency_room * sizeof *rows->dependencies);
    }
    rows->dependencies[rows->dependency_count++] = *row;
}

/* Only a job that has ended is removed, and it does not come back. Its tasks go with it. */
static void delete_job(struct rows *rows, int64_t key)
{
    struct job_rows *job = job_at(rows, key);
    assert(job_state_terminal(job->life.state) && job->birth.array_key == 0);
    for (int64_t i = 0; i < job->array.tasks; i++) {
        if (job->owners[i] != 0) {
            job_at(rows, job->owners[i])->removed = true;
        }
    }
    job->removed = true;
    size_t left = 0;
    for (size_t i = 0; i < rows->dependency_count; i++) {
        const struct dependency_row *row = &rows->dependencies[i];
        if (row->job_key != key && row->on_key != key) {
            rows->dependencies[left++] = *row;
        }
    }
    rows->dependency_count = left;
}

static void job_finish(struct job_rows *job)
{
    JOB_LIFE_ROW(ROW_FREE, job->life)
    JOB_BIRTH_ROW(ROW_FREE, job->birth)
    drop(job->spec.gpu_type);
    drop(job->spec.pool);
    drop(job->spec.host_id);
    drop(job->spec.bundle.blob);
    drop(job->spec.name);
    drop(job->spec.project);
    free(job->spec.terms);
    free(job->spec.only);
    free(job->events);
    free(job->owners);
}

/* --- attempts ------------------------------------------------------------------------------------------- */

struct attempt_rows *rows_attempt_at(const struct rows *rows, uint64_t attempt_id)
{
    size_t low = 0, high = rows->attempt_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows->attempts[middle].row.attempt_id < attempt_id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < rows->attempt_count && rows->attempts[low].row.attempt_id == attempt_id
               ? &rows->attempts[low]
               : NULL;
}

static struct attempt_row attempt_copy(const struct attempt_row *row)
{
    struct attempt_row mine = *row;
    ATTEMPT_ROW(ROW_OWN, mine)
    return mine;
}

static void insert_attempt(struct rows *rows, const struct attempt_row *row)
{
    struct job_rows *job = job_at(rows, row->job_key);
    assert(rows->attempt_count == 0 ||
           rows->attempts[rows->attempt_count - 1].row.attempt_id < row->attempt_id);
    assert(job->attempt_id == 0 || rows_attempt(rows, job->attempt_id)->state == ATTEMPT_ENDED);
    job->attempt_id = row->attempt_id;
    if (rows->attempt_count == rows->attempt_room) {
        rows->attempt_room = 2 * rows->attempt_room + 1;
        rows->attempts = xrealloc(rows->attempts, rows->attempt_room * sizeof *rows->attempts);
    }
    rows->attempts[rows->attempt_count++] = (struct attempt_rows){.row = attempt_copy(row)};
}

/* What was known stays so, and stays what it was: of a later moment than those before it. */
static void check_timing(const struct attempt_timing *before, const struct attempt_timing *after)
{
    assert(after->received_us == before->received_us && after->placed_us == before->placed_us);
    assert(before->queued_us == 0 || after->queued_us == before->queued_us);
    assert(before->started_us == 0 || after->started_us == before->started_us);
    assert(after->started_us == 0 || after->started_us >= after->placed_us);
    assert(after->settled_us == 0 || after->settled_us >= after->started_us);
}

static void update_attempt(struct rows *rows, const struct attempt_row *row)
{
    struct attempt_rows *attempt = rows_attempt_at(rows, row->attempt_id);
    assert(attempt != NULL && attempt->row.state != ATTEMPT_ENDED);
    assert(attempt->row.cause == CAUSE_NONE || attempt->row.cause == row->cause ||
           (attempt->row.cause == CAUSE_RANK_FAILED && !cause_user_fault(row->cause)));
    check_timing(&attempt->row.timing, &row->timing);
    assert((row->timing.settled_us != 0) == (row->state == ATTEMPT_ENDED));
    ATTEMPT_ROW(ROW_FREE, attempt->row)
    attempt->row = attempt_copy(row);
    if (row->state == ATTEMPT_ENDED) {
        ledger_hold(&rows->ledger, row, attempt->members, attempt->member_count);
    }
}

/* What its node and ours did follows one from the other. */
static void check_member_timing(const struct member_timing *before, const struct member_timing *after)
{
    assert(before->ready_us == 0 || after->ready_us == before->ready_us);
    assert(before->heard_us == 0 || after->heard_us == before->heard_us);
    assert(after->heard_us == 0 || after->heard_us >= after->ready_us);
    assert(after->heard_us == 0 || after->heard_us >= after->started_us);
}

static void insert_member(struct rows *rows, const struct member_row *row)
{
    struct attempt_rows *attempt = rows_attempt_at(rows, row->attempt_id);
    assert(attempt != NULL && row->node_rank == (int64_t)attempt->member_count);
    attempt->members = xrealloc(attempt->members, (attempt->member_count + 1) * sizeof *attempt->members);
    struct member_row *mine = &attempt->members[attempt->member_count++];
    *mine = *row;
    MEMBER_ROW(ROW_OWN, *mine)
}

static void update_member(struct rows *rows, const struct member_row *row)
{
    struct attempt_rows *attempt = rows_attempt_at(rows, row->attempt_id);
    assert(attempt != NULL && (size_t)row->node_rank < attempt->member_count);
    struct member_row *mine = &attempt->members[row->node_rank];
    assert(mine->state < row->state && strcmp(mine->node, row->node) == 0);
    mine->state = row->state;
    check_member_timing(&mine->timing, &row->timing);
    drop(mine->start);
    drop(mine->marks);
    mine->timing = row->timing;
    mine->use = row->use;
    mine->start = copy(row->start);
    mine->marks = copy(row->marks);
}

static void put_rank(struct rows *rows, const struct rank_row *row)
{
    struct attempt_rows *attempt = rows_attempt_at(rows, row->attempt_id);
    assert(attempt != NULL);
    attempt->rank_count++;
}

/* Its pickle, if it came along, is written before it. */
static void put_result(struct rows *rows, const struct result_row *row, const struct change *before)
{
    struct attempt_rows *attempt = rows_attempt_at(rows, row->attempt_id);
    assert(attempt != NULL && row->kind < RESULT_KIND_COUNT);
    assert(row->hash != NULL || row->json != NULL);
    assert(before->kind != CHANGE_BLOB_PUT || (memcmp(before->blob.hash, row->hash, 32) == 0 &&
                                               before->blob.size == row->size && before->blob.bytes != NULL));
    attempt->result_counts[row->kind]++;
}

/* --- changes -------------------------------------------------------------------------------------------- */

static void apply(struct rows *rows, const struct change *change, const struct job_spec *spec)
{
    switch (change->kind) {
    case CHANGE_JOB_INSERT:
        insert_job(rows, change, spec);
        return;
    case CHANGE_JOB_UPDATE:
        update_job(rows, &change->job.life);
        return;
    case CHANGE_ARRAY_PUT:
        put_array(rows, &change->array);
        return;
    case CHANGE_EVENT_INSERT:
        insert_event(rows, &change->event);
        return;
    case CHANGE_DEPENDENCY_INSERT:
        insert_dependency(rows, &change->dependency);
        return;
    case CHANGE_ATTEMPT_INSERT:
        insert_attempt(rows, &change->attempt);
        return;
    case CHANGE_ATTEMPT_UPDATE:
        update_attempt(rows, &change->attempt);
        return;
    case CHANGE_MEMBER_INSERT:
        insert_member(rows, &change->member);
        return;
    case CHANGE_MEMBER_UPDATE:
        update_member(rows, &change->member);
        return;
    case CHANGE_RANK_PUT:
        put_rank(rows, &change->rank);
        return;
    case CHANGE_NODE_PUT:
        put_node(rows, &change->node);
        return;
    case CHANGE_RESULT_PUT:
        put_result(rows, &change->result, change - 1); /* a report changes other rows before it */
        return;
    case CHANGE_BLOB_PUT:
        assert(change[1].kind == CHANGE_RESULT_PUT);
        return;
    case CHANGE_USAGE_PUT:
        ledger_put_usage(&rows->ledger, &change->usage);
        return;
    case CHANGE_USAGE_DELETE:
        ledger_drop_usage(&rows->ledger, &change->usage);
        return;
    case CHANGE_HOUR_ADD:
        ledger_add_hour(&rows->ledger, &change->hour);
        return;
    case CHANGE_LIMITS_PUT:
        ledger_put_limits(&rows->ledger, &change->limits);
        return;
    case CHANGE_LIMITS_DELETE: {
        bool dropped = ledger_drop_limits(&rows->ledger, &change->limits);
        assert(dropped);
        return;
    }
    case CHANGE_HISTORY_PUT:
        ledger_put_history(&rows->ledger, &change->history);
        return;
        return;
    case CHANGE_WINDOW_INSERT:
        insert_window(rows, &change->window);
        return;
    case CHANGE_WINDOW_DELETE:
        delete_window(rows, change->window.id);
        return;
    case CHANGE_NODE_DELETE:
        delete_node(rows, change->node.name);
        return;
    case CHANGE_JOB_DELETE:
        delete_job(rows, change->job.life.key);
        return;
    case CHANGE_USE_PUT:
        job_at(rows, change->use.job_key);
        return;
    case CHANGE_WEBHOOK_PUT: /* tests of webhooks look at these themselves */
    case CHANGE_WEBHOOK_DELETE:
    case CHANGE_DELIVERY_INSERT:
    case CHANGE_DELIVERY_UPDATE:
    case CHANGE_DELIVERIES_GIVE_UP:
        return;
    case CHANGE_SECRET_PUT:
    case CHANGE_SECRET_SEAL:
    case CHANGE_SECRET_DELETE:
    case CHANGE_SCHEDULE_INSERT:
    case CHANGE_SCHEDULE_UPDATE:
    case CHANGE_SCHEDULE_RUN:
    case CHANGE_SCHEDULE_DELETE:
    case CHANGE_SCHEDULE_USE_PUT:
    case CHANGE_BLOB_DELETE:
    case CHANGE_REMOVAL_PIECE:
    case CHANGE_REPLIES_AGE:
    case CHANGE_REPLIES_TRIM:
    case CHANGE_UPLOAD_PUT:
    case CHANGE_UPLOADS_TRIM:
    case CHANGE_HOURS_TRIM:
    case CHANGE_DELIVERIES_TRIM:
    case CHANGE_SHRINK:
    case CHANGE_LOST_PUT:
    case CHANGE_REPLY_INSERT:
    case CHANGE_TOKEN_INSERT:
    case CHANGE_TOKEN_REVOKE:
    case CHANGE_TOKEN_END:
    case CHANGE_TOKEN_USE:
    case CHANGE_TOKENS_RETIRE:
    case CHANGE_AUDIT_INSERT:
    case CHANGE_AUDIT_TRIM:
    case CHANGE_JOIN_INSERT:
    case CHANGE_JOIN_USE:
        break;
    }
    abort(); /* the core does not make these */
}

/* Invariant 11: a function that succeeded has a result of every rank. */
static void check_success(const struct rows *rows, const struct job_rows *job)
{
    const struct attempt_rows *attempt = rows_attempt_at(rows, job->attempt_id);
    size_t ranks = 0;
    for (size_t i = 0; i < attempt->member_count; i++) {
        ranks += (size_t)attempt->members[i].local_ranks;
    }
    assert(!job_spec_is_function(&job->spec) || attempt->result_counts[RESULT_VALUE] == ranks);
}

/* The counts of an array agree with its tasks. */
static void check_array(const struct rows *rows, const struct job_rows *job)
{
    struct array_row seen = {0};
    for (int64_t i = 0; i < job->array.tasks && (i < job->array.placed || job->owners[i] != 0); i++) {
        const struct job_life *life = &job_at(rows, job->owners[i])->life;
        seen.placed++;
        seen.running += !job_state_terminal(life->state);
        seen.succeeded += life->state == JOB_SUCCEEDED;
        seen.failed += life->state == JOB_FAILED || life->state == JOB_TIMED_OUT;
        seen.canceled += life->state == JOB_CANCELED;
    }
    const struct array_row *array = &job->array;
    int64_t dropped = array->failed - seen.failed + array->canceled - seen.canceled;
    assert(seen.placed == array->placed && seen.running == array->running &&
           seen.succeeded == array->succeeded);
    assert(dropped == 0 || dropped == array->tasks - array->placed);
    assert(job_state_terminal(job->life.state) ==
           (seen.running == 0 && seen.placed + dropped == array->tasks));
    assert(job->life.state != JOB_SUCCEEDED || array->succeeded == array->tasks);
}

void rows_apply(struct rows *rows, const struct step *step, const struct job_spec *spec)
{
    for (size_t i = 0; i < step->change_count; i++) {
        apply(rows, &step->changes[i], spec);
    }
    ledger_check(&rows->ledger);
    for (size_t i = 0; i < step->touched_count; i++) {
        const struct job_rows *job = job_at(rows, step->touched[i].key);
        assert(job->event_count == job->life.seq && job->life.seq == step->touched[i].seq);
        assert(job->life.state == step->touched[i].state);
        if (job->array.tasks > 0) {
            check_array(rows, job);
        } else if (job->life.state == JOB_SUCCEEDED) {
            check_success(rows, job);
        }
    }
}

struct environment_spec rows_environment(const char *key)
{
    const char *space = key != NULL ? strchr(key, ' ') : NULL;
    return (struct environment_spec){.key = key,
                                     .text = "{}",
                                     .parts = space != NULL ? space + 1 : NULL,
                                     .unpinned = space != NULL && strchr(space, '?') != NULL};
}

void rows_load(const struct rows *rows, struct core *core)
{
    ledger_load(&rows->ledger, core);
    for (size_t i = 0; i < rows->node_count; i++) {
        core_load_node(core, &rows->nodes[i]);
    }
    for (size_t i = 0; i < rows->window_count; i++) {
        core_load_window(core, &rows->windows[i]);
    }
    for (size_t i = 0; i < rows->job_count; i++) {
        const struct job_rows *job = &rows->jobs[i];
        if (!job_state_terminal(job->life.state)) {
            const struct environment_spec environment = rows_environment(job->spec.bundle.blob);
            core_load_job(core, &job->birth, &job->life, &job->spec,
                          environment.key != NULL ? &environment : NULL);
        }
    }
    for (size_t i = 0; i < rows->dependency_count; i++) {
        const struct dependency_row *dependency = &rows->dependencies[i];
        if (!job_state_terminal(job_at(rows, dependency->job_key)->life.state)) {
            core_load_dependency(core, dependency);
        }
    }
    for (size_t i = 0; i < rows->job_count; i++) {
        const struct job_rows *job = &rows->jobs[i];
        if (job->array.tasks > 0 && !job_state_terminal(job->life.state)) {
            core_load_array(core, &job->array);
        }
    }
    for (size_t i = 0; i < rows->job_count; i++) {
        const struct job_rows *job = &rows->jobs[i];
        const struct attempt_rows *attempt = rows_attempt_at(rows, job->attempt_id);
        if (job_state_terminal(job->life.state) || attempt == NULL) {
            continue;
        }
        core_load_attempt(core, &attempt->row);
        for (size_t j = 0; j < attempt->member_count; j++) {
            core_load_member(core, &attempt->members[j]);
        }
    }
}

/* --- end ------------------------------------------------------------------------------------------------ */

void rows_destroy(struct rows *rows)
{
    for (size_t i = 0; i < rows->node_count; i++) {
        NODE_ROW(ROW_FREE, rows->nodes[i])
    }
    for (size_t i = 0; i < rows->job_count; i++) {
        job_finish(&rows->jobs[i]);
    }
    for (size_t i = 0; i < rows->attempt_count; i++) {
        ATTEMPT_ROW(ROW_FREE, rows->attempts[i].row)
        for (size_t j = 0; j < rows->attempts[i].member_count; j++) {
            MEMBER_ROW(ROW_FREE, rows->attempts[i].members[j])
        }
        free(rows->attempts[i].members);
    }
    ledger_finish(&rows->ledger);
    for (size_t i = 0; i < rows->window_count; i++) {
        WINDOW_ROW(ROW_FREE, rows->windows[i])
    }
    free(rows->windows);
    free(rows->nodes);
    free(rows->dependencies);
    free(rows->jobs);
    free(rows->attempts);
    free(rows);
}
