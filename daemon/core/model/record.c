/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the row changes of a step. Each row is written once a step, with its final values. Inserts
 * precede the rows that refer to them. Everything that this file hands out lives in the arena of the step.
 * It decides nothing. */
#include "daemon/core/model/record.h"

#include <stdarg.h>
#include <string.h>

#include "daemon/core/model/arena.h"
#include "daemon/core/model/device.h"
#include "daemon/core/model/label.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/step.h"
#include "proto/base/clock.h"
#include "proto/spec/program.h"
#include "proto/spec/tasks.h"

#define FIRST_ROOM 8 /* changes; most steps need fewer */

void record_open(struct core *core, int64_t wall_ms)
{
    assert(core->change_set.arena == NULL);
    /* 0 stands for never, whatever the clock says. */
    core->change_set = (struct change_set){.arena = arena_create(), .wall_ms = wall_ms > 0 ? wall_ms : 1};
}

/* --- noting --------------------------------------------------------------------------------------------- */

/* A row whose values are filled in at the end, from its subject. */
struct pending {
    void (*fill)(struct core *core, struct change *change, void *subject, struct step *step); /* NULL: none */
    void *subject;
    uint32_t *slot; /* remembers that it is noted */
    int64_t seq;    /* of a job's last event when it was noted */
};

static void change_set_grow(struct change_set *change_set)
{
    size_t room = change_set->room > 0 ? 2 * change_set->room : FIRST_ROOM;
    size_t used = change_set->count;
    change_set->changes = arena_grow(change_set->arena, change_set->changes,
                                     used * sizeof *change_set->changes, room * sizeof *change_set->changes);
    change_set->pending = arena_grow(change_set->arena, change_set->pending,
                                     used * sizeof *change_set->pending, room * sizeof *change_set->pending);
    change_set->room = room;
}

static struct change *append_pending(struct core *core, enum change_kind kind, struct pending pending)
{
    struct change_set *change_set = &core->change_set;
    if (change_set->count == change_set->room) {
        change_set_grow(change_set);
    }
    change_set->pending[change_set->count] = pending;
    struct change *change = &change_set->changes[change_set->count++];
    memset(change, 0, sizeof *change);
    change->kind = kind;
    return change;
}

static struct change *append(struct core *core, enum change_kind kind)
{
    return append_pending(core, kind, (struct pending){0});
}

static struct change *append_once(struct core *core, enum change_kind kind, struct pending pending)
{
    if (*pending.slot != 0) {
        return &core->change_set.changes[*pending.slot - 1];
    }
    struct change *change = append_pending(core, kind, pending);
    *pending.slot = (uint32_t)core->change_set.count;
    return change;
}

/* Copies a text of a row into the arena. */
static void keep(struct arena *arena, const char **text)
{
    if (text != NULL) {
        *text = arena_copy(arena, *text);
    }
}
#define KEEP(row, type, name, role) keep(arena, ROW_TEXT(row, name));

void record_kept(const struct job *job, struct text *out)
{
    char until[32];
    clock_format_wall(job->kept_until_ms, until, sizeof until);
    text_printf(out, "%s; kept until %s", job->attempt->cause_text, until);
}

/* --- what is filled in ---------------------------------------------------------------------------------- */

/* Of an array that lives, what will be its reason; of a job whose attempt is kept, what has failed. */
static const char *reason_of(struct arena *arena, const struct job *job)
{
    if (job->kept_until_ms != 0) {
        autotext struct text text = {0};
        record_kept(job, &text);
        return arena_copy(arena, text.bytes);
    }
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
        .idle_since_ms = job->idle_since_ms,
        .kept_until_ms = job->kept_until_ms,
        .cause = job->cause,
        .reason = reason_of(arena, job),
    };
}

static void fill_attempt(struct core *core, struct change *change, void *subject, struct step *step)
{
    struct arena *arena = core->change_set.arena;
    change->attempt = ((const struct attempt *)subject)->row;
    ATTEMPT_ROW(KEEP, change->attempt)
}

static const char *devices_text(struct arena *arena, const struct member *member)
{
    struct text list = {0};
    for (size_t i = 0; i < member->device_count; i++) {
        text_printf(&list, "%s%lld", i > 0 ? "," : "", (long long)member->devices[i]);
    }
    const char *copy = arena_copy(arena, list.bytes != NULL ? list.bytes : "");
    text_finish(&list);
    return copy;
}

static void fill_member(struct core *core, struct change *change, void *subject, struct step *step)
{
    struct arena *arena = core->change_set.arena;
    const struct member *member = subject;
    change->member = (struct member_row){.attempt_id = member->attempt->attempt_id,
                                         .node = member->node->name,
                                         MEMBER_OWN_ROW(ROW_TAKE, *member)};
    MEMBER_ROW(KEEP, change->member)
    change->member.devices = devices_text(arena, member);
    change->member.timing.queued_us = member->attempt->timing.queued_us;
    change->member.timing.started_us = member->attempt->timing.started_us;
}

