/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl ps`: lists jobs. */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "client/cli/array.h"
#include "client/cli/connect.h"
#include "client/cli/print.h"
#include "client/cli/resolve.h"
#include "client/cli/watch.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/json.h"
#include "proto/limits.h"
#include "proto/spec/tasks.h"
#include "proto/wire/views.h"

#define LIMIT_SHOWN 100000

struct ps_options {
    bool all, quiet, watch;
    const char *state, *name, *project, *owner;
    const char *array;
    char array_id[RESOLVED_BYTES]; /* the same, whole */
    int64_t since_ms;              /* 0: not given */
    int64_t limit;
    const char *format;
};

static void describe(void *options, struct option_table *table)
{
    struct ps_options *o = options;
    o->limit = LIMIT_LIST_ROWS;
    option_flag(table, 'a', "all", "those that have ended, too", &o->all);
    option_text(table, 's', "state", "STATE,...", "only those in these states", &o->state);
    option_text(table, 'n', "name", "NAME", "only those of this name", &o->name);
    option_text(table, 0, "project", "NAME", "only those of this project", &o->project);
    option_text(table, 0, "owner", "NAME", "only those of this person", &o->owner);
    option_text(table, 0, "array", "ID", "the tasks of an array", &o->array);
    option_duration(table, 0, "since", "only those made so long ago at most", &o->since_ms);
    option_int(table, 0, "limit", "N", "at most so many, newest first (default 200)", 1, LIMIT_SHOWN,
               &o->limit);
    option_flag(table, 'q', "quiet", "ids alone", &o->quiet);
    watch_option(table, &o->watch);
    option_add_format(table, &o->format);
}

static void append_live_states(struct text *out)
{
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        if (!job_state_terminal((enum job_state)state)) {
            text_printf(out, "%s%s", out->length > 0 ? "," : "", job_state_text((enum job_state)state));
        }
    }
}

/* People write states in small letters, too. */
static char *in_capitals(const char *states)
{
    char *capitals = xstrdup(states);
    for (char *at = capitals; *at != '\0'; at++) {
        *at = (char)toupper((unsigned char)*at);
    }
    return capitals;
}

static void make_path(const struct ps_options *options, struct text *path)
{
    autotext struct text live = {0};
    autofree char *wanted = options->state != NULL ? in_capitals(options->state) : NULL;
    append_live_states(&live);
    text_printf(path, "/v1/jobs?limit=%lld",
                (long long)(options->limit < LIMIT_LIST_ROWS ? options->limit : LIMIT_LIST_ROWS));
    api_query(path, "state", wanted != NULL ? wanted : options->all ? NULL : live.bytes);
    api_query(path, "name", options->name);
    api_query(path, "project", options->project);
    api_query(path, "owner", options->owner);
    api_query(path, "array", options->array != NULL ? options->array_id : NULL);
    if (options->since_ms > 0) {
        text_printf(path, "&since=%lld", (long long)(clock_wall_ms() - options->since_ms));
    }
}

static const struct column columns[] = {
    {"ID", false},   {"NAME", false},   {"STATE", false},  {"GPUS", false}, {"TYPE", false},
    {"OWNER", true}, {"PROJECT", true}, {"POOL", true},    {"TRY", true},   {"CREATED", false},
    {"TIME", false}, {"EXIT", false},   {"REASON", false},
};

/* The same with the number of the task behind the id, and what a sweep gives it. */
static const struct column task_columns[] = {
    {"ID", false},   {"TASK", false},    {"VALUES", false}, {"NAME", false},   {"STATE", false},
    {"GPUS", false}, {"TYPE", false},    {"OWNER", true},   {"PROJECT", true}, {"POOL", true},
    {"TRY", true},   {"CREATED", false}, {"TIME", false},   {"EXIT", false},   {"REASON", false},
};

/* "lr=0.1 seed=2" of one task; nothing of an array without a sweep. */
static void add_values(struct grid *grid, const json_t *spec, int64_t task)
{
    const json_t *sweep = json_object_get(spec, "sweep");
    autotext struct text text = {0};
    struct task_values values;
    if (json_is_object(sweep)) {
        task_values_make(sweep, task_values_count(sweep), task, &values);
        for (size_t i = 1; i < values.count; i++) {
            text_printf(&text, "%s%s=%s", i > 1 ? " " : "", values.items[i].name, values.items[i].text);
        }
        task_values_finish(&values);
    }
    grid_add(grid, text.bytes);
}

/* How far it is, of an array; then why. */
static void add_reason(struct grid *grid, const struct job_view *job)
{
    autotext struct text text = {0};
    if (job->array.tasks > 0) {
        array_say(&job->array, &text);
    }
    if (job->reason != NULL) {
        text_printf(&text, "%s%s", text.length > 0 ? "; " : "", job->reason);
    }
    grid_add(grid, text.bytes);
}

/* spec: of the array, when the rows are its tasks; or NULL. */
static void add_row(struct grid *grid, const struct job_view *job, const json_t *spec)
{
    char created[32], span[32];
    print_time(job->created_ms, created);
    print_span(job->started_ms, job->ended_ms, span);
    grid_add(grid, job->id);
    if (spec != NULL) {
        grid_addf(grid, "%lld", (long long)job->task);
        add_values(grid, spec, job->task);
    }
    grid_add(grid, job->name);
    grid_add(grid, job_state_text(job->state));
    grid_addf(grid, "%lld", (long long)job->gpus);
    grid_add(grid, job->gpu_type);
    grid_add(grid, job->owner);
    grid_add(grid, job->project);
    grid_add(grid, job->pool);
    grid_addf(grid, "%lld", (long long)job->attempt);
    grid_add(grid, created);
    grid_add(grid, span);
    if (job->exit_code >= 0) {
        grid_addf(grid, "%lld", (long long)job->exit_code);
    } else {
        grid_add(grid, NULL);
    }
    add_reason(grid, job);
}

static bool show_table(const json_t *jobs, const json_t *spec, bool wide, struct text *out, struct err *err)
{
    bool tasks = spec != NULL;
    size_t count = (tasks ? sizeof task_columns : sizeof columns) / sizeof columns[0];
    autogrid struct grid *grid = grid_create(tasks ? task_columns : columns, count);
    size_t i;
    json_t *item;
    json_array_foreach (jobs, i, item) {
        struct job_view job;
        if (!job_view_decode(json_incref(item), &job, err)) {
            return false;
        }
        add_row(grid, &job, spec);
        job_view_finish(&job);
    }
    grid_print(grid, wide, print_width(), print_colour(), out);
    return true;
}

static void show_ids(const json_t *jobs, struct text *out)
{
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        const char *id = json_string_value(json_object_get(job, "id"));
        text_printf(out, "%s\n", id != NULL ? id : "");
    }
}

static bool show(struct api *api, const void *closure, struct text *out, bool *ret_last, struct err *err)
{
    const struct ps_options *options = closure;
    enum print_format format = print_format(options->format);
    autotext struct text path = {0};
    make_path(options, &path);
    autojson json_t *jobs = api_list(api, path.bytes, "jobs", "cursor", options->limit, err);
    *ret_last = false;
    if (jobs == NULL) {
        return false;
    }
    if (options->quiet) {
        show_ids(jobs, out);
        return true;
    }
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        print_list(format, "jobs", jobs, out);
        return true;
    }
    autojson json_t *whole = NULL;
    if (options->array != NULL) {
        autofree char *of = xprintf("/v1/jobs/%s", options->array_id);
        whole = api_get(api, of, err);
    }
    const json_t *spec = json_object_get(whole, "spec");
    return (options->array == NULL || whole != NULL) &&
           show_table(jobs, spec, format == FORMAT_WIDE, out, err);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    struct ps_options options = *(const struct ps_options *)call->options;
    autoapi struct api *api = NULL;
    struct watch watch = {.show = show, .options = &options, .format = print_format(options.format)};
    return connect_controller(call, false, &api, err) &&
           (options.array == NULL || resolve_job(api, options.array, options.array_id, err)) &&
           watch_run(api, &watch, options.watch, err);
}

const struct verb verb_ps = {
    .name = "ps",
    .summary = "List running and waiting jobs, or all jobs.",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct ps_options),
    .describe = describe,
    .run = run,
};
