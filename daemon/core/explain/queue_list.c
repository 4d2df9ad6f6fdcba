/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the first waiting jobs in the order in which a scheduling pass looks at them, with what made the
 * order, and what runs by its expected end. An array and its tasks that wait again are one row, where the
 * first of them stands. Reasons and starts cost a look at the queue for each row, and are given until
 * LIMIT_QUEUE_WORK is used up. The rest costs time for the waiting jobs before the last row. */
#include "daemon/core/explain/queue_list.h"

#include <string.h>

#include "daemon/core/explain/ahead.h"
#include "daemon/core/explain/field.h"
#include "daemon/core/explain/forecast.h"
#include "daemon/core/explain/reason.h"
#include "daemon/core/explain/reserved_nodes.h"
#include "daemon/core/lifecycle/availability.h"
#include "daemon/core/model/input.h"
#include "daemon/core/model/state.h"
#include "daemon/core/queue/queue.h"
#include "daemon/core/quota/account.h"
#include "daemon/core/scheduler/fit.h"
#include "daemon/core/scheduler/place.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

/* The next job of a batch. */
struct cursor {
    struct queue_entry entry;
    const struct job *job;
    bool matches; /* the jobs of this class could use the pool that is asked for */
};

struct row {
    const struct job *job; /* the first in the queue */
    struct queue_entry entry;
    int64_t position;
    int64_t tasks;  /* of an array: that wait */
    size_t earlier; /* so many jobs come before it */
    struct starts starts;
};

/* An array that was met, and its row. */
struct met {
    const struct array *array;
    size_t row; /* NO_ROW: it is not listed */
    UT_hash_handle hh;
};
#define NO_ROW SIZE_MAX

struct list {
    struct core *core;
    const struct input *input;
    struct cursor *cursors; /* a heap: the first job of the queue first; owned */
    size_t cursor_count;
    struct met *arrays; /* owned */
    struct row *rows;   /* owned */
    size_t count, room;
    const struct job **earlier; /* the jobs up to the last row, in queue order; owned */
    size_t earlier_count, earlier_room;
    struct forecasts *forecasts; /* owned */
    int64_t position;            /* of the last job that was met */
    int64_t total;               /* rows, listed or not */
    size_t entries;              /* of the queue */
    int64_t work;
    struct reserved_nodes reserved;
    struct text *out;
};

/* --- what is asked for ---------------------------------------------------------------------------------- */

static bool is_wanted(const struct input *input, const struct job *job)
{
    return (input->ask.project == NULL || strcmp(input->ask.project, account_name(job->project)) == 0) &&
           (input->ask.owner == NULL || strcmp(input->ask.owner, account_name(job->owner)) == 0);
}

/* Whether such jobs name the pool, or could get GPUs of it. */
static bool could_use(struct core *core, const struct resource_request *request, const char *pool)
{
    if (pool == NULL || (request->pool != NULL && strcmp(request->pool, pool) == 0)) {
        return true;
    }
    const struct search search = fit_search(core, request, VIEW_REGISTERED, NULL);
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        if (strcmp(partition->pool, pool) == 0 && fit_allowed(&search, partition)) {
            return true;
        }
    }
    return false;
}

/* --- the order ------------------------------------------------------------------------------------------ */

static void sift_down(struct list *list, size_t at)
{
    struct cursor *cursors = list->cursors, moved = cursors[at];
    for (size_t child; (child = 2 * at + 1) < list->cursor_count; at = child) {
        if (child + 1 < list->cursor_count &&
            queue_before(&cursors[child + 1].entry, &cursors[child].entry)) {
            child++;
        }
        if (!queue_before(&cursors[child].entry, &moved.entry)) {
            break;
        }
        cursors[at] = cursors[child];
    }
    cursors[at] = moved;
}

static void add_cursors(struct list *list)
{
    struct core *core = list->core;
    size_t count = 0;
    for (const struct job_class *each = core->job_classes; each != NULL; each = each->next) {
        count += each->entry_count;
    }
    list->entries = count;
    list->cursors = xalloc((count + 1) * sizeof *list->cursors);
    for (const struct job_class *each = core->job_classes; each != NULL; each = each->next) {
        bool matches = could_use(core, &each->request, list->input->ask.pool);
        for (size_t i = 0; i < each->entry_count; i++) {
            list->cursors[list->cursor_count++] =
                (struct cursor){each->entries[i], queue_first(&each->entries[i]), matches};
        }
    }
    for (size_t i = list->cursor_count / 2; i > 0; i--) {
        sift_down(list, i - 1);
    }
}

static void advance(struct list *list)
{
    struct cursor *first = &list->cursors[0];
    const struct job *next = first->job->next;
    if (next != NULL) {
        first->job = next;
        first->entry = queue_entry_of(list->core, next);
    } else {
        *first = list->cursors[--list->cursor_count];
    }
    sift_down(list, 0);
}

