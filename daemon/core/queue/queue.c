/* SPDX-License-Identifier: Apache-2.0 */
/* Orders the waiting jobs by submission, priority and run time, as each policy says. A requeued job has its
 * old place. Equal jobs go first in, first out, and one more of them costs the same at any queue length.
 * place.c decides which jobs fit.
 *
 * The default policy gives each job a due time: its submission plus STRETCH times its run time, at most
 * PATIENCE_MS, plus some hours for use of its accounts beyond their shares. Within one priority, the job with
 * the earliest due time goes first. So short jobs wait less than long ones. No job is overtaken forever: only
 * jobs that came less than PATIENCE_MS later can overtake it. */
#include "daemon/core/queue/queue.h"

#include <string.h>

#include "daemon/core/fleet/constraint.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/model/state.h"
#include "daemon/core/model/trace.h"
#include "daemon/core/queue/fragment.h"
#include "daemon/core/queue/history.h"
#include "daemon/core/queue/turn.h"
#include "daemon/core/quota/account.h"

#define KEY_BYTES   128 /* most keys of resource requests are shorter */
#define STRETCH     10
#define PATIENCE_MS (60LL * 24 * 3600 * 1000)

/* --- job classes ---------------------------------------------------------------------------------------- */

/* Resource requests are equal if their keys are, but for the environment if it is not given. Names contain no
 * tabs; GPU types are compared ignoring case. */
static void request_key(const struct resource_request *request, const char *environment, struct text *out)
{
    const char *const parts[] = {request->gpu_type,
                                 request->pool,
                                 request->host_id,
                                 use_reserved_text(request->use_reserved),
                                 environment,
                                 request->terms,
                                 placement_text(request->placement)};
    text_reserve(out, KEY_BYTES);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        text_append(out, parts[i] != NULL ? parts[i] : "");
        for (char *at = i == 0 ? out->bytes : NULL; at != NULL && *at != '\0'; at++) {
            *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
        }
        text_append(out, "\t");
    }
    const int64_t numbers[] = {request_gpus(request), request->nodes, request->each.millicpus,
                               request->each.memory_bytes};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        text_append(out, i > 0 ? "\t" : "");
        text_append_int(out, numbers[i]);
    }
}

struct job_class *queue_find(const struct core *core, const struct resource_request *request)
{
    autotext struct text key = {0};
    request_key(request, request->environment, &key);
    struct job_class *job_class;
    HASH_FIND_STR(core->job_classes_by_key, key.bytes, job_class);
    return job_class;
}

static struct job_family *join_family(struct core *core, const struct resource_request *request)
{
    struct text key = {0};
    request_key(request, NULL, &key);
    struct job_family *family;
    HASH_FIND_STR(core->job_families, key.bytes, family);
    if (family == NULL) {
        family = xzalloc(sizeof *family);
        family->key = text_take(&key);
        family->least_estimate_ms = family->least_limit_ms = NEVER;
        HASH_ADD_KEYPTR(hh, core->job_families, family->key, strlen(family->key), family);
    }
    text_finish(&key);
    family->job_class_count++;
    return family;
}

static void leave_family(struct core *core, struct job_family *family)
{
    if (--family->job_class_count == 0) {
        HASH_DEL(core->job_families, family);
        free(family->key);
        free(family);
    }
}

static struct job_class *job_class_create(struct core *core, const struct resource_request *request,
                                          const struct environment_spec *environment)
{
    struct text key = {0};
    request_key(request, request->environment, &key);
    struct job_class *job_class = xzalloc(sizeof *job_class);
    job_class->turn_index = NO_TURN;
    job_class->family = join_family(core, request);
    job_class->key = text_take(&key);
    job_class->gpu_type = copy_or_null(request->gpu_type);
    job_class->pool = copy_or_null(request->pool);
    job_class->host_id = copy_or_null(request->host_id);
    job_class->constraints = constraints_create(request->terms);
    job_class->environment = staging_join(core, environment);
    if (environment != NULL) {
        DL_APPEND2(job_class->environment->job_classes, job_class, prev_sharing, next_sharing);
    }
    job_class->request = (struct resource_request){
        .gpu_type = job_class->gpu_type,
        .pool = job_class->pool,
        .host_id = job_class->host_id,
        .environment = staging_key(job_class->environment),
        .terms = job_class->constraints != NULL ? job_class->constraints->terms : NULL,
        .constraints = job_class->constraints,
        .use_reserved = request->use_reserved,
        .placement = request->placement,
        .units = request->units,
        .gpuless = request->gpuless,
        .each = request->each,
        .nodes = request->nodes};
    HASH_ADD_KEYPTR(hh, core->job_classes_by_key, job_class->key, strlen(job_class->key), job_class);
    return job_class;
}

