/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl get`: shows everything that is known of one job. */
#include <string.h>

#include "client/cli/spec/short_forms.h"
#include "client/cli/jobs/events.h"
#include "client/cli/common/answer.h"
#include "client/cli/common/jobs.h"
#include "client/cli/show/timing.h"
#include "client/cli/common/wait.h"
#include "client/cli/common/watch.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/states.h"

#define SHOWN_LINES 8 /* of an environment */
#define SHOWN_RUNS  3

struct get_options {
    bool timing;
};

static const struct option_row rows[] = {
    ROW_WATCH,
    ROW_FLAG(struct get_options, timing, 0, "timing", "show where the time of its starts went instead"),
    ROW_FORMAT, ROWS_END};

/* --- facts --- */

static void add_fact(struct grid *grid, const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0') {
        grid_add(grid, name);
        grid_add(grid, value);
    }
}

/* The first lines of an environment, which may have hundreds, and its Python. */
static void show_environment(const json_t *environment, struct text *shown)
{
    const json_t *lines = json_object_get(environment, "requirements");
    const char *blob = json_string_of(environment, "blob");
    const char *python = json_string_of(environment, "python");
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
static void add_spec(struct grid *grid, json_t *spec)
{
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
                text_printf(&shown, "%s%s", i > 0 ? " " : "", print_text_of(inner, "path"));
            }
        } else if (strcmp(name, "environment") == 0) {
            show_environment(value, &shown);
        } else {
            cell_plain(spec, name, &shown);
        }
        autofree char *fact = xprintf("spec.%s", name);
        add_fact(grid, fact, shown.bytes);
    }
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

/* What is worth no line is none: no time, no end, and the priority of all. */
static void show_unless_zero(const json_t *job, const char *member, struct text *out)
{
    if (json_integer_value(json_object_get(job, member)) != 0) {
        cell_plain(job, member, out);
    }
}

static void show_moment(const json_t *job, const char *member, struct text *out)
{
    if (print_time_of(job, member) != 0) {
        cell_time(job, member, out);
    }
}

static void show_span(const json_t *job, const char *member, struct text *out)
{
    char span[32];
    if (print_time_of(job, member) != 0) {
        print_span(print_time_of(job, member), print_time_of(job, "ended_at"), span);
        text_append(out, span);
    }
}

static void show_cause(const json_t *job, const char *member, struct text *out)
{
    enum cause cause;
    const char *text = json_string_of(job, member);
    if (text != NULL && cause_from_text(text, &cause)) {
        text_append(out, cause_sentence(cause));
    }
}

static void show_tasks(const json_t *job, const char *member, struct text *out)
{
    const json_t *array = json_object_get(job, member);
    long long parallel = (long long)json_integer_value(json_object_get(array, "parallel"));
    array_say(array, out);
    if (parallel > 0) {
        text_printf(out, "; at most %lld at a time", parallel);
    }
}

static void show_task(const json_t *job, const char *member, struct text *out)
{
    if (json_string_of(job, member) != NULL) {
        cell_plain(job, "task", out);
        text_printf(out, " of array %s", json_string_of(job, member));
    }
}

static void show_sweep(const json_t *job, const char *member, struct text *out)
{
    if (json_string_of(job, "array_id") != NULL) {
        cell_plain(job, member, out);
    }
}

#define REASON "reason" /* "why" of a job that has ended */

static const struct column facts[] = {
    COLUMN("id", "id", cell_plain),
    COLUMN("state", "state", cell_plain),
    COLUMN(REASON, "reason", cell_plain),
    COLUMN("tasks", "array", show_tasks),
    COLUMN("task", "array_id", show_task),
    COLUMN("sweep", "sweep", show_sweep),
    COLUMN("name", "name", cell_plain),
    COLUMN("owner", "owner", cell_plain),
    COLUMN("project", "project", cell_plain),
    COLUMN("gpus", "gpus", cell_plain),
    COLUMN("gpu type", "gpu_type", cell_plain),
    COLUMN("priority", "priority", show_unless_zero),
    COLUMN("time limit", "time_limit_s", cell_seconds),
    COLUMN("pool", "pool", cell_plain),
    COLUMN("attempt", "attempt", cell_plain),
    COLUMN("created", "created_at", show_moment),
    COLUMN("started", "started_at", show_moment),
    COLUMN("ended", "ended_at", show_moment),
    COLUMN("ran", "started_at", show_span),
    COLUMN("idle since", "idle_since", show_moment),
    COLUMN("kept until", "kept_until", show_moment),
    COLUMN("exit code", "exit_code", cell_plain),
    COLUMN("failed rank", "failed_rank", cell_plain),
    COLUMN("failed node", "failed_node", cell_plain),
    COLUMN("cause", "cause", show_cause),
};

static void print_people(const json_t *job, bool ended, struct text *out)
{
    autogrid struct grid *grid = grid_create(print_facts, 2);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        autotext struct text value = {0};
        bool why = ended && strcmp(facts[i].title, REASON) == 0;
        facts[i].show(job, facts[i].member, &value);
        add_fact(grid, why ? "why" : facts[i].title, value.bytes);
    }
    add_runs(grid, json_object_get(job, "runs"));
    add_spec(grid, json_object_get(job, "spec"));
    grid_print(grid, false, 0, print_colour(), out);
}

static void show_ranks(const json_t *placement, const char *member, struct text *out)
{
    long long first = (long long)json_integer_value(json_object_get(placement, member));
    long long count = (long long)json_integer_value(json_object_get(placement, "local_ranks"));
    text_printf(out, "%lld-%lld", first, first + count - 1);
}

static void show_isolation(const json_t *placement, const char *member, struct text *out)
{
    const char *isolation = json_string_of(placement, member);
    text_append(out, isolation != NULL ? isolation : "none");
}

static const struct column node_columns[] = {COLUMN("NODE", "node", cell_plain),
                                             COLUMN("NODE RANK", "node_rank", cell_plain),
                                             COLUMN("RANKS", "first_rank", show_ranks),
                                             COLUMN("DEVICES", "devices", cell_plain),
                                             COLUMN("CPUS", "cpus", cell_number),
                                             COLUMN("MEMORY", "memory_bytes", cell_bytes),
                                             COLUMN("ISOLATION", "isolation", show_isolation),
                                             COLUMN("STATE", "state", cell_plain)};

static void print_placements(const json_t *placements, struct text *out)
{
    if (json_array_size(placements) > 0) {
        text_append(out, "\n");
        grid_show(node_columns, sizeof node_columns / sizeof node_columns[0], placements, false, 0,
                  print_colour(), out);
    }
}

/* Where the next attempt begins. */
static void print_checkpoint(const json_t *answer, struct text *out)
{
    const json_t *checkpoint = json_object_get(answer, "checkpoint");
    const char *problem = json_string_of(answer, "problem");
    const char *folder = json_string_of(answer, "folder");
    const json_t *step = json_object_get(checkpoint, "step");
    if (folder != NULL) {
        text_printf(out, "\ncheckpoint folder: %s\n", folder);
    }
    if (folder != NULL && json_is_integer(step)) {
        text_printf(out, "acknowledged: step %lld, of attempt %lld, at %s\n",
                    (long long)json_integer_value(step),
                    (long long)json_integer_value(json_object_get(checkpoint, "attempt")),
                    json_string_of(checkpoint, "taken_at"));
    } else if (folder == NULL && json_is_object(checkpoint)) {
        text_printf(out, "\ncheckpoint: %lld bytes in %lld files, of attempt %lld, taken at %s\n",
                    (long long)json_integer_value(json_object_get(checkpoint, "bytes")),
                    (long long)json_integer_value(json_object_get(checkpoint, "files")),
                    (long long)json_integer_value(json_object_get(checkpoint, "attempt")),
                    json_string_of(checkpoint, "taken_at"));
    }
    if (problem != NULL) {
        text_printf(out, "\ncheckpoint refused: %s\n", problem);
    }
}

/* --- the verb --- */

static void print_job(const struct call *call, const json_t *job, struct text *out)
{
    print_people(job, wait_is_over(job), out);
    print_placements(json_object_get(job, "nodes"), out);
    print_checkpoint(json_object_get(job, "checkpoint"), out);
    text_append(out, "\n");
    events_table(json_object_get(job, "events"), call->format == FORMAT_WIDE, 0, out);
}

static bool show(const struct call *call, struct text *out, bool *ret_last, struct err *err)
{
    autojson json_t *job = api_get(call->api, err, "/v1/jobs/%s", call->id);
    autojson json_t *runs = job != NULL ? runs_get(call->api, call->id, err) : NULL;
    autojson json_t *events = runs != NULL ? events_get(call->api, call->id, err) : NULL;
    struct err none; /* an array has no checkpoint, and an earlier controller does not know of any */
    autojson json_t *checkpoint =
        events != NULL ? api_get(call->api, &none, "/v1/jobs/%s/checkpoint", call->id) : NULL;
    *ret_last = wait_is_over(job);
    json_object_set(job, "checkpoint", checkpoint);
    json_object_set(job, "runs", runs);
    json_object_set(job, "events", events);
    return answer_document(call, events != NULL ? job : NULL, print_job, out);
}

static void print_timing(const struct call *call, const json_t *answer, struct text *out)
{
    timing_print(answer, call->format == FORMAT_WIDE, out);
}

static bool show_timing(const struct call *call, struct text *out, bool *ret_last, struct err *err)
{
    autojson json_t *answer = api_get(call->api, err, "/v1/jobs/%s/timing", call->id);
    *ret_last = wait_is_over(answer);
    return answer_document(call, answer, print_timing, out);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct get_options *options = call->options;
    return watch_run(call, options->timing ? show_timing : show, err);
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
    OF_A_JOB,
    .options_size = sizeof(struct get_options),
    .rows = {rows},
    .run = run,
};
