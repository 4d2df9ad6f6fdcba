/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: what was submitted to a cluster, when, and how long it ran. */
#ifndef SIMULATE_TRACE_H
#define SIMULATE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/base/err.h"
#include "proto/base/text.h"

struct trace_job {
    size_t line;         /* where it stood */
    int64_t submit_ms;   /* from the trace's own zero */
    int64_t duration_ms; /* that it ran, without its wait */
    int64_t gpus;        /* at least 1: a share of a GPU counts as a whole one */
    int64_t limit_ms;    /* the time limit that was asked for; 0: none */
    int64_t priority;    /* -LIMIT_PRIORITY to LIMIT_PRIORITY; 0 where the trace says nothing */
    /* owned; NULL where the trace says nothing */
    char *gpu_type; /* NULL: any */
    char *project, *owner, *name;
};

struct trace {
    struct trace_job *jobs; /* by time of submission, those of one moment as they stood */
    size_t count, room;
    size_t without_gpus, not_run; /* that were left out: the latter never ran, or have not ended */
};

/* Reads a table with one line a job. Which form it has shows in its first line that is no comment:
 * - SWF, the standard workload format: numbers alone. A job's processors are its GPUs.
 * - What Slurm's `sacct --parsable2` prints: a line of column names between upright bars.
 * - CSV: a line of column names, among them submit_s, duration_s and gpus.
 * name is for errors, which give line and field. */
bool trace_read(FILE *in, const char *name, struct trace *ret_trace, struct err *err);

/* The other way to a trace: {0}, then trace_add, which takes over the job's texts, and at the end trace_sort.
 */
void trace_add(struct trace *trace, const struct trace_job *job);
/* Orders the jobs; brings priorities that go beyond ours into our range, in proportion. */
void trace_sort(struct trace *trace);

/* Appends the trace as CSV, which trace_read reads back. */
void trace_write(const struct trace *trace, struct text *out);
void trace_finish(struct trace *trace);

#endif
