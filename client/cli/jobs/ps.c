/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl ps`: lists jobs. */
#include <stdint.h>

#include "client/cli/transport/api.h"
#include "client/cli/spec/short_forms.h"
#include "client/cli/common/answer.h"
#include "client/cli/transport/pages.h"
#include "client/cli/common/jobs.h"
#include "client/cli/common/watch.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/spec/tasks.h"

struct ps_options {
    bool all;
    const char *state, *name, *project, *owner, *node, *array;
    int64_t since_ms; /* 0: not given */
    int64_t limit;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct ps_options, all, 'a', "all", "those that have ended, too"),
    ROW_TEXT(struct ps_options, state, 's', "state", "STATE,...", "only those in these states"),
    ROW_TEXT(struct ps_options, name, 'n', "name", "NAME", "only those of this name"),
    ROW_TEXT(struct ps_options, project, 0, "project", "NAME", "only those of this project"),
    ROW_TEXT(struct ps_options, owner, 0, "owner", "NAME", "only those of this person"),
    ROW_TEXT(struct ps_options, node, 0, "node", "NAME",
             "only those that were placed on this node, tasks too"),
    ROW_TEXT(struct ps_options, array, 0, "array", "ID", "the tasks of an array"),
    ROW_DURATION(struct ps_options, since_ms, 0, "since", "only those made so long ago at most"),
    ROW_INT(struct ps_options, limit, 0, "limit", "N", "at most so many, newest first (default 200)", 1,
            LIMIT_LISTED, .absent = LIMIT_LIST_ROWS),
    ROW_QUIET("ids alone"),
    ROW_WATCH,
    ROW_FORMAT,
    ROWS_END};

/* array: whole, or NULL. */
static void make_path(const struct ps_options *options, const char *array, struct text *path)
{
    autofree char *wanted = options->state != NULL ? states_in_capitals(options->state) : NULL;
    text_printf(path, "/v1/jobs?limit=%lld",
                (long long)(options->limit < LIMIT_LIST_ROWS ? options->limit : LIMIT_LIST_ROWS));
    api_query(path, "state", wanted);
    if (wanted == NULL && !options->all) {
        pages_states(path, false);
    }
    api_query(path, "name", options->name);
    api_query(path, "project", options->project);
    api_query(path, "owner", options->owner);
    api_query(path, "node", options->node);
    api_query(path, "array", array);
    if (options->since_ms > 0) {
        text_printf(path, "&since=%lld", (long long)(clock_wall_ms() - options->since_ms));
    }
}

/* How far it is, of an array; then why. */
static void show_reason(const json_t *job, const char *member, struct text *out)
{
    array_say(json_object_get(job, "array"), out);
    text_append(out, out->length > 0 && json_string_of(job, member) != NULL ? "; " : "");
    cell_plain(job, member, out);
}

static void show_span(const json_t *job, const char *member, struct text *out)
{
    char span[32];
    print_span(print_time_of(job, member), print_time_of(job, "ended_at"), span);
    text_append(out, span);
}

/* Of what the node had of it last. */
static void show_there(const json_t *job, const char *member, struct text *out)
{
    cell_plain(json_object_get(job, "on_node"), member, out);
}

static void show_time_there(const json_t *job, const char *member, struct text *out)
{
    cell_time(json_object_get(job, "on_node"), member, out);
}

/* "lr=0.1 seed=2" of one task; nothing of an array without a sweep. */
static void show_values(const json_t *job, const char *member, struct text *out)
{
    const json_t *sweep = json_object_get(job, member);
    struct task_values values;
    if (json_is_object(sweep)) {
        task_values_make(sweep, task_values_count(sweep), json_integer_value(json_object_get(job, "task")),
                         &values);
        for (size_t i = 1; i < values.count; i++) {
            text_printf(out, "%s%s=%s", i > 1 ? " " : "", values.items[i].name, values.items[i].text);
        }
        task_values_finish(&values);
    }
}

/* A job without a name is called by its program. */
static void show_name(const json_t *job, const char *member, struct text *out)
{
    cell_plain(job, json_string_of(job, member) != NULL ? member : "program", out);
}

#define OF_ALL                                                                                               \
    COLUMN("NAME", "name", show_name), COLUMN("STATE", "state", cell_plain),                                 \
        COLUMN("GPUS", "gpus", cell_plain), COLUMN("TYPE", "gpu_type", cell_plain),                          \
        WIDE_COLUMN("OWNER", "owner", cell_plain), WIDE_COLUMN("PROJECT", "project", cell_plain),            \
        WIDE_COLUMN("POOL", "pool", cell_plain), WIDE_COLUMN("TRY", "attempt", cell_plain),                  \
        COLUMN("CREATED", "created_at", cell_time), COLUMN("TIME", "started_at", show_span),                 \
        COLUMN("EXIT", "exit_code", cell_plain),                                                             \
    {                                                                                                        \
        "REASON", false, "reason", show_reason                                                               \
    }

static const struct column columns[] = {COLUMN("ID", "id", cell_plain), OF_ALL};
static const struct column task_columns[] = {COLUMN("ID", "id", cell_plain),
                                             COLUMN("TASK", "task", cell_plain),
                                             COLUMN("VALUES", "sweep", show_values), OF_ALL};

static const struct column node_columns[] = {COLUMN("ID", "id", cell_plain),
                                             COLUMN("NAME", "name", show_name),
                                             COLUMN("STATE", "state", cell_plain),
                                             COLUMN("OWNER", "owner", cell_plain),
                                             WIDE_COLUMN("PROJECT", "project", cell_plain),
                                             COLUMN("DEVICES", "devices", show_there),
                                             COLUMN("FROM", "created_at", show_time_there),
                                             COLUMN("UNTIL", "ended_at", show_time_there),
                                             COLUMN("TRY", "attempt", show_there),
                                             COLUMN("CAUSE", "cause", show_there),
                                             WIDE_COLUMN("REASON", "reason", show_there)};

static const struct listing jobs = {.name = "jobs", LIST_COLUMNS(columns), .key = "id"};
static const struct listing on_node = {.name = "jobs", LIST_COLUMNS(node_columns), .key = "id"};
static const struct listing tasks = {.name = "jobs", LIST_COLUMNS(task_columns), .key = "id"};

/* Each task learns of the sweep of its array. */
static bool tell_sweep(const struct call *call, const char *array, json_t *items, struct err *err)
{
    autojson json_t *whole = api_get(call->api, err, "/v1/jobs/%s", array);
    json_t *sweep = json_object_get(json_object_get(whole, "spec"), "sweep");
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        json_object_set(item, "sweep", sweep);
    }
    return whole != NULL;
}

static bool show(const struct call *call, struct text *out, bool *ret_last, struct err *err)
{
    const struct ps_options *options = call->options;
    const char *array = options->array != NULL ? call->id : NULL;
    autotext struct text path = {0};
    make_path(options, array, &path);
    autojson json_t *items = api_list(call->api, path.bytes, "jobs", "cursor", options->limit, err);
    bool table = !call->common->quiet && !print_is_json(call->format);
    *ret_last = false;
    if (items == NULL || (array != NULL && table && !tell_sweep(call, array, items, err))) {
        return false;
    }
    list_print(call, array != NULL ? &tasks : options->node != NULL ? &on_node : &jobs, items, out);
    return true;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct ps_options *options = call->options;
    struct call of_array = *call;
    return (options->array == NULL || resolve_job(call->api, options->array, of_array.id, err)) &&
           watch_run(&of_array, show, err);
}

const struct verb verb_ps = {
    .name = "ps",
    .summary = "List running and waiting jobs, or all jobs.",
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct ps_options),
    .rows = {rows},
    .run = run,
};