static void fill_node(struct core *core, struct change *change, void *subject, struct step *step)
{
    struct arena *arena = core->change_set.arena;
    const struct node *node = subject;
    struct text devices = {0}, labels = {0};
    device_list_encode(node, &devices);
    labels_encode(node, &labels);
    change->node = (struct node_row){
        .name = node->name, .devices = devices.bytes, .labels = labels.bytes, NODE_OWN_ROW(ROW_TAKE, *node)};
    NODE_ROW(KEEP, change->node)
    text_finish(&devices);
    text_finish(&labels);
}

static void fill_array(struct core *core, struct change *change, void *subject, struct step *step)
{
    change->array = ((const struct array *)subject)->counts;
}

static struct job_touch touch_of(const struct job *job)
{
    struct job_touch touch = {.key = job->key, .state = job->state, .seq = job->seq};
    memcpy(touch.id, job->id, sizeof touch.id);
    return touch;
}

static void fill_job(struct core *core, struct change *change, void *subject, struct step *step)
{
    struct job *job = subject;
    change->job.life = life_of(core->change_set.arena, job);
    job->reason = NULL;
    struct job_touch *touch = &step->touched[step->touched_count++];
    *touch = touch_of(job);
    touch->before_seq = core->change_set.pending[change - core->change_set.changes].seq;
}

/* --- what is noted -------------------------------------------------------------------------------------- */

