/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the change set on which a step notes its row changes. It promises that a row is written once a step,
 * with its final values; that inserts come before what refers to them; and that everything it hands out lives
 * in the step's arena. It decides nothing. */
#include "daemon/core/record.h"

#include <stdarg.h>
#include <string.h>

#include "daemon/core/arena.h"
#include "daemon/core/array.h"
#include "daemon/core/attempt.h"
#include "daemon/core/device.h"
#include "daemon/core/job.h"
#include "daemon/core/label.h"
#include "daemon/core/state.h"
#include "proto/tasks.h"

#define FIRST_ROOM 8 /* changes; most steps need fewer */

void record_open(struct core *core, int64_t wall_ms)
{
    assert(core->change_set.arena == NULL);
    /* 0 stands for never, whatever the clock says. */
    core->change_set = (struct change_set){.arena = arena_create(), .wall_ms = wall_ms > 0 ? wall_ms : 1};
}

/* --- noting --------------------------------------------------------------------------------------------- */

static void change_set_grow(struct change_set *change_set)
{
    size_t room = change_set->room > 0 ? 2 * change_set->room : FIRST_ROOM;
    size_t used = change_set->count;
    change_set->changes = arena_grow(change_set->arena, change_set->changes,
                                     used * sizeof *change_set->changes, room * sizeof *change_set->changes);
    change_set->subjects =
        arena_grow(change_set->arena, change_set->subjects, used * sizeof *change_set->subjects,
                   room * sizeof *change_set->subjects);
    change_set->room = room;
}

static struct change *append(struct core *core, enum change_kind kind, void *subject)
{
    struct change_set *change_set = &core->change_set;
    if (change_set->count == change_set->room) {
        change_set_grow(change_set);
    }
    change_set->subjects[change_set->count] = subject;
    struct change *change = &change_set->changes[change_set->count++];
    memset(change, 0, sizeof *change);
    change->kind = kind;
    return change;
}

/* Notes a row whose values are filled in at the end; slot remembers that it is noted. */
static struct change *append_once(struct core *core, enum change_kind kind, void *subject, uint32_t *slot)
{
    if (*slot != 0) {
        return &core->change_set.changes[*slot - 1];
    }
    struct change *change = append(core, kind, subject);
    *slot = (uint32_t)core->change_set.count;
    return change;
}

void record_birth(struct core *core, struct job *job, const struct input *input)
{
    assert(job->slot == 0);
    struct arena *arena = core->change_set.arena;
    const struct job_spec *spec = input->submit.spec;
    struct change *change = append_once(core, CHANGE_JOB_INSERT, job, &job->slot);
    core->change_set.job_count++;
    change->job.birth = (struct job_birth){
        .key = job->key,
        .id = arena_copy(arena, job->id),
        .owner = arena_copy(arena, input->submit.owner),
        .name = arena_copy(arena, spec->name),
        .project = arena_copy(arena, job_spec_project(spec)),
        .spec = input->submit.body,
        .spec_length = input->submit.body_length,
        .shown = input->submit.shown,
        .gpus = spec->gpus,
        .gpu_type = arena_copy(arena, spec->gpu_type),
        .created_ms = record_time(core, job),
        .task = TASK_NONE,
    };
}

void record_task_birth(struct core *core, struct job *task)
{
    struct change *change = append_once(core, CHANGE_JOB_INSERT, task, &task->slot);
    core->change_set.job_count++;
    change->job.birth = (struct job_birth){
        .key = task->key,
        .id = arena_copy(core->change_set.arena, task->id),
        .array_key = task->array->whole->key,
        .task = task->task,
        .created_ms = record_time(core, task),
    };
}

void record_array(struct core *core, struct array *array)
{
    append_once(core, CHANGE_ARRAY_PUT, array, &array->slot);
}

void record_job(struct core *core, struct job *job)
{
    if (job->slot == 0) {
        append_once(core, CHANGE_JOB_UPDATE, job, &job->slot);
        core->change_set.job_count++;
    }
}