/* The array of the job, if it was met before. */
static struct met *find_array(const struct list *list, const struct job *job)
{
    struct met *met = NULL;
    if (job->array != NULL) {
        HASH_FIND_PTR(list->arrays, &job->array, met);
    }
    return met;
}

static void meet_array(struct list *list, const struct job *job, size_t row)
{
    if (job->array != NULL) {
        struct met *met = xalloc(sizeof *met);
        *met = (struct met){.array = job->array, .row = row};
        HASH_ADD_PTR(list->arrays, array, met);
    }
}

static bool wants_more(const struct list *list)
{
    return list->count < (size_t)list->input->ask.limit;
}

/* Takes a job in queue order with its starts, or, behind the last row, in any order without. */
static void meet(struct list *list, const struct cursor *cursor, const struct starts *starts)
{
    const struct job *job = cursor->job;
    const struct met *met = find_array(list, job);
    if (met != NULL) {
        if (met->row != NO_ROW && array_is_task(job)) {
            list->rows[met->row].tasks++;
        }
        return;
    }
    list->position++;
    bool wanted = cursor->matches && is_wanted(list->input, job), listed = wanted && wants_more(list);
    meet_array(list, job, listed ? list->count : NO_ROW);
    list->total += wanted;
    if (listed) {
        int64_t tasks = job->array != NULL ? array_left(job->array) + array_is_task(job) : 0;
        XGROW(list->rows, list->count, list->room, 64);
        list->rows[list->count++] = (struct row){.job = job,
                                                 .entry = cursor->entry,
                                                 .position = list->position,
                                                 .tasks = tasks,
                                                 .earlier = list->earlier_count,
                                                 .starts = *starts};
    }
}

static void find_rows(struct list *list)
{
    add_cursors(list);
    while (list->cursor_count > 0 && wants_more(list)) {
        const struct cursor cursor = list->cursors[0];
        const struct starts starts = forecasts_next(list->forecasts, cursor.job);
        meet(list, &cursor, &starts);
        XGROW(list->earlier, list->earlier_count, list->earlier_room, 64);
        list->earlier[list->earlier_count++] = cursor.job;
        advance(list);
    }
    for (size_t i = 0; i < list->cursor_count; i++) { /* whose order matters to nobody */
        for (struct cursor cursor = list->cursors[i]; cursor.job != NULL; cursor.job = cursor.job->next) {
            meet(list, &cursor, NULL);
        }
    }
}

/* --- rows ----------------------------------------------------------------------------------------------- */

static void write_order(const struct list *list, const struct row *row)
{
    struct queue_parts parts;
    struct text *out = list->out;
    bool due = queue_parts(list->core, row->job, &row->entry, &parts);
    text_printf(out, ",\"priority\":%d", (int)row->job->priority);
    field_write_wall(out, ",\"submitted_at\":", row->job->submitted_ms);
    field_write_seconds(out, ",\"estimate_s\":", row->entry.estimate_ms);
    if (due) {
        field_write_seconds(out, ",\"allowance_s\":", parts.allowance_ms);
        field_write_seconds(out, ",\"share_delay_s\":", parts.share_ms);
        field_write_wall(out, ",\"due_at\":", row->entry.sort_key);
    } else {
        text_append(out, ",\"allowance_s\":null,\"share_delay_s\":null,\"due_at\":null");
    }
}

/* What the reason and the start of a job cost, in microseconds: they look at the queue, at all nodes and at
 * all that runs. */
static int64_t cost_of(const struct list *list, const struct ahead *ahead, int64_t visits)
{
    const struct core *core = list->core;
    size_t looks = list->entries / 8 + core->availability.end_count + core->node_count + ahead->count / 4;
    return (int64_t)looks + visits;
}

/* Why it waits, and until when. */
static void write_wait(struct list *list, const struct row *row)
{
    struct core *core = list->core;
    const struct job *job = row->job;
    struct ahead ahead;
    struct outlook outlook;
    autotext struct text sentence = {0};
    if (list->work >= LIMIT_QUEUE_WORK) {
        text_append(list->out, ",\"reason\":null,\"start\":null");
        return;
    }
    int64_t before = core->pass_work;
    ahead_count(core, job, list->earlier, row->earlier, &ahead);
    place_consider(core, job, &outlook);
    enum wait_reason reason = reason_of(core, job, &outlook, &ahead, &sentence);
    text_printf(list->out, ",\"reason\":{\"code\":\"%s\"", wait_reason_text(reason));
    field_write_text(list->out, ",\"text\":", sentence.bytes);
    text_append(list->out, "},\"start\":");
    const struct forecast forecast =
        outlook_starts_now(&outlook) ? forecast_now(core) : forecast_of(core, job, &row->starts);
    forecast_write(core, &forecast, list->out);
    list->work += cost_of(list, &ahead, (core->pass_work - before) / PASS_VISIT_WORK);
    outlook_finish(&outlook);
    ahead_finish(&ahead);
}