static void job_class_destroy(struct core *core, struct job_class *job_class)
{
    assert(job_class->entry_count == 0);
    HASH_DEL(core->job_classes_by_key, job_class);
    leave_family(core, job_class->family);
    if (job_class->environment != NULL) {
        DL_DELETE2(job_class->environment->job_classes, job_class, prev_sharing, next_sharing);
    }
    staging_leave(core, job_class->environment);
    free(job_class->gpu_type);
    free(job_class->pool);
    free(job_class->host_id);
    free(job_class->entries);
    constraints_destroy(job_class->constraints);
    free(job_class->key);
    free(job_class);
}

void queue_join(struct core *core, struct job *job, const struct resource_request *request,
                const struct environment_spec *environment)
{
    assert(job->job_class == NULL);
    job->job_class = queue_find(core, request);
    if (job->job_class == NULL) {
        job->job_class = job_class_create(core, request, environment);
    }
    job->job_class->job_count++;
    fragment_demand(core, request, 1);
}

void queue_share(struct core *core, struct job *job, struct job_class *job_class)
{
    assert(job->job_class == NULL);
    job->job_class = job_class;
    job_class->job_count++;
    fragment_demand(core, &job_class->request, 1);
}

void queue_leave(struct core *core, struct job *job)
{
    struct job_class *job_class = job->job_class;
    job->job_class = NULL;
    fragment_demand(core, &job_class->request, -1);
    if (--job_class->job_count == 0) {
        job_class_destroy(core, job_class);
    }
}

/* Submission times never decrease, even if the clock was set back before a restart. */
void queue_stamp(struct core *core, struct job *job, int64_t steady_ms)
{
    core->submitted_ms = steady_ms > core->submitted_ms ? steady_ms : core->submitted_ms;
    job->submitted_ms = core->submitted_ms;
}

/* --- queue entries -------------------------------------------------------------------------------------- */

static int64_t estimate_of(const struct core *core, const struct job *job)
{
    return history_estimate_ms(core, job->pattern, job->time_limit_ms);
}

static int64_t remaining_of(const struct job *job, int64_t estimate_ms)
{
    return estimate_ms > job->ran_ms ? estimate_ms - job->ran_ms : 1;
}

static int64_t due_of(const struct job *job, int64_t estimate_ms)
{
    int64_t allowed_ms = estimate_ms < PATIENCE_MS / STRETCH ? STRETCH * estimate_ms : PATIENCE_MS;
    return job->submitted_ms + allowed_ms;
}

static struct queue_entry entry_of(struct core *core, const struct job *job)
{
    struct queue_entry entry = {.place = job->place,
                                .task = array_is_task(job),
                                .key = job->key,
                                .estimate_ms = estimate_of(core, job),
                                .batch = job->batch};
    switch (core->config.policy) {
    case POLICY_FIFO:
    case POLICY_EASY:
        break;
    case POLICY_SJF:
        entry.sort_key = entry.estimate_ms;
        break;
    case POLICY_SRTF:
        entry.sort_key = remaining_of(job, entry.estimate_ms);
        break;
    case POLICY_SRSF:
        entry.sort_key = remaining_of(job, entry.estimate_ms) * job->job_class->request.units;
        break;
    case POLICY_DEFAULT:
        entry.priority = job->priority;
        entry.sort_key = due_of(job, entry.estimate_ms) + account_delay_ms(core, job);
        break;
    case POLICY_COUNT:
        abort();
    }
    return entry;
}

bool queue_job_before(const struct job *a, const struct job *b)
{
    if (a->place != b->place) {
        return a->place < b->place;
    }
    bool task = array_is_task(a);
    return task != array_is_task(b) ? task : a->key < b->key;
}

bool queue_before(const struct queue_entry *a, const struct queue_entry *b)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    if (a->sort_key != b->sort_key) {
        return a->sort_key < b->sort_key;
    }
    if (a->place != b->place) {
        return a->place < b->place;
    }
    return a->task != b->task ? a->task : a->key < b->key;
}

struct queue_entry queue_entry_of(struct core *core, const struct job *job)
{
    bool first = job->batch != NULL && job->batch->jobs == job;
    return first ? job->job_class->entries[job->batch->index] : entry_of(core, job);
}

int64_t queue_due_ms(const struct core *core, const struct queue_entry *entry)
{
    return core->config.policy == POLICY_DEFAULT ? entry->sort_key : 0;
}

bool queue_parts(const struct core *core, const struct job *job, const struct queue_entry *entry,
                 struct queue_parts *ret_parts)
{
    int64_t due_ms = due_of(job, entry->estimate_ms);
    *ret_parts = (struct queue_parts){.allowance_ms = due_ms - job->submitted_ms,
                                      .share_ms = entry->sort_key - due_ms};
    return core->config.policy == POLICY_DEFAULT;
}

/* --- batches -------------------------------------------------------------------------------------------- */