void record_attempt_birth(struct core *core, struct attempt *attempt)
{
    append_once(core, CHANGE_ATTEMPT_INSERT, attempt, &attempt->slot);
}

void record_attempt(struct core *core, struct attempt *attempt)
{
    append_once(core, CHANGE_ATTEMPT_UPDATE, attempt, &attempt->slot);
}

void record_member_birth(struct core *core, struct member *member)
{
    append_once(core, CHANGE_MEMBER_INSERT, member, &member->slot);
}

void record_member(struct core *core, struct member *member)
{
    append_once(core, CHANGE_MEMBER_UPDATE, member, &member->slot);
}

void record_node(struct core *core, struct node *node)
{
    append_once(core, CHANGE_NODE_PUT, node, &node->slot);
}

void record_node_gone(struct core *core, struct node *node)
{
    struct change_set *change_set = &core->change_set;
    size_t kept = 0;
    for (size_t i = 0; i < change_set->dirty_count; i++) {
        if (change_set->dirty[i] != node->name) {
            change_set->dirty[kept++] = change_set->dirty[i];
        }
    }
    change_set->dirty_count = kept;
    node->dirty = false;
    append(core, CHANGE_NODE_DELETE, NULL)->node.name = arena_copy(change_set->arena, node->name);
}

void record_window(struct core *core, const struct window_row *row)
{
    append(core, CHANGE_WINDOW_INSERT, NULL)->window = *row;
}

void record_window_gone(struct core *core, const char *id)
{
    const char *copy = arena_copy(core->change_set.arena, id);
    append(core, CHANGE_WINDOW_DELETE, NULL)->window.id = copy;
}

int64_t record_time(const struct core *core, const struct job *job)
{
    return core->change_set.wall_ms > job->event_ms ? core->change_set.wall_ms : job->event_ms;
}

void record_event(struct core *core, struct job *job, enum event_kind kind, const char *detail)
{
    record_job(core, job);
    job->seq++;
    job->event_ms = record_time(core, job);
    struct change *change = append(core, CHANGE_EVENT_INSERT, NULL);
    change->event = (struct event_row){
        .job_key = job->key,
        .seq = job->seq,
        .at_ms = job->event_ms,
        .kind = kind,
        .attempt = job->attempt_number,
        .detail = detail,
    };
}

void record_dependency(struct core *core, const struct job *job, int64_t on_key, enum dependency kind)
{
    struct change *change = append(core, CHANGE_DEPENDENCY_INSERT, NULL);
    change->dependency = (struct dependency_row){.job_key = job->key, .on_key = on_key, .kind = kind};
}

void record_rank(struct core *core, const struct attempt *attempt, const struct rank_exit *rank)
{
    struct change *change = append(core, CHANGE_RANK_PUT, NULL);
    change->rank = (struct rank_row){
        .epoch = attempt->epoch,
        .rank = rank->rank,
        .code = rank->code,
        .signal = rank->signal,
        .at_ms = rank->at_ms,
        .out_bytes = rank->out_bytes,
        .err_bytes = rank->err_bytes,
    };
}

void record_result(struct core *core, const struct attempt *attempt, const struct rank_result *result)
{
    if (result->bytes != NULL) {
        struct change *blob = append(core, CHANGE_BLOB_PUT, NULL);
        blob->blob = (struct blob_row){
            .size = result->size, .bytes = result->bytes, .created_ms = record_time(core, attempt->job)};
        memcpy(blob->blob.hash, result->digest, sizeof blob->blob.hash);
    }
    struct change *change = append(core, CHANGE_RESULT_PUT, NULL);
    change->result = (struct result_row){
        .epoch = attempt->epoch,
        .rank = result->rank,
        .kind = result->kind,
        .size = result->size,
        .hash = result->digest,
        .json = result->json,
    };
}

