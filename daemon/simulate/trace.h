/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: the jobs of a cluster, with their submission times and run times. */
#ifndef SIMULATE_TRACE_H
#define SIMULATE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct trace_job {
    size_t line;         /* its line in the file */
    int64_t submit_ms;   /* since the start of the trace */
    int64_t duration_ms; /* its run time, without the wait */
    int64_t gpus;        /* at least 1: a share of a GPU counts as a whole GPU */
    int64_t limit_ms;    /* the requested time limit; 0: none */
    int64_t priority;    /* -LIMIT_PRIORITY to LIMIT_PRIORITY; 0 if the trace has none */
    /* Owned; NULL if the trace has none. */
    char *gpu_type; /* NULL: any */
    char *project, *owner, *name;
};

struct trace {
    struct trace_job *jobs; /* by time of submission, jobs of one moment in file order */
    size_t count, room;
    size_t without_gpus, not_run; /* jobs left out; not_run: never ran, or have not ended */
};

/* Reads a table with one line per job. Its first line that is no comment shows the form:
 * - SWF, the standard workload format: only numbers. A job's processors are its GPUs.
 * - The output of Slurm's `sacct --parsable2`: a line of column names between vertical bars.
 * - CSV: a line of column names, including submit_s, duration_s and gpus.
 * name is for errors, which give line and field. */
bool trace_read(FILE *in, const char *name, struct trace *ret_trace, struct err *err);

/* The other way to make a trace: {0}, then trace_add, which takes over the job's texts, and at the end
 * trace_sort. */
void trace_add(struct trace *trace, const struct trace_job *job);
/* Sorts the jobs; if priorities exceed our range, scales all in proportion. */
void trace_sort(struct trace *trace);

/* Appends the trace as CSV, which trace_read can read. */
void trace_write(const struct trace *trace, struct text *out);
void trace_finish(struct trace *trace);

#endif
