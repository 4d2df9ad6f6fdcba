/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: what was submitted to a cluster, when, and how long it ran. */
#ifndef SIMULATE_TRACE_H
#define SIMULATE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/base/err.h"

struct trace_job {
    size_t line;         /* where it stood */
    int64_t submit_ms;   /* from the trace's own zero */
    int64_t duration_ms; /* that it ran, without its wait */
    int64_t gpus;        /* at least 1: a share of a GPU counts as a whole one */
    char *gpu_type;      /* owned; NULL: any */
};

struct trace {
    struct trace_job *jobs; /* by time of submission, those of one moment as they stood */
    size_t count;
};

/* Reads a table with one line a job. CSV: a line of column names first, among them submit_s, duration_s and
 * gpus, perhaps gpu_type. SWF, the standard workload format: lines of numbers, comments begin with a
 * semicolon; a job's processors are its GPUs. Which of them it is shows in the first line. name is for
 * errors, which give the line. */
bool trace_read(FILE *in, const char *name, struct trace *ret_trace, struct err *err);
void trace_finish(struct trace *trace);

#endif
