/* SPDX-License-Identifier: Apache-2.0 */
/* Calculates the figures of a replay. A percentile is the smallest value that at least this share of the jobs
 * does not exceed. Jobs that the cluster could never run count only in their own number. */
#include "daemon/simulate/figures.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/members.h"

struct spread {
    int64_t *values; /* ms */
    size_t count;
};

static int by_value(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static double seconds(double ms)
{
    return ms / 1000;
}

static double mean_s(const struct spread *spread)
{
    double sum = 0;
    for (size_t i = 0; i < spread->count; i++) {
        sum += (double)spread->values[i];
    }
    return spread->count > 0 ? seconds(sum / (double)spread->count) : 0;
}

/* values must be sorted. */
static double percentile_s(const struct spread *spread, size_t percent)
{
    size_t rank = (spread->count * percent + 99) / 100;
    return rank > 0 ? seconds((double)spread->values[rank - 1]) : 0;
}

static double utilization(const struct trace *trace, int64_t gpus, const struct outcome *outcome)
{
    int64_t first_ms = trace->jobs[0].submit_ms, last_ms = trace->jobs[trace->count - 1].submit_ms;
    double used = 0;
    for (size_t i = 0; i < outcome->moment_count; i++) {
        int64_t from_ms = outcome->moments[i].at_ms;
        int64_t to_ms = i + 1 < outcome->moment_count ? outcome->moments[i + 1].at_ms : from_ms;
        to_ms = to_ms < last_ms ? to_ms : last_ms;
        used += to_ms > from_ms ? (double)(to_ms - from_ms) * (double)outcome->moments[i].used_gpus : 0;
    }
    return last_ms > first_ms ? used / ((double)(last_ms - first_ms) * (double)gpus) : 0;
}

/* --- groups --------------------------------------------------------------------------------------------- */

struct named_wait {
    const char *name;
    int64_t wait_ms;
};

static int by_name(const void *a, const void *b)
{
    const struct named_wait *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : by_value(&left->wait_ms, &right->wait_ms);
}

/* Keeps the order of the groups, and the first of those that have as many jobs. */
static void add_group(struct groups *groups, const struct group_figures *group)
{
    size_t at = groups->count;
    while (at > 0 && groups->items[at - 1].jobs < group->jobs) {
        at--;
    }
    if (at < LIMIT_FIGURES_GROUPS) {
        groups->count += groups->count < LIMIT_FIGURES_GROUPS;
        memmove(&groups->items[at + 1], &groups->items[at],
                (groups->count - at - 1) * sizeof groups->items[0]);
        groups->items[at] = *group;
    }
}

/* Sorts the waits; the values are room for as many. */
static struct groups group(struct named_wait *waits, size_t count, int64_t *values)
{
    struct groups groups = {.count = 0};
    if (count > 0) {
        qsort(waits, count, sizeof *waits, by_name);
    }
    for (size_t first = 0, end; first < count; first = end) {
        struct spread spread = {.values = values};
        for (end = first; end < count && strcmp(waits[end].name, waits[first].name) == 0; end++) {
            values[spread.count++] = waits[end].wait_ms;
        }
        add_group(&groups, &(struct group_figures){.name = waits[first].name,
                                                   .jobs = spread.count,
                                                   .avg_wait_s = mean_s(&spread),
                                                   .p50_wait_s = percentile_s(&spread, 50),
                                                   .p99_wait_s = percentile_s(&spread, 99)});
    }
    return groups;
}

static int64_t wait_ms(const struct trace_job *job, const struct fate *fate)
{
    return fate->end_ms - job->submit_ms - job->duration_ms;
}

/* name: where a job has it. */
static struct groups group_by(const struct trace *trace, const struct outcome *outcome,
                              const char *(*name)(const struct trace_job *job))
{
    autofree struct named_wait *waits = xalloc((trace->count + 1) * sizeof *waits);
    autofree int64_t *values = xalloc((trace->count + 1) * sizeof *values);
    size_t count = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_job *job = &trace->jobs[i];
        if (outcome->fates[i].start_ms >= 0 && name(job) != NULL) {
            waits[count++] = (struct named_wait){name(job), wait_ms(job, &outcome->fates[i])};
        }
    }
    return group(waits, count, values);
}