static void write_row(struct list *list, const struct row *row)
{
    struct text *out = list->out;
    const struct job *job = row->job, *shown = job->array != NULL ? job->array->whole : job;
    const struct resource_request *request = &job->job_class->request;
    text_printf(out, "{\"position\":%lld,\"id\":\"%s\",\"name\":null,\"state\":\"%s\"",
                (long long)row->position, shown->id, job_state_text(shown->state));
    field_write_text(out, ",\"owner\":", account_name(job->owner));
    field_write_text(out, ",\"project\":", account_name(job->project));
    field_write_text(out, ",\"pool\":", request->pool);
    field_write_text(out, ",\"gpu_type\":", request->gpu_type);
    text_printf(out, ",\"gpus\":%lld", (long long)request_gpus(request));
    if (job->array != NULL) {
        text_printf(out, ",\"tasks\":%lld", (long long)row->tasks);
    } else {
        text_append(out, ",\"tasks\":null");
    }
    write_order(list, row);
    write_wait(list, row);
    text_append(out, ",\"reservations\":");
    reserved_nodes_write(list->core, &list->reserved, job, out);
    text_append(out, "}");
}

/* --- what runs ------------------------------------------------------------------------------------------ */

static bool is_shown(const struct list *list, const struct attempt *attempt)
{
    const char *pool = list->input->ask.pool;
    const struct partition *partition = availability_partition(attempt);
    return attempt->member_count > 0 && is_wanted(list->input, attempt->job) &&
           (pool == NULL || (partition != NULL && strcmp(partition->pool, pool) == 0));
}

static void write_attempt(const struct list *list, const struct attempt *attempt)
{
    const struct core *core = list->core;
    struct text *out = list->out;
    int64_t gpus = 0;
    text_printf(out, "{\"id\":\"%s\",\"name\":null", attempt->job->id);
    field_write_text(out, ",\"owner\":", account_name(attempt->job->owner));
    field_write_text(out, ",\"project\":", account_name(attempt->job->project));
    text_append(out, ",\"nodes\":[");
    for (size_t i = 0; i < attempt->member_count; i++) {
        gpus += (int64_t)attempt->members[i]->device_count;
        if (i < LIMIT_QUEUE_NODES) {
            field_write_text(out, i > 0 ? "," : "", attempt->members[i]->node->name);
        }
    }
    text_printf(out, "],\"node_count\":%zu,\"gpus\":%lld", attempt->member_count, (long long)gpus);
    field_write_time(core, out, ",\"held_since\":", core->now_ms - availability_held_ms(core, attempt));
    field_write_time(core, out, ",\"ends_at\":", availability_end_ms(core, attempt));
    text_append(out, "}");
}

/* By their expected ends. */
static void write_running(const struct list *list)
{
    struct availability_walk walk;
    availability_walk_begin(list->core, &walk);
    int64_t count = 0;
    text_append(list->out, ",\"running\":[");
    while (count < LIMIT_QUEUE_RUNNING && availability_walk_peek(&walk) != NULL) {
        const struct attempt *attempt = availability_walk_next(&walk);
        if (is_shown(list, attempt)) {
            text_append(list->out, count > 0 ? "," : "");
            write_attempt(list, attempt);
            count++;
        }
    }
    text_append(list->out, "]");
    availability_walk_finish(&walk);
}

/* --- the answer ----------------------------------------------------------------------------------------- */

/* Jobs that are not in the queue. */
static void write_kept_back(const struct list *list)
{
    int64_t held = 0, blocked = 0;
    for (const struct job *job = list->core->jobs_by_key; job != NULL; job = job->by_key.next) {
        if (job_is_kept_back(job) && is_wanted(list->input, job) &&
            could_use(list->core, &job->job_class->request, list->input->ask.pool)) {
            held += job->state == JOB_HELD;
            blocked += job->state == JOB_BLOCKED;
        }
    }
    text_printf(list->out, ",\"held\":%lld,\"blocked\":%lld", (long long)held, (long long)blocked);
}

static void list_finish(struct list *list)
{
    struct met *met, *next;
    HASH_ITER (hh, list->arrays, met, next) {
        HASH_DEL(list->arrays, met);
        free(met);
    }
    reserved_nodes_finish(&list->reserved);
    forecasts_finish(list->forecasts);
    free(list->earlier);
    free(list->cursors);
    free(list->rows);
}

void queue_list_write(struct core *core, const struct input *input, struct text *out)
{
    struct list list = {.core = core, .input = input, .out = out, .forecasts = forecasts_begin(core)};
    find_rows(&list);
    reserved_nodes_find(core, &list.reserved);
    field_write_wall(out, "{\"as_of\":", core->wall_ms);
    text_printf(out, ",\"policy\":\"%s\",\"count\":%lld", policy_text(core->config.policy),
                (long long)list.total);
    write_kept_back(&list);
    text_append(out, ",\"jobs\":[");
    for (size_t i = 0; i < list.count; i++) {
        text_append(out, i > 0 ? "," : "");
        write_row(&list, &list.rows[i]);
    }
    text_append(out, "]");
    write_running(&list);
    text_append(out, "}");
    list_finish(&list);
}
