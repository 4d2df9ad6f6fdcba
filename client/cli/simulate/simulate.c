/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl simulate`: shows how the scheduler would run a trace, or a controller's own history. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/controller/connect.h"
#include "client/cli/show/print.h"
#include "client/cli/simulate/simulate.h"
#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"

struct simulate_options {
    bool history;
    int64_t since_ms; /* 0: not given */
    const char *nodes, *policy, *limits, *save, *plot;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct simulate_options, history, 0, "history",
             "replay the jobs of the controller that have ended, not a file"),
    ROW_DURATION(struct simulate_options, since_ms, 0, "since", "of these, those made so long ago at most"),
    ROW_TEXT(struct simulate_options, nodes, 0, "nodes", "NxGPUS[:TYPE],...",
             "the cluster: 64x8, or 64x8:A10,10x8:H100 (with --history: the controller's nodes)"),
    ROW_TEXT(struct simulate_options, policy, 0, "policy", "NAME,...",
             "by which jobs are placed, several to compare, or all", .absent_text = "default"),
    ROW_CHOICE(struct simulate_options, limits, 0, "limits", "WHICH",
               "the time limits that the scheduler sees", LIMITS_WORDS, .absent_text = "trace"),
    ROW_TEXT(struct simulate_options, save, 0, "save", "FILE.csv", "write the jobs that were read as CSV"),
    ROW_TEXT(struct simulate_options, plot, 0, "plot", "FILE.svg",
             "draw GPUs, waiting jobs and completion times"),
    ROW_FORMAT,
    ROWS_END};

/* --- options --- */

static bool refuse_policy(const char *word, struct err *err)
{
    autotext struct text names = {0};
    for (int policy = 0; policy < POLICY_COUNT; policy++) {
        text_printf(&names, "%s, ", policy_text((enum policy)policy));
    }
    return err_field(err, ERR_USAGE, "policy", NULL, "there is no policy \"%.64s\"; there are %sand all",
                     word, names.bytes);
}

/* Policies, each once, in the order in which they are named. */
struct choice {
    enum policy policies[POLICY_COUNT];
    size_t count;
};

static bool read_policies(const char *text, struct choice *choice, struct err *err)
{
    autofree char *copy = xstrdup(text);
    bool named[POLICY_COUNT] = {false};
    char *rest = copy;
    *choice = (struct choice){0};
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        bool all = strcmp(word, "all") == 0;
        enum policy only = POLICY_COUNT;
        if (!all && !policy_from_text(word, &only)) {
            return refuse_policy(word, err);
        }
        for (int policy = 0; policy < POLICY_COUNT; policy++) {
            if ((all || policy == (int)only) && !named[policy]) {
                choice->policies[choice->count++] = (enum policy)policy;
                named[policy] = true;
            }
        }
    }
    return true;
}

/* A file or the history, and a cluster unless the jobs are only to be saved. */
static bool check(const struct call *call, const struct simulate_options *options, struct err *err)
{
    if ((call->rest_count == 1) == options->history) {
        return err_field(err, ERR_USAGE, "history",
                         "gpuctl simulate FILE --nodes 64x8, or gpuctl simulate --history",
                         options->history ? "name a file or --history, not both"
                                          : "name a file with a trace, or --history");
    }
    if (options->since_ms > 0 && !options->history) {
        return err_field(err, ERR_USAGE, "since", NULL, "--since goes with --history");
    }
    bool wanted = options->save == NULL || options->plot != NULL;
    if (options->nodes == NULL && !options->history && wanted) {
        return err_field(err, ERR_USAGE, "nodes", "--nodes 64x8 for instance: 64 nodes of 8 GPUs",
                         "--nodes is missing: it says what the cluster is");
    }
    return true;
}

/* --- jobs and nodes --- */

static void tell_left_out(const struct trace *trace)
{
    if (trace->without_gpus > 0 || trace->not_run > 0) {
        print_note("left out: %zu jobs without GPUs, %zu that never ran or have not ended",
                   trace->without_gpus, trace->not_run);
    }
}

static void tell_fleet(const struct fleet *fleet)
{
    autotext struct text nodes = {0};
    fleet_write(fleet, &nodes);
    print_note("the cluster is the controller's: --nodes %s", nodes.bytes);
}

/* The jobs; and where they come from a controller, its nodes, unless others are named. */
static bool read_trace(const struct call *call, const struct simulate_options *options, struct trace *trace,
                       struct fleet *fleet, struct err *err)
{
    autoapi struct api *api = NULL;
    bool good = options->history ? connect_controller(call, false, &api, err) &&
                                       simulate_history(api, options->since_ms, trace, err)
                                 : simulate_load(call->rest[0], trace, err);
    if (!good) {
        return false;
    }
    tell_left_out(trace);
    if (options->save != NULL && !simulate_save(options->save, trace, err)) {
        return false;
    }
    if (options->history && options->nodes == NULL) {
        good = simulate_fleet(api, fleet, err);
        if (good) {
            tell_fleet(fleet);
        }
    }
    return good;
}

/* --- the replays --- */

static bool draw(const char *path, const struct trace *trace, const struct fleet *fleet,
                 const struct simulated *runs, size_t count, struct err *err)
{
    autotext struct text svg = {0};
    if (path == NULL) {
        return true;
    }
    simulate_plot(trace, fleet, runs, count, &svg);
    return file_replace(path, svg.bytes, svg.length, 0644, err);
}

static bool play(const struct call *call, const struct choice *choice, const struct trace *trace,
                 const struct fleet *fleet, struct err *err)
{
    const struct simulate_options *options = call->options;
    struct simulated runs[POLICY_COUNT];
    size_t count = choice->count;
    assert(count > 0);
    for (size_t i = 0; i < count; i++) {
        runs[i].options = (struct replay_options){.policy = choice->policies[i]};
        limits_from_text(options->limits, &runs[i].options.limits);
        replay(trace, fleet, &runs[i].options, &runs[i].outcome);
        runs[i].figures = figures_of(trace, fleet, &runs[i].outcome);
    }
    const struct outcome *first = &runs[0].outcome;
    if (first->refused > 0) {
        print_note("%zu of %zu jobs could never run, the first because %s", first->refused, trace->count,
                   first->refusal);
    }
    autotext struct text out = {0};
    simulate_show(call->format, runs, count, &out);
    bool good = draw(options->plot, trace, fleet, runs, count, err) && print_out(&out, err);
    for (size_t i = 0; i < count; i++) {
        figures_finish(&runs[i].figures);
        outcome_finish(&runs[i].outcome);
    }
    return good;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct simulate_options *options = call->options;
    struct trace trace = {0};
    struct fleet fleet = {0};
    struct choice choice;
    bool good = check(call, options, err) && read_policies(options->policy, &choice, err) &&
                (options->nodes == NULL || fleet_parse(options->nodes, &fleet, err)) &&
                read_trace(call, options, &trace, &fleet, err);
    if (good && fleet.count > 0) {
        good = play(call, &choice, &trace, &fleet, err);
    }
    trace_finish(&trace);
    fleet_finish(&fleet);
    return good;
}

#define AS_HELP(name, spelling, meaning) "  " spelling ": " meaning "\n"

const struct verb verb_simulate = {
    .name = "simulate",
    .arguments = "FILE | --history",
    .summary = "Show what the scheduler would make of a trace of jobs.",
    .details =
        "The jobs of FILE (- is standard input, FILE.gz is unpacked) go through the code that decides in "
        "the\n"
        "controller, in simulated time, on the nodes that --nodes names. FILE is one of\n"
        "  CSV    a first line names the columns: submit_s, duration_s and gpus; perhaps gpu_type, limit_s "
        "(or\n"
        "         time_limit_s), priority, owner (user), project (vc_or_queue, vc, queue), name (model).\n"
        "         A priority that is no whole number counts as 0\n"
        "  sacct  what Slurm's `sacct --parsable2` prints with JobID, Submit, ElapsedRaw or Elapsed, and "
        "AllocTRES or\n"
        "         ReqTRES; perhaps User, Account, JobName, Timelimit or TimelimitRaw, State, Priority, "
        "Start, End\n"
        "  SWF    the standard workload format: 18 numbers a line; processors are GPUs\n"
        "Priorities beyond 1000 are brought into that range, in proportion.\n\n"
        "--history asks the controller instead: its jobs that ran and have ended, your own unless your token "
        "is an\n"
        "administrator's, on its nodes that take work now. Nothing else needs a controller, and nothing is "
        "sent to\n"
        "one. --save keeps the jobs as CSV; without --nodes nothing is simulated then.\n\n"
        "Policies:\n" POLICIES(
            AS_HELP) "\n"
                     "JCT is the time from a job's submission to its end. --limits trace: the scheduler sees "
                     "the time "
                     "limits of\n"
                     "the trace; exact: each job's limit is as long as it runs; none: there are none.\n\n"
                     "  gpuctl simulate trace.csv.gz --nodes 64x8 --policy fifo,easy,srsf --plot plot.svg\n"
                     "  sacct -aPX -S 2026-01-01 -o JobID,User,Submit,ElapsedRaw,Timelimit,AllocTRES,State "
                     "|\n"
                     "    gpuctl simulate - --nodes 64x8:a100 --policy all\n"
                     "  gpuctl simulate --history --since 30d --policy all --save history.csv",
    .argument = ARGUMENT_FILE,
    .least = 0,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct simulate_options),
    .rows = {rows},
    .run = run,
};
