/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl queue`: the waiting jobs in the order in which the scheduler looks at them, and what made it. */
#include <stdint.h>
#include <string.h>

#include "client/cli/common/answer.h"
#include "client/cli/common/watch.h"
#include "client/cli/transport/api.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

struct queue_options {
    const char *pool, *project, *owner;
    int64_t limit;
};

static const struct option_row rows[] = {
    ROW_TEXT(struct queue_options, pool, 0, "pool", "NAME", "only those that could get GPUs of this pool"),
    ROW_TEXT(struct queue_options, project, 0, "project", "NAME", "only those of this project"),
    ROW_TEXT(struct queue_options, owner, 0, "owner", "NAME", "only those of this person"),
    ROW_INT(struct queue_options, limit, 0, "limit", "N", "the first so many (default 100)", 1,
            LIMIT_QUEUE_ROWS, .absent = QUEUE_ROWS),
    ROW_QUIET("ids alone"),
    ROW_WATCH,
    ROW_FORMAT,
    ROWS_END};

/* --- cells ---------------------------------------------------------------------------------------------- */

static void say_span(int64_t ms, struct text *out)
{
    char span[32];
    text_from_duration_ms(ms > 0 ? ms : 0, span, sizeof span);
    text_append(out, span);
}

/* "4", and "4 x 100" of an array whose 100 tasks wait. */
static void show_gpus(const json_t *job, const char *member, struct text *out)
{
    const json_t *tasks = json_object_get(job, "tasks");
    cell_plain(job, member, out);
    if (json_is_integer(tasks)) {
        text_printf(out, " x %lld", (long long)json_integer_value(tasks));
    }
}

static void show_wait(const json_t *job, const char *member, struct text *out)
{
    say_span(clock_wall_ms() - print_time_of(job, member), out);
}

/* Hours by which the use of its accounts moves it. */
static void show_delay(const json_t *job, const char *member, struct text *out)
{
    double delay_s = json_number_value(json_object_get(job, member));
    if (delay_s <= -1 || delay_s >= 1) {
        text_append(out, delay_s < 0 ? "-" : "+");
        say_span((int64_t)((delay_s < 0 ? -delay_s : delay_s) * 1000), out);
    }
}

static void show_start(const json_t *job, const char *member, struct text *out)
{
    const json_t *start = json_object_get(job, member);
    int64_t at_ms = print_time_of(start, "at"), later_ms = print_time_of(start, "later_than");
    if (at_ms != 0 || later_ms != 0) {
        text_append(out, at_ms != 0 ? "in " : "after ");
        say_span((at_ms != 0 ? at_ms : later_ms) - clock_wall_ms(), out);
    }
}

/* "node0 node1 in 20 min" of each reservation. */
static void show_reserved(const json_t *job, const char *member, struct text *out)
{
    size_t i, j;
    const json_t *reserved, *place;
    json_array_foreach (json_object_get(job, member), i, reserved) {
        const json_t *nodes = json_object_get(reserved, "nodes");
        text_append(out, i > 0 ? "; " : "");
        json_array_foreach (nodes, j, place) {
            text_printf(out, "%s%s", j > 0 ? " " : "", print_text_of(place, "node"));
        }
        if (json_array_size(nodes) == 0) {
            text_printf(out, "pool %s", print_text_of(reserved, "pool"));
        }
        text_append(out, " in ");
        say_span(print_time_of(reserved, "from") - clock_wall_ms(), out);
    }
}

static void show_reason(const json_t *job, const char *member, struct text *out)
{
    cell_plain(json_object_get(job, member), "text", out);
}

static const struct column columns[] = {
    COLUMN("POS", "position", cell_plain),
    COLUMN("ID", "id", cell_plain),
    COLUMN("NAME", "name", cell_plain),
    COLUMN("OWNER", "owner", cell_plain),
    COLUMN("PROJECT", "project", cell_plain),
    WIDE_COLUMN("POOL", "pool", cell_plain),
    COLUMN("GPUS", "gpus", show_gpus),
    COLUMN("TYPE", "gpu_type", cell_plain),
    COLUMN("PRIO", "priority", cell_plain),
    COLUMN("WAITS", "submitted_at", show_wait),
    WIDE_COLUMN("RUNS", "estimate_s", cell_seconds),
    WIDE_COLUMN("SHARE", "share_delay_s", show_delay),
    WIDE_COLUMN("DUE", "due_at", cell_time),
    COLUMN("START", "start", show_start),
    WIDE_COLUMN("RESERVED", "reservations", show_reserved),
    COLUMN("REASON", "reason", show_reason),
};

static const struct listing jobs = {.name = "jobs", LIST_COLUMNS(columns), .key = "id"};

/* --- the verb ------------------------------------------------------------------------------------------- */

static void put_total(const json_t *queue, struct text *out)
{
    long long count = json_integer_value(json_object_get(queue, "count"));
    long long held = json_integer_value(json_object_get(queue, "held"));
    long long blocked = json_integer_value(json_object_get(queue, "blocked"));
    text_printf(out, "policy %s; %lld %s", print_text_of(queue, "policy"), count,
                count == 1 ? "job waits" : "jobs wait");
    if (count > (long long)json_array_size(json_object_get(queue, "jobs"))) {
        text_printf(out, ", the first %zu are shown", json_array_size(json_object_get(queue, "jobs")));
    }
    if (held > 0 || blocked > 0) {
        text_printf(out, "; not in the queue: %lld held, %lld blocked", held, blocked);
    }
    text_append(out, "\n");
}

static void print_table(const struct call *call, const json_t *queue, struct text *out)
{
    list_print(call, &jobs, json_object_get(queue, "jobs"), out);
    if (!call->common->quiet) {
        put_total(queue, out);
    }
}

static bool show(const struct call *call, struct text *out, bool *ret_last, struct err *err)
{
    const struct queue_options *options = call->options;
    autotext struct text path = {0};
    text_printf(&path, "/v1/queue?limit=%lld", (long long)options->limit);
    api_query(&path, "pool", options->pool);
    api_query(&path, "project", options->project);
    api_query(&path, "owner", options->owner);
    autojson json_t *queue = api_read(call->api, path.bytes, err);
    *ret_last = false;
    return answer_document(call, queue, print_table, out);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    return watch_run(call, show, err);
}

const struct verb verb_queue = {
    .name = "queue",
    .summary = "Show who is next, and why.",
    .details =
        "The jobs that wait for GPUs, in the order in which the scheduler looks at them. Under the policy "
        "default the higher PRIO\ngoes first, then the job that is due first: DUE is its submission, ten "
        "times "
        "RUNS, and SHARE, by which the use\nof its project and owner moves it. START is an estimate. "
        "RESERVED "
        "are nodes that are kept for it.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct queue_options),
    .rows = {rows},
    .run = run,
};
