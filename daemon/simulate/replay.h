/* SPDX-License-Identifier: Apache-2.0 */
/* Replays a trace through the controller's core, the same code that decides in the daemon. Simulated nodes
 * carry out all orders at once, in simulated time. */
#ifndef SIMULATE_REPLAY_H
#define SIMULATE_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/simulate/trace.h"
#include "proto/base/err.h"
#include "proto/states.h"

/* A group of equal nodes. */
struct fleet_part {
    int64_t nodes, gpus; /* gpus per node */
    char *type;          /* owned; NULL: the types that jobs name are ignored */
};

struct fleet {
    struct fleet_part *parts; /* owned */
    size_t count;
};

/* Parses "64x8" or "64x8:A10,10x8:H100": nodes x GPUs per node, and their type. Either all parts have types
 * or none. */
bool fleet_parse(const char *text, struct fleet *ret_fleet, struct err *err);
/* Adds nodes from another source than fleet_parse; copies type. Equal parts are merged. */
void fleet_add(struct fleet *fleet, int64_t nodes, int64_t gpus, const char *type);
int64_t fleet_gpus(const struct fleet *fleet);
int64_t fleet_nodes(const struct fleet *fleet);
/* Appends it as fleet_parse reads it. */
void fleet_write(const struct fleet *fleet, struct text *out);
void fleet_finish(struct fleet *fleet);

/* The time limits that the scheduler sees. */
enum limits {
    LIMITS_TRACE, /* as requested in the trace */
    LIMITS_EXACT, /* the real run time of each job */
    LIMITS_NONE
};
#define LIMITS_WORDS "trace|exact|none"
const char *limits_text(enum limits limits);
/* false: it is none of LIMITS_WORDS. */
bool limits_from_text(const char *text, enum limits *ret_limits);

struct replay_options {
    enum policy policy;
    enum limits limits;
    /* Asked before each event, and before each node is made: false ends the replay. NULL: nothing does. */
    bool (*goes_on)(void *closure);
    void *closure;
};

/* The outcome of a job. */
struct fate {
    int64_t start_ms; /* -1: the cluster could never run it */
    int64_t end_ms;
    int64_t preemptions;
};

/* The state of the cluster from this moment on. */
struct cluster_moment {
    int64_t at_ms;
    int64_t used_gpus, queued_jobs;
};

struct outcome {
    struct fate *fates;             /* by job of the trace; owned */
    size_t refused;                 /* jobs that the cluster could never run */
    char *refusal;                  /* the reason for the first refused job, owned; NULL: none was refused */
    struct cluster_moment *moments; /* in order of time; owned */
    size_t moment_count;
    int64_t preemptions;
    int64_t steps; /* decisions of the core */
};

/* The trace has a job at least. false: options->goes_on ended it, and there is no outcome. */
bool replay(const struct trace *trace, const struct fleet *fleet, const struct replay_options *options,
            struct outcome *ret_outcome);
void outcome_finish(struct outcome *outcome);

#endif