static struct batch_key key_of(const struct core *core, const struct job *job)
{
    bool goes_on = core->config.policy == POLICY_SRTF || core->config.policy == POLICY_SRSF;
    struct batch_key key;
    memset(&key, 0, sizeof key); /* the key is hashed with its padding */
    key.job_class = job->job_class;
    key.pattern = job->pattern;
    key.priority = job->priority;
    key.time_limit_ms = job->time_limit_ms;
    key.ran_ms = goes_on ? job->ran_ms : 0;
    key.alone = job->trial ? job->key : 0;
    return key;
}

static void list_entry(struct core *core, struct batch *batch)
{
    struct job_class *job_class = batch->key.job_class;
    if (job_class->entry_count == 0) {
        DL_APPEND(core->job_classes, job_class);
    }
    XGROW(job_class->entries, job_class->entry_count, job_class->entry_room, 1);
    batch->index = job_class->entry_count++;
    job_class->entries[batch->index] = entry_of(core, batch->jobs);
    turn_entries_changed(core, job_class);
}

static void unlist_entry(struct core *core, struct batch *batch)
{
    struct job_class *job_class = batch->key.job_class;
    job_class->entries[batch->index] = job_class->entries[--job_class->entry_count];
    job_class->entries[batch->index].batch->index = batch->index;
    turn_entries_changed(core, job_class);
    if (job_class->entry_count == 0) {
        DL_DELETE(core->job_classes, job_class);
    }
}

void queue_recalculate(struct core *core, struct queue_entry *entry)
{
    uint64_t passed = entry->passed;
    *entry = entry_of(core, entry->batch->jobs);
    entry->passed = passed;
}

/* Recalculates the entry after the batch's first job has changed. */
static void renew_entry(struct core *core, struct batch *batch)
{
    queue_recalculate(core, &batch->key.job_class->entries[batch->index]);
    turn_entries_changed(core, batch->key.job_class);
}

static void insert(struct batch *batch, struct job *job)
{
    struct job *last = batch->jobs != NULL ? batch->jobs->prev : NULL;
    if (last == NULL || queue_job_before(last, job)) {
        DL_APPEND(batch->jobs, job);
        return;
    }
    struct job *after = batch->jobs;
    while (queue_job_before(after, job)) {
        after = after->next;
    }
    DL_PREPEND_ELEM(batch->jobs, after, job);
}

void queue_put(struct core *core, struct job *job)
{
    assert(job->batch == NULL);
    const struct batch_key key = key_of(core, job);
    struct batch *batch;
    HASH_FIND(hh, core->batches, &key, sizeof key, batch);
    if (batch != NULL) {
        insert(batch, job);
        job->batch = batch;
        if (batch->jobs != job) {
            trace_line(core, "job %s waits behind %s", job->id, job->prev->id);
            return;
        }
        renew_entry(core, batch);
    } else {
        batch = xzalloc(sizeof *batch);
        batch->key = key;
        HASH_ADD(hh, core->batches, key, sizeof batch->key, batch);
        insert(batch, job);
        job->batch = batch;
        list_entry(core, batch);
    }
    core->place_wanted = true;
}

void queue_take(struct core *core, struct job *job)
{
    struct batch *batch = job->batch;
    bool first = batch->jobs == job;
    DL_DELETE(batch->jobs, job);
    job->prev = job->next = NULL;
    job->batch = NULL;
    if (batch->jobs == NULL) {
        unlist_entry(core, batch);
        HASH_DEL(core->batches, batch);
        free(batch);
    } else if (first) {
        renew_entry(core, batch);
    }
    core->place_wanted = core->place_wanted || first;
}

static int by_key_downwards(const void *a, const void *b)
{
    const struct queue_entry *left = a, *right = b;
    return (left->key < right->key) - (left->key > right->key);
}

/* The order of the entries depends on earlier questions. Changes of their jobs must not depend on it, so they
 * are sorted first. */
static void sort_entries(struct core *core, struct job_class *job_class)
{
    qsort(job_class->entries, job_class->entry_count, sizeof *job_class->entries, by_key_downwards);
    for (size_t i = 0; i < job_class->entry_count; i++) {
        job_class->entries[i].batch->index = i;
    }
    turn_entries_sorted(core, job_class);
}

void queue_each(struct core *core, struct job_class *job_class,
                void (*visit)(struct core *core, struct job *job, void *closure), void *closure)
{
    if (job_class->entry_count > 1) {
        sort_entries(core, job_class);
    }
    for (size_t i = job_class->entry_count; i > 0; i--) { /* the last one replaces a removed one */
        struct job *job, *next;
        DL_FOREACH_SAFE (job_class->entries[i - 1].batch->jobs, job, next) {
            visit(core, job, closure);
        }
    }
}

struct job *queue_first(const struct queue_entry *entry)
{
    return entry->batch->jobs;
}
