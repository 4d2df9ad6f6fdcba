/* SPDX-License-Identifier: Apache-2.0 */
/* What waits: a resource request, the job class of those with an equal one, and its batches. */
#ifndef CORE_MODEL_QUEUE_H
#define CORE_MODEL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/table.h"
#include "proto/states.h"

struct constraints;
struct environment;
struct job;
struct pattern;

/* What a job asks of the cluster; equal requests are indistinguishable to the scheduler. */
struct resource_request {
    const char *gpu_type;            /* "H100|A100": the first that fits; NULL: any one type */
    const char *pool;                /* NULL: any that use_reserved allows */
    const char *host_id;             /* NULL: anywhere; else one node on this host */
    const char *environment;         /* key of what it needs on its nodes; NULL: nothing */
    const char *terms;               /* which nodes it may run on, by their labels; NULL: any */
    struct constraints *constraints; /* the same, parsed; it remembers what nodes fit */
    enum use_reserved use_reserved;
    enum placement placement;
    int64_t gpus;
    int64_t nodes; /* exactly so many, with equal shares; 0: any number */
};

#define BEST_NONE    (-1)
#define BEST_UNKNOWN (-2)

/* Whose turn it is: the higher priority first, then the smaller sort key, then the smaller key. */
struct queue_entry {
    int64_t priority, sort_key;
    int64_t place, key;  /* of the first job */
    bool task;           /* that is a task which waits anew: it goes before the rest of its array */
    int64_t estimate_ms; /* how long that will run */
    struct batch *batch;
    bool passed; /* in the scheduling pass that goes on */
};

/* Jobs that wait, with one resource request. */
struct job_class {
    char *key;                       /* the resource request as text */
    char *gpu_type, *pool, *host_id; /* owned, or NULL; the resource request borrows them */
    struct constraints *constraints; /* likewise, with their terms */
    struct resource_request request;
    struct environment *environment; /* of its jobs; NULL: it has none, and the resource request borrows the
                                        key of this one */
    uint64_t registry;               /* the registry's stamp when largest was found */
    int64_t largest;                 /* the largest gang that the registered nodes could ever hold */
    size_t staging_count;            /* of its jobs, in STAGING */
    size_t job_count; /* live jobs with this resource request, queued or not; the job class goes with the last
                         one */
    struct queue_entry *entries; /* of its batches, in no order */
    size_t entry_count, entry_room;
    int64_t looked_at_ms;          /* when all of them were last looked at */
    struct job_class *prev, *next; /* job classes in which jobs wait */
    int64_t told_key;              /* the job whose waiting the trace has explained */
    int64_t promised_key;          /* the job that was last promised a start */
    int64_t promised_ms;           /* the first that it was promised */
    UT_hash_handle hh;

    /* of the scheduling pass that goes on */
    bool closed;
    int32_t tries;      /* jobs that were skipped one by one */
    int64_t longest_ms; /* jobs that will run longer are skipped */
    int64_t best;       /* among queue entries; BEST_NONE; BEST_UNKNOWN: to be found */
};

/* What makes waiting jobs of one job class equal to the policy. */
struct batch_key {
    struct job_class *job_class;
    struct pattern *pattern;
    int64_t priority, time_limit_ms;
    int64_t ran_ms; /* 0 where the policy does not ask */
    int64_t alone;  /* its key, of a job that is like no other; else 0 */
};

/* Equal jobs that wait: first in, first out. */
struct batch {
    struct batch_key key;
    struct job *jobs; /* by place; the tasks of an array that wait again before it */
    size_t index;     /* among the queue entries of the job class */
    UT_hash_handle hh;
};

#endif
