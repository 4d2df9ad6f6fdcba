/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl simulate`: what the scheduler would make of a trace. */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/print.h"
#include "client/cli/simulate_plot.h"
#include "client/cli/verb.h"
#include "daemon/simulate/figures.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/json.h"

struct simulate_options {
    const char *nodes, *policy, *plot, *format;
};

static void describe(void *options, struct option_table *table)
{
    struct simulate_options *o = options;
    o->policy = "fifo";
    option_text(table, 0, "nodes", "NxGPUS[:TYPE],...", "the cluster: 64x8, or 64x8:A10,10x8:H100",
                &o->nodes);
    option_choice(table, 0, "policy", "NAME", "by which jobs are placed", "fifo|easy|sjf|srtf|srsf|default", &o->policy);
    option_text(table, 0, "plot", "FILE.svg", "draw GPUs in use and waiting jobs over the time", &o->plot);
    option_add_format(table, &o->format);
}

/* --- what is shown --- */

static const struct column columns[] = {
    {"POLICY", false},   {"JOBS", false},        {"AVG JCT", false},  {"P50 JCT", true},
    {"P99 JCT", false},  {"AVG WAIT", false},    {"P99 WAIT", false}, {"UTILIZATION", false},
    {"MAKESPAN", false}, {"PREEMPTIONS", false},
};

static void table(const char *policy, const struct figures *figures, bool wide, struct text *out)
{
    autogrid struct grid *grid = grid_create(columns, sizeof columns / sizeof columns[0]);
    grid_add(grid, policy);
    grid_addf(grid, "%zu", figures->jobs);
    grid_addf(grid, "%.0f s", figures->avg_jct_s);
    grid_addf(grid, "%.0f s", figures->p50_jct_s);
    grid_addf(grid, "%.0f s", figures->p99_jct_s);
    grid_addf(grid, "%.0f s", figures->avg_wait_s);
    grid_addf(grid, "%.0f s", figures->p99_wait_s);
    grid_addf(grid, "%.1f %%", 100 * figures->utilization);
    grid_addf(grid, "%.0f s", figures->makespan_s);
    grid_addf(grid, "%lld", (long long)figures->preemptions);
    grid_print(grid, wide, print_width(), false, out);
}

static void document(const char *policy, const struct figures *figures, struct text *out)
{
    autojson json_t *json = json_pack(
        "{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "policy", policy, "jobs",
        (json_int_t)figures->jobs, "refused", (json_int_t)figures->refused, "avg_jct_s", figures->avg_jct_s,
        "p50_jct_s", figures->p50_jct_s, "p99_jct_s", figures->p99_jct_s, "avg_wait_s", figures->avg_wait_s,
        "p99_wait_s", figures->p99_wait_s, "utilization", figures->utilization, "makespan_s",
        figures->makespan_s, "preemptions", (json_int_t)figures->preemptions);
    print_json(json, out);
}

/* --- the verb --- */

static bool read_trace(const char *path, struct trace *ret_trace, struct err *err)
{
    if (strcmp(path, "-") == 0) {
        return trace_read(stdin, "standard input", ret_trace, err);
    }
    FILE *in = fopen(path, "re");
    if (in == NULL) {
        return err_errno(err, "cannot open %s", path);
    }
    bool good = trace_read(in, path, ret_trace, err);
    fclose(in);
    return good;
}

static bool draw(const char *path, const struct trace *trace, const struct fleet *fleet,
                 const struct outcome *outcome, struct err *err)
{
    autotext struct text svg = {0};
    if (path == NULL) {
        return true;
    }
    simulate_plot(trace, fleet, outcome, &svg);
    return file_replace(path, svg.bytes, svg.length, 0644, err);
}

static bool show(const struct simulate_options *options, const struct trace *trace, const struct fleet *fleet,
                 struct err *err)
{
    struct outcome outcome;
    struct replay_options replay_options = {0};
    policy_from_text(options->policy, &replay_options.policy);
    replay_options.limits = getenv("LIM") ? atoi(getenv("LIM")) : 0;
    replay(trace, fleet, &replay_options, &outcome);
    struct figures figures = figures_of(trace, fleet, &outcome);
    if (outcome.refused > 0) {
        print_note("%zu of %zu jobs could never run, the first because %s", outcome.refused, trace->count,
                   outcome.refusal);
    }
    autotext struct text out = {0};
    enum print_format format = print_format(options->format);
    if (format == FORMAT_JSON || format == FORMAT_JSONL) {
        document(options->policy, &figures, &out);
    } else {
        table(options->policy, &figures, format == FORMAT_WIDE, &out);
    }
    bool good = draw(options->plot, trace, fleet, &outcome, err) && print_out(&out, err);
    outcome_finish(&outcome);
    return good;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct simulate_options *options = call->options;
    struct trace trace;
    struct fleet fleet;
    if (options->nodes == NULL) {
        return err_field(err, ERR_USAGE, "nodes", "--nodes 64x8 for instance: 64 nodes of 8 GPUs",
                         "--nodes is missing: it says what the cluster is");
    }
    if (!fleet_parse(options->nodes, &fleet, err)) {
        return false;
    }
    bool good = read_trace(call->rest[0], &trace, err);
    if (good) {
        good = show(options, &trace, &fleet, err);
        trace_finish(&trace);
    }
    fleet_finish(&fleet);
    return good;
}

const struct verb verb_simulate = {
    .name = "simulate",
    .arguments = "FILE",
    .summary = "Show what the scheduler would make of a trace of jobs.",
    .details =
        "The jobs of FILE (- is standard input) go through the code that decides in the controller, in "
        "simulated time, on the nodes that --nodes names. FILE is CSV whose first line names the columns, "
        "among them submit_s, duration_s and gpus, perhaps gpu_type; or SWF, the standard workload format.\n"
        "JCT is the time from a job's submission to its end. Nothing is sent.",
    .argument = ARGUMENT_FILE,
    .least = 1,
    .most = 1,
    .reach = REACH_NOTHING,
    .options_size = sizeof(struct simulate_options),
    .describe = describe,
    .run = run,
};