void record_birth(struct core *core, struct job *job, const struct input *input)
{
    assert(job->slot == 0);
    struct arena *arena = core->change_set.arena;
    const struct job_spec *spec = input->submit.spec;
    char program[PROGRAM_BYTES];
    program_of(spec->command, program);
    struct change *change =
        append_once(core, CHANGE_JOB_INSERT, (struct pending){fill_job, job, &job->slot, 0});
    core->change_set.job_count++;
    change->job.birth = (struct job_birth){
        .key = job->key,
        .id = arena_copy(arena, job->id),
        .owner = arena_copy(arena, input->submit.owner),
        .name = arena_copy(arena, spec->name),
        .program = arena_copy(arena, program[0] != '\0' ? program : NULL),
        .labels = input->submit.labels,
        .retry_of = arena_copy(arena, spec->retry_of),
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
    struct change *change =
        append_once(core, CHANGE_JOB_INSERT, (struct pending){fill_job, task, &task->slot, 0});
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
    append_once(core, CHANGE_ARRAY_PUT, (struct pending){fill_array, array, &array->slot, 0});
}

void record_job(struct core *core, struct job *job)
{
    if (job->slot == 0) {
        append_once(core, CHANGE_JOB_UPDATE, (struct pending){fill_job, job, &job->slot, job->seq});
        core->change_set.job_count++;
    }
}

void record_attempt_birth(struct core *core, struct attempt *attempt)
{
    append_once(core, CHANGE_ATTEMPT_INSERT, (struct pending){fill_attempt, attempt, &attempt->slot, 0});
}

void record_attempt(struct core *core, struct attempt *attempt)
{
    append_once(core, CHANGE_ATTEMPT_UPDATE, (struct pending){fill_attempt, attempt, &attempt->slot, 0});
}

void record_member_birth(struct core *core, struct member *member)
{
    append_once(core, CHANGE_MEMBER_INSERT, (struct pending){fill_member, member, &member->slot, 0});
}

void record_member(struct core *core, struct member *member)
{
    append_once(core, CHANGE_MEMBER_UPDATE, (struct pending){fill_member, member, &member->slot, 0});
}

void record_node(struct core *core, struct node *node)
{
    append_once(core, CHANGE_NODE_PUT, (struct pending){fill_node, node, &node->slot, 0});
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
    append(core, CHANGE_NODE_DELETE)->node.name = arena_copy(change_set->arena, node->name);
}

void record_window(struct core *core, const struct window_row *row)
{
    append(core, CHANGE_WINDOW_INSERT)->window = *row;
}

void record_window_gone(struct core *core, const char *id)
{
    const char *copy = arena_copy(core->change_set.arena, id);
    append(core, CHANGE_WINDOW_DELETE)->window.id = copy;
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
    struct change *change = append_pending(core, CHANGE_EVENT_INSERT, (struct pending){.subject = job});
    change->event = (struct event_row){
        .job_key = job->key,
        .seq = job->seq,
        .at_ms = job->event_ms,
        .kind = kind,
        .attempt = job->attempt_number,
        .detail = detail,
    };
}

bool record_next_event(struct core *core, const struct job **ret_job, struct event_row *ret_event)
{
    struct change_set *change_set = &core->change_set;
    while (change_set->told < change_set->count) {
        const size_t at = change_set->told++;
        if (change_set->changes[at].kind == CHANGE_EVENT_INSERT) {
            *ret_job = change_set->pending[at].subject;
            *ret_event = change_set->changes[at].event;
            return true;
        }
    }
    return false;
}

void record_webhook(struct core *core, enum change_kind kind, const struct webhook_row *row)
{
    struct arena *arena = core->change_set.arena;
    struct webhook_row *mine = &append(core, kind)->webhook;
    *mine = *row;
    WEBHOOK_ROW(KEEP, *mine)
}

void record_delivery(struct core *core, enum change_kind kind, const struct delivery_row *row)
{
    struct arena *arena = core->change_set.arena;
    struct delivery_row *mine = &append(core, kind)->delivery;
    *mine = *row;
    DELIVERY_ROW(KEEP, *mine)
    core->change_set.lazy = false;
}

void record_dependency(struct core *core, const struct job *job, int64_t on_key, enum dependency kind)
{
    struct change *change = append(core, CHANGE_DEPENDENCY_INSERT);
    change->dependency = (struct dependency_row){.job_key = job->key, .on_key = on_key, .kind = kind};
}

void record_rank(struct core *core, const struct attempt *attempt, const struct rank_exit *rank)
{
    struct change *change = append(core, CHANGE_RANK_PUT);
    change->rank = (struct rank_row){
        .attempt_id = attempt->attempt_id,
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
        struct change *blob = append(core, CHANGE_BLOB_PUT);
        blob->blob = (struct blob_row){
            .size = result->size, .bytes = result->bytes, .created_ms = record_time(core, attempt->job)};
        memcpy(blob->blob.hash, result->digest, sizeof blob->blob.hash);
    }
    struct change *change = append(core, CHANGE_RESULT_PUT);
    change->result = (struct result_row){
        .attempt_id = attempt->attempt_id,
        .rank = result->rank,
        .kind = result->kind,
        .size = result->size,
        .hash = result->digest,
        .json = result->json,
    };
}

void record_history(struct core *core, const struct history_row *row)
{
    struct arena *arena = core->change_set.arena;
    struct history_row *mine = &append(core, CHANGE_HISTORY_PUT)->history;
    *mine = *row;
    HISTORY_ROW(KEEP, *mine)
}

void record_blob(struct core *core, const struct blob_row *blob)
{
    append(core, CHANGE_BLOB_PUT)->blob = *blob;
}

void record_use(struct core *core, const struct job *job, const char *hash)
{
    append(core, CHANGE_USE_PUT)->use = (struct use_row){.job_key = job->key, .hash = hash};
}

void record_job_gone(struct core *core, int64_t key)
{
    append(core, CHANGE_JOB_DELETE)->job.life.key = key;
}

void record_response(struct core *core, const struct text *json)
{
    core->change_set.response = arena_copy(core->change_set.arena, json->bytes);
}

void record_fenced(struct core *core, uint64_t attempt_id, size_t most)
{
    struct change_set *change_set = &core->change_set;
    if (change_set->fenced == NULL) {
        change_set->fenced = arena_alloc(change_set->arena, most * sizeof *change_set->fenced);
    }
    change_set->fenced[change_set->fenced_count++] = attempt_id;
}

void record_usage(struct core *core, enum change_kind kind, const struct usage_row *usage)
{
    struct arena *arena = core->change_set.arena;
    struct usage_row *mine = &append(core, kind)->usage;
    *mine = *usage;
    USAGE_ROW(KEEP, *mine)
}

void record_hour(struct core *core, const struct hour_row *hour)
{
    struct arena *arena = core->change_set.arena;
    struct hour_row *mine = &append(core, CHANGE_HOUR_ADD)->hour;
    *mine = *hour;
    HOUR_ROW(KEEP, *mine)
}

void record_limits(struct core *core, enum change_kind kind, const struct limits_row *limits)
{
    append(core, kind)->limits = *limits;
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
    return record_details(core, name, value, NULL, NULL);
}

const char *record_details(struct core *core, const char *name, const char *value, const char *other,
                           const char *other_value)
{
    autotext struct text json = {0};
    text_printf(&json, "{\"%s\":", name);
    text_json_string(&json, value, strlen(value));
    if (other != NULL) {
        text_printf(&json, ",\"%s\":", other);
        text_json_string(&json, other_value, strlen(other_value));
    }
    text_append(&json, "}");
    return arena_copy(core->change_set.arena, json.bytes);
}

/* --- closing ---------------------------------------------------------------------------------------------
 */

static void clean_dirty(struct core *core)
{
    for (size_t i = 0; i < core->change_set.dirty_count; i++) {
        struct node *node = node_find(core, core->change_set.dirty[i]);
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
        const struct pending *pending = &change_set->pending[i];
        if (pending->fill != NULL) {
            *pending->slot = 0;
            pending->fill(core, &change_set->changes[i], pending->subject, ret_step);
        }
    }
    assert(ret_step->touched_count == change_set->job_count);
    if (change_set->answer != NULL) {
        fill_answer(core, change_set->answer, ret_step);
    }
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