void record_history(struct core *core, const struct history_row *row)
{
    struct change *change = append(core, CHANGE_HISTORY_PUT, NULL);
    change->history = *row;
    change->history.project = arena_copy(core->change_set.arena, row->project);
    change->history.owner = arena_copy(core->change_set.arena, row->owner);
    change->history.name = arena_copy(core->change_set.arena, row->name);
}

void record_blob(struct core *core, const struct blob_row *blob)
{
    append(core, CHANGE_BLOB_PUT, NULL)->blob = *blob;
}

void record_response(struct core *core, const struct text *json)
{
    core->change_set.response = arena_copy(core->change_set.arena, json->bytes);
}

void record_fenced(struct core *core, uint64_t epoch, size_t most)
{
    struct change_set *change_set = &core->change_set;
    if (change_set->fenced == NULL) {
        change_set->fenced = arena_alloc(change_set->arena, most * sizeof *change_set->fenced);
    }
    change_set->fenced[change_set->fenced_count++] = epoch;
}

void record_usage(struct core *core, enum change_kind kind, const struct usage_row *usage)
{
    struct arena *arena = core->change_set.arena;
    struct change *change = append(core, kind, NULL);
    change->usage = *usage;
    change->usage.project = arena_copy(arena, usage->project);
    change->usage.owner = arena_copy(arena, usage->owner);
}

void record_limits(struct core *core, enum change_kind kind, const struct limits_row *limits)
{
    append(core, kind, NULL)->limits = *limits;
}

void record_dirty(struct core *core, struct node *node)
{
    struct change_set *change_set = &core->change_set;
    if (node->dirty) {
        return;
    }
    node->dirty = true;
    if (change_set->dirty_count == change_set->dirty_room) {
        size_t room = change_set->dirty_room > 0 ? 2 * change_set->dirty_room : FIRST_ROOM;
        size_t used = change_set->dirty_count * sizeof *change_set->dirty;
        change_set->dirty =
            arena_grow(change_set->arena, change_set->dirty, used, room * sizeof *change_set->dirty);
        change_set->dirty_room = room;
    }
    change_set->dirty[change_set->dirty_count++] = node->name;
}

void record_released(struct core *core, struct job *job)
{
    LL_PREPEND(core->change_set.released, job);
}

void record_released_attempt(struct core *core, struct attempt *attempt)
{
    LL_PREPEND(core->change_set.released_attempts, attempt);
}

const char *record_text(struct core *core, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(core->change_set.arena, format, args);
    va_end(args);
    return text;
}

const char *record_detail(struct core *core, const char *name, const char *value)
{
    struct text json = {0};
    text_printf(&json, "{\"%s\":", name);
    text_json_string(&json, value, strlen(value));
    text_append(&json, "}");
    const char *detail = arena_copy(core->change_set.arena, json.bytes);
    text_finish(&json);
    return detail;
}

/* --- filling in ----------------------------------------------------------------------------------------- */

/* Of an array that lives, what will be its reason. */
static const char *reason_of(struct arena *arena, const struct job *job)
{
    bool kept = job->reason == NULL && array_is_whole(job) && !job_state_terminal(job->state);
    return kept ? arena_copy(arena, job->array->text) : job->reason;
}

static struct job_life life_of(struct arena *arena, const struct job *job)
{
    return (struct job_life){
        .key = job->key,
        .state = job->state,
        .seq = job->seq,
        .attempt = job->attempt_number,
        .user_failures = job->user_failures,
        .infra_failures = job->infra_failures,
        .priority = job->priority,
        .time_limit_ms = job->time_limit_ms,
        .ran_ms = job->ran_ms,
        .pool = arena_copy(arena, job->pool),
        .started_ms = job->started_ms,
        .ended_ms = job->ended_ms,
        .exit_code = job->exit_code,
        .failed_rank = job->failed_rank,
        .failed_node = arena_copy(arena, job->failed_node),
        .cause = job->cause,
        .reason = reason_of(arena, job),
    };
}