static const char *owner_of(const struct trace_job *job)
{
    return job->owner;
}

static const char *project_of(const struct trace_job *job)
{
    return job->project;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

struct figures figures_of(const struct trace *trace, const struct fleet *fleet, const struct outcome *outcome)
{
    int64_t *completions = xalloc((trace->count + 1) * sizeof *completions);
    autofree int64_t *waits = xalloc((trace->count + 1) * sizeof *waits);
    struct spread completion = {.values = completions}, wait = {.values = waits};
    int64_t last_ms = trace->jobs[0].submit_ms;
    for (size_t i = 0; i < trace->count; i++) {
        const struct fate *fate = &outcome->fates[i];
        if (fate->start_ms >= 0) {
            completions[completion.count++] = fate->end_ms - trace->jobs[i].submit_ms;
            waits[wait.count++] = wait_ms(&trace->jobs[i], fate);
            last_ms = fate->end_ms > last_ms ? fate->end_ms : last_ms;
        }
    }
    qsort(completions, completion.count, sizeof *completions, by_value);
    qsort(waits, wait.count, sizeof *waits, by_value);
    return (struct figures){
        .jobs = completion.count,
        .refused = outcome->refused,
        .avg_jct_s = mean_s(&completion),
        .p50_jct_s = percentile_s(&completion, 50),
        .p99_jct_s = percentile_s(&completion, 99),
        .avg_wait_s = mean_s(&wait),
        .p50_wait_s = percentile_s(&wait, 50),
        .p90_wait_s = percentile_s(&wait, 90),
        .p99_wait_s = percentile_s(&wait, 99),
        .owners = group_by(trace, outcome, owner_of),
        .projects = group_by(trace, outcome, project_of),
        .utilization = utilization(trace, fleet_gpus(fleet), outcome),
        .preemptions = outcome->preemptions,
        .completions_ms = completions,
        .makespan_s = seconds((double)(last_ms - trace->jobs[0].submit_ms)),
    };
}

static json_t *groups_json(const struct groups *groups)
{
    json_t *list = json_array();
    for (size_t i = 0; i < groups->count; i++) {
        const struct group_figures *item = &groups->items[i];
        json_t *object = json_object();
        member_put_text(object, "name", item->name);
        member_put_int(object, "jobs", (int64_t)item->jobs);
        member_put(object, "avg_wait_s", json_real(item->avg_wait_s));
        member_put(object, "p50_wait_s", json_real(item->p50_wait_s));
        member_put(object, "p99_wait_s", json_real(item->p99_wait_s));
        json_array_append_new(list, object);
    }
    return list;
}

json_t *figures_json(const struct figures *figures, const struct replay_options *options)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:o, s:o}",
                     "policy", policy_text(options->policy), "limits", limits_text(options->limits), "jobs",
                     (json_int_t)figures->jobs, "refused", (json_int_t)figures->refused, "avg_jct_s",
                     figures->avg_jct_s, "p50_jct_s", figures->p50_jct_s, "p99_jct_s", figures->p99_jct_s,
                     "avg_wait_s", figures->avg_wait_s, "p50_wait_s", figures->p50_wait_s, "p90_wait_s",
                     figures->p90_wait_s, "p99_wait_s", figures->p99_wait_s, "utilization",
                     figures->utilization, "makespan_s", figures->makespan_s, "preemptions",
                     (json_int_t)figures->preemptions, "owners", groups_json(&figures->owners), "projects",
                     groups_json(&figures->projects));
}

void figures_finish(struct figures *figures)
{
    free(figures->completions_ms);
    figures->completions_ms = NULL;
}
