/* SPDX-License-Identifier: Apache-2.0 */
/* Calculates the figures of a replay. A percentile is the smallest value that at least this share of the jobs
 * does not exceed. Jobs that the cluster could never run count only in their own number. */
#include "daemon/simulate/figures.h"

#include <stdlib.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

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
            waits[wait.count++] = fate->end_ms - trace->jobs[i].submit_ms - trace->jobs[i].duration_ms;
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
        .p99_wait_s = percentile_s(&wait, 99),
        .utilization = utilization(trace, fleet_gpus(fleet), outcome),
        .preemptions = outcome->preemptions,
        .completions_ms = completions,
        .makespan_s = seconds((double)(last_ms - trace->jobs[0].submit_ms)),
    };
}

void figures_finish(struct figures *figures)
{
    free(figures->completions_ms);
    figures->completions_ms = NULL;
}