static struct attempt_row row_of_attempt(struct arena *arena, const struct attempt *attempt)
{
    return (struct attempt_row){
        .epoch = attempt->epoch,
        .job_key = attempt->job->key,
        .number = attempt->number,
        .state = attempt->state,
        .cause = attempt->cause,
        .claim = attempt->claim,
        .cause_text = arena_copy(arena, attempt->cause_text),
        .pool = arena_copy(arena, attempt->pool),
        .gpu_type = arena_copy(arena, attempt->gpu_type),
        .master_address = arena_copy(arena, attempt->master_address),
        .master_port = attempt->master_port,
        .created_ms = attempt->created_ms,
        .started_ms = attempt->started_ms,
        .ended_ms = attempt->ended_ms,
        .failed_rank = attempt->failed_rank,
        .failed_code = attempt->failed_code,
        .warned_ms = attempt->warned_ms,
        .checkpoint_ms = attempt->checkpoint_ms,
        .timing = attempt->timing,
    };
}

static const char *devices_text(struct arena *arena, const struct member *member)
{
    struct text list = {0};
    for (size_t i = 0; i < member->device_count; i++) {
        text_printf(&list, "%s%lld", i > 0 ? "," : "", (long long)member->devices[i]);
    }
    const char *copy = arena_copy(arena, list.bytes);
    text_finish(&list);
    return copy;
}

static struct member_timing timing_of_member(struct arena *arena, const struct member *member)
{
    struct member_timing timing = member->timing;
    timing.queued_us = member->attempt->timing.queued_us;
    timing.started_us = member->attempt->timing.started_us;
    timing.start = arena_copy(arena, timing.start);
    timing.marks = arena_copy(arena, timing.marks);
    return timing;
}

static struct member_row row_of_member(struct arena *arena, const struct member *member)
{
    return (struct member_row){
        .epoch = member->attempt->epoch,
        .node_rank = member->node_rank,
        .node = arena_copy(arena, member->node->name),
        .first_rank = member->first_rank,
        .local_ranks = member->local_ranks,
        .devices = devices_text(arena, member),
        .state = member->state,
        .timing = timing_of_member(arena, member),
    };
}

static struct node_row row_of_node(struct arena *arena, const struct node *node)
{
    struct text devices = {0}, labels = {0};
    device_list_encode(node, &devices);
    labels_encode(node, &labels);
    struct node_row row = {
        .name = arena_copy(arena, node->name),
        .boot_id = arena_copy(arena, node->boot_id),
        .agent_id = arena_copy(arena, node->agent_id),
        .host_id = arena_copy(arena, node->host_id),
        .version = arena_copy(arena, node->version),
        .address = arena_copy(arena, node->address),
        .pool = arena_copy(arena, node->pool),
        .pool_kind = node->pool_kind,
        .state = node->state,
        .reason = arena_copy(arena, node->reason),
        .isolation = node->isolation,
        .slots = node->slots,
        .devices = arena_copy(arena, devices.bytes),
        .registered_ms = node->registered_ms,
        .expires_at_ms = node->expires_at_ms,
        .agent_expires_at_ms = node->agent_expires_at_ms,
        .labels = arena_copy(arena, labels.bytes),
    };
    text_finish(&devices);
    text_finish(&labels);
    return row;
}

static struct job_touch touch_of(const struct job *job)
{
    struct job_touch touch = {.key = job->key, .state = job->state, .seq = job->seq};
    memcpy(touch.id, job->id, sizeof touch.id);
    return touch;
}

static void fill_job(struct core *core, struct change *change, struct job *job, struct step *step)
{
    job->slot = 0;
    change->job.life = life_of(core->change_set.arena, job);
    job->reason = NULL;
    step->touched[step->touched_count++] = touch_of(job);
}

