/* SPDX-License-Identifier: Apache-2.0 */
/* Replays a trace through the core of the controller: the same code that decides in the daemon, on nodes that
 * do all they are told at once, in simulated time. */
#ifndef SIMULATE_REPLAY_H
#define SIMULATE_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/simulate/trace.h"
#include "proto/base/err.h"
#include "proto/states.h"

/* Equal nodes. */
struct fleet_part {
    int64_t nodes, gpus; /* gpus of each */
    char *type;          /* owned; NULL: the types that jobs name do not matter */
};

struct fleet {
    struct fleet_part *parts; /* owned */
    size_t count;
};

/* "64x8", "64x8:A10,10x8:H100": nodes x GPUs of each, and their type. Types are given for all parts or for
 * none. */
bool fleet_parse(const char *text, struct fleet *ret_fleet, struct err *err);
/* Adds nodes that a person did not write; type is copied. Equal parts become one. */
void fleet_add(struct fleet *fleet, int64_t nodes, int64_t gpus, const char *type);
int64_t fleet_gpus(const struct fleet *fleet);
void fleet_finish(struct fleet *fleet);

/* Which time limits the scheduler sees. */
enum limits {
    LIMITS_TRACE, /* those that were asked for */
    LIMITS_EXACT, /* as long as each job really runs */
    LIMITS_NONE
};

struct replay_options {
    enum policy policy;
    enum limits limits;
};

/* What became of a job. */
struct fate {
    int64_t start_ms; /* -1: the cluster could never run it */
    int64_t end_ms;
    int64_t preemptions;
};

/* The cluster from this moment on. */
struct moment {
    int64_t at_ms;
    int64_t used_gpus, queued_jobs;
};

struct outcome {
    struct fate *fates;     /* by job of the trace; owned */
    size_t refused;         /* jobs that the cluster could never run */
    char *refusal;          /* why the first of them was, owned; NULL: none was */
    struct moment *moments; /* in order of time; owned */
    size_t moment_count;
    int64_t preemptions;
    int64_t steps; /* decisions of the core */
};

void replay(const struct trace *trace, const struct fleet *fleet, const struct replay_options *options,
            struct outcome *ret_outcome);
void outcome_finish(struct outcome *outcome);

#endif
