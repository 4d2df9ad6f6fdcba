/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl get`: everything that is known of one job. */
#include <stdint.h>
#include <string.h>

#include "client/cli/array.h"
#include "client/cli/connect.h"
#include "client/cli/events.h"
#include "client/cli/print.h"
#include "client/cli/resolve.h"
#include "client/cli/runs.h"
#include "client/cli/timing.h"
#include "client/cli/watch.h"
#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/wire/views.h"

#define SHOWN_LINES 8 /* of an environment */
#define SHOWN_RUNS  3

struct get_options {
    bool watch, timing;
    const char *format;
};

/* What one look is made of. */
struct look {
    const char *id;
    enum print_format format;
};

static void describe(void *options, struct option_table *table)
{
    struct get_options *o = options;
    watch_option(table, &o->watch);
    option_flag(table, 0, "timing", "show where the time of its starts went instead", &o->timing);
    option_add_format(table, &o->format);
}

/* --- facts --- */

static const struct column fact_columns[] = {{"FACT", false}, {"VALUE", false}};

static void add_fact(struct grid *grid, const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0') {
        grid_add(grid, name);
        grid_add(grid, value);
    }
}

static void add_number(struct grid *grid, const char *name, int64_t value)
{
    grid_add(grid, name);
    grid_addf(grid, "%lld", (long long)value);
}

static void add_time(struct grid *grid, const char *name, int64_t wall_ms)
{
    char at[32];
    print_time(wall_ms, at);
    add_fact(grid, name, wall_ms != 0 ? at : NULL);
}

/* The first lines of an environment, which may have hundreds, and its Python. */
static void show_environment(const json_t *environment, struct text *shown)
{
    const json_t *lines = json_object_get(environment, "requirements");
    const char *blob = json_string_value(json_object_get(environment, "blob"));
    const char *python = json_string_value(json_object_get(environment, "python"));
    size_t count = json_array_size(lines);
    for (size_t i = 0; i < count && i < SHOWN_LINES; i++) {
        const char *line = json_string_value(json_array_get(lines, i));
        text_printf(shown, "%s%s", i > 0 ? ", " : "", line != NULL ? line : "?");
    }
    if (count > SHOWN_LINES) {
        text_printf(shown, " and %zu more", count - SHOWN_LINES);
    }
    if (blob != NULL) {
        text_printf(shown, "blob %s", blob);
    }
    if (python != NULL) {
        text_printf(shown, "%sPython %s", shown->length > 0 ? "; " : "", python);
    }
}

/* What was asked for, as it was; values of files and variables are long and sometimes secret, so only their
 * names. */
static void add_spec(struct grid *grid, const char *text)
{
    autojson json_t *spec = text != NULL ? json_parse(text, strlen(text), NULL) : NULL;
    const char *name;
    json_t *value;
    json_object_foreach (spec, name, value) {
        autotext struct text shown = {0};
        const char *key;
        json_t *inner;
        if (strcmp(name, "env") == 0) {
            json_object_foreach (value, key, inner) {
                text_printf(&shown, "%s%s", shown.length > 0 ? " " : "", key);
            }
        } else if (strcmp(name, "files") == 0) {
            size_t i;
            json_array_foreach (value, i, inner) {
                const char *path = json_string_value(json_object_get(inner, "path"));
                text_printf(&shown, "%s%s", i > 0 ? " " : "", path != NULL ? path : "?");
            }
        } else if (strcmp(name, "environment") == 0) {
            show_environment(value, &shown);
        } else if (!json_is_string(value)) {
            autofree char *plain = json_text(value);
            text_append(&shown, plain);
        }
        autofree char *fact = xprintf("spec.%s", name);
        add_fact(grid, fact, json_is_string(value) ? json_string_value(value) : shown.bytes);
    }
}

static void add_end(struct grid *grid, const struct job_view *job)
{
    if (job->exit_code >= 0) {
        add_number(grid, "exit code", job->exit_code);
    }
    if (job->failed_rank >= 0) {
        add_number(grid, "failed rank", job->failed_rank);
    }
    add_fact(grid, "failed node", job->failed_node);
    add_fact(grid, "cause", job->cause != CAUSE_NONE ? cause_sentence(job->cause) : NULL);
}

/* Each line is a fact of its own: the newest first, as many as a person looks at. */
static void add_runs(struct grid *grid, const json_t *runs)
{
    size_t i;
    const json_t *run;
    json_array_foreach (runs, i, run) {
        if (i == SHOWN_RUNS) {
            break;
        }
        autotext struct text shown = {0};
        runs_say(run, &shown);
        add_fact(grid, "run", shown.bytes);
    }
}

static void add_array(struct grid *grid, const struct job_view *job)
{
    autotext struct text text = {0};
    if (job->array.tasks > 0) {
        array_say(&job->array, &text);
        if (job->array.parallel > 0) {
            text_printf(&text, "; at most %lld at a time", (long long)job->array.parallel);
        }
        add_fact(grid, "tasks", text.bytes);
    } else if (job->array_id != NULL) {
        text_printf(&text, "%lld of array %s", (long long)job->task, job->array_id);
        add_fact(grid, "task", text.bytes);
        add_fact(grid, "sweep", job->sweep);
    }
}

static void add_rules(struct grid *grid, const struct job_view *job)
{
    char limit[32];
    text_from_duration_ms(job->time_limit_ms, limit, sizeof limit);
    if (job->priority != 0) {
        add_number(grid, "priority", job->priority);
    }
    add_fact(grid, "time limit", job->time_limit_ms > 0 ? limit : NULL);
}

static void print_facts(const struct job_view *job, const json_t *runs, struct text *out)
{
    autogrid struct grid *grid = grid_create(fact_columns, sizeof fact_columns / sizeof fact_columns[0]);
    char span[32];
    print_span(job->started_ms, job->ended_ms, span);
    add_fact(grid, "id", job->id);
    add_fact(grid, "state", job_state_text(job->state));
    add_fact(grid, job_state_terminal(job->state) ? "why" : "reason", job->reason);
    add_array(grid, job);
    add_fact(grid, "name", job->name);
    add_fact(grid, "owner", job->owner);
    add_fact(grid, "project", job->project);
    add_number(grid, "gpus", job->gpus);
    add_fact(grid, "gpu type", job->gpu_type);
    add_rules(grid, job);
    add_fact(grid, "pool", job->pool);
    add_number(grid, "attempt", job->attempt);
    add_time(grid, "created", job->created_ms);
    add_time(grid, "started", job->started_ms);
    add_time(grid, "ended", job->ended_ms);
    add_fact(grid, "ran", job->started_ms != 0 ? span : NULL);
    add_end(grid, job);
    add_runs(grid, runs);
    add_spec(grid, job->spec);
    grid_print(grid, false, 0, print_colour(), out);
}

static const struct column node_columns[] = {
    {"NODE", false}, {"NODE RANK", false}, {"RANKS", false}, {"DEVICES", false}, {"STATE", false}};

static void print_placements(const struct job_view *job, struct text *out)
{
    if (job->placement_count == 0) {
        return;
    }
    autogrid struct grid *grid = grid_create(node_columns, sizeof node_columns / sizeof node_columns[0]);
    for (size_t i = 0; i < job->placement_count; i++) {
        const struct placement_view *placement = &job->placements[i];
        grid_add(grid, placement->node);
        grid_addf(grid, "%lld", (long long)placement->node_rank);
        grid_addf(grid, "%lld-%lld", (long long)placement->first_rank,
                  (long long)(placement->first_rank + placement->local_ranks - 1));
        grid_add(grid, placement->devices);
        grid_add(grid, member_state_text(placement->state));
    }
    text_append(out, "\n");
    grid_print(grid, false, 0, print_colour(), out);
}

/* --- the verb --- */

static bool print_people(json_t *json, const json_t *runs, const json_t *events, bool wide, struct text *out,
                         bool *ret_last, struct err *err)
{
    struct job_view job;
    if (!job_view_decode(json_incref(json), &job, err)) {
        return false;
    }
    *ret_last = job_state_terminal(job.state);
    print_facts(&job, runs, out);
    print_placements(&job, out);
    job_view_finish(&job);
    text_append(out, "\n");
    return events_table(events, wide, 0, out, err);
}

static bool show(struct api *api, const void *closure, struct text *out, bool *ret_last, struct err *err)
{
    const struct look *look = closure;
    autofree char *path = xprintf("/v1/jobs/%s", look->id);
    autojson json_t *job = api_get(api, path, err);
    autojson json_t *runs = job != NULL ? runs_get(api, look->id, err) : NULL;
    autojson json_t *events = runs != NULL ? events_get(api, look->id, err) : NULL;
    if (events == NULL) {
        return false;
    }
    if (look->format == FORMAT_TABLE || look->format == FORMAT_WIDE) {
        return print_people(job, runs, events, look->format == FORMAT_WIDE, out, ret_last, err);
    }
    const json_t *ended = json_object_get(job, "ended_at");
    *ret_last = json_is_string(ended);
    json_object_set(job, "runs", runs);
    json_object_set(job, "events", events);
    print_json(job, out);
    return true;
}

static bool show_timing(struct api *api, const void *closure, struct text *out, bool *ret_last,
                        struct err *err)
{
    enum job_state state = JOB_QUEUED;
    const struct look *look = closure;
    autofree char *path = xprintf("/v1/jobs/%s/timing", look->id);
    autojson json_t *answer = api_get(api, path, err);
    if (answer == NULL) {
        return false;
    }
    const char *word = json_string_value(json_object_get(answer, "state"));
    *ret_last = word != NULL && job_state_from_text(word, &state) && job_state_terminal(state);
    if (look->format == FORMAT_TABLE || look->format == FORMAT_WIDE) {
        timing_print(answer, look->format == FORMAT_WIDE, out);
    } else {
        print_json(answer, out);
    }
    return true;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct get_options *options = call->options;
    autoapi struct api *api = NULL;
    char id[RESOLVED_BYTES];
    if (!connect_controller(call, false, &api, err) || !resolve_job(api, call->rest[0], id, err)) {
        return false;
    }
    struct look look = {.id = id, .format = print_format(options->format)};
    struct watch watch = {
        .show = options->timing ? show_timing : show, .options = &look, .format = look.format};
    return watch_run(api, &watch, options->watch, err);
}

const struct verb verb_get = {
    .name = "get",
    .arguments = "ID",
    .summary = "Show all that is known of a job: state, why it waits, where it runs, its history.",
    .details =
        "With --timing: the moments of each attempt, from the submission to the first output and the end, "
        "and\n"
        "what ranks have named with serverless_gpu.runtime.mark. -o wide says what each of them means.\n"
        "\n"
        "Examples:\n"
        "  gpuctl get x7k2           the first characters of an id are enough\n"
        "  gpuctl get x7k2 --timing  where the time of its start went\n"
        "  gpuctl get x7k2.17 --timing -o json | jq '.attempts[0].moments'",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct get_options),
    .describe = describe,
    .run = run,
};