static void fill(struct core *core, struct change *change, void *subject, struct step *step)
{
    struct arena *arena = core->change_set.arena;
    switch (change->kind) {
    case CHANGE_JOB_INSERT:
    case CHANGE_JOB_UPDATE:
        fill_job(core, change, subject, step);
        break;
    case CHANGE_ARRAY_PUT:
        ((struct array *)subject)->slot = 0;
        change->array = ((struct array *)subject)->counts;
        break;
    case CHANGE_ATTEMPT_INSERT:
    case CHANGE_ATTEMPT_UPDATE:
        ((struct attempt *)subject)->slot = 0;
        change->attempt = row_of_attempt(arena, subject);
        break;
    case CHANGE_MEMBER_INSERT:
    case CHANGE_MEMBER_UPDATE:
        ((struct member *)subject)->slot = 0;
        change->member = row_of_member(arena, subject);
        break;
    case CHANGE_NODE_PUT:
        ((struct node *)subject)->slot = 0;
        change->node = row_of_node(arena, subject);
        break;
    case CHANGE_EVENT_INSERT:
    case CHANGE_DEPENDENCY_INSERT:
    case CHANGE_RANK_PUT:
    case CHANGE_RESULT_PUT:
    case CHANGE_REPLY_INSERT:
    case CHANGE_TOKEN_INSERT:
    case CHANGE_TOKEN_REVOKE:
    case CHANGE_JOIN_INSERT:
    case CHANGE_JOIN_USE:
    case CHANGE_NODE_DELETE:
    case CHANGE_BLOB_PUT:
    case CHANGE_HISTORY_PUT:
    case CHANGE_USAGE_PUT:
    case CHANGE_USAGE_DELETE:
    case CHANGE_LIMITS_PUT:
    case CHANGE_LIMITS_DELETE:
    case CHANGE_WINDOW_INSERT:
    case CHANGE_WINDOW_DELETE:
    case CHANGE_LOST_PUT:
        break;
    }
}

static void free_leaving(struct core *core)
{
    for (struct attempt *attempt = core->change_set.released_attempts, *next; attempt != NULL;
         attempt = next) {
        next = attempt->next;
        attempt_free(attempt);
    }
    for (struct job *job = core->change_set.released, *next; job != NULL; job = next) {
        next = job->next;
        job_free(job);
    }
}

static void clean_dirty(struct core *core)
{
    for (size_t i = 0; i < core->change_set.dirty_count; i++) {
        struct node *node;
        HASH_FIND_STR(core->nodes_by_name, core->change_set.dirty[i], node);
        assert(node != NULL && node->dirty);
        node->dirty = false;
    }
}

static void fill_answer(struct core *core, const struct job *job, struct step *step)
{
    struct job_life *life = arena_alloc(core->change_set.arena, sizeof *life);
    *life = life_of(core->change_set.arena, job);
    step->job = touch_of(job);
    step->life = life;
    if (array_is_whole(job)) {
        struct array_row *counts = arena_alloc(core->change_set.arena, sizeof *counts);
        *counts = job->array->counts;
        step->counts = counts;
    }
}

void record_close(struct core *core, struct step *ret_step)
{
    struct change_set *change_set = &core->change_set;
    if (change_set->job_count > 0) {
        ret_step->touched = arena_alloc(change_set->arena, change_set->job_count * sizeof *ret_step->touched);
    }
    for (size_t i = 0; i < change_set->count; i++) {
        fill(core, &change_set->changes[i], change_set->subjects[i], ret_step);
    }
    assert(ret_step->touched_count == change_set->job_count);
    if (change_set->answer != NULL) {
        fill_answer(core, change_set->answer, ret_step);
    }
    free_leaving(core);
    clean_dirty(core);
    ret_step->answer = change_set->response;
    ret_step->fenced = change_set->fenced;
    ret_step->fenced_count = change_set->fenced_count;
    ret_step->changes = change_set->changes;
    ret_step->change_count = change_set->count;
    ret_step->lazy =
        change_set->lazy && change_set->dirty_count == 0; /* what a node waits for is not put off */
    ret_step->dirty_nodes = change_set->dirty;
    ret_step->dirty_count = change_set->dirty_count;
    ret_step->arena = change_set->arena;
    core->change_set = (struct change_set){0};
}

void step_finish(struct step *step)
{
    arena_destroy(step->arena);
    *step = (struct step){0};
}
