/* SPDX-License-Identifier: Apache-2.0 */
/* What waits: a resource request, the job class of those with an equal one, and its batches. */
#ifndef CORE_MODEL_QUEUE_H
#define CORE_MODEL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text/table.h"
#include "proto/states.h"

struct constraints;
struct environment;
struct job;
struct pattern;

/* The resources that a job asks for; the scheduler treats equal requests alike. */
struct resource_request {
    const char *gpu_type;            /* "H100|A100": the first that fits; NULL: any single type */
    const char *pool;                /* NULL: any that use_reserved allows */
    const char *host_id;             /* NULL: anywhere; else one node on this host */
    const char *environment;         /* key of its environment; NULL: none */
    const char *terms;               /* the nodes that it may run on, by their labels; NULL: any */
    struct constraints *constraints; /* the terms, parsed; caches which nodes fit */
    enum use_reserved use_reserved;
    enum placement placement;
    int64_t gpus;
    int64_t nodes; /* exactly this many, with equal shares; 0: any number */
};

#define BEST_NONE    (-1)
#define BEST_UNKNOWN (-2)

/* The order of the queue: higher priority first, then smaller sort key, then smaller key. */
struct queue_entry {
    int64_t priority, sort_key;
    int64_t place, key;  /* of the first job */
    bool task;           /* the first job is a task that waits again: it precedes the rest of its array */
    int64_t estimate_ms; /* expected run time of the first job */
    struct batch *batch;
    bool passed; /* passed over in the current scheduling pass */
};

/* Waiting jobs with one resource request. */
struct job_class {
    char *key;                       /* the resource request as text */
    char *gpu_type, *pool, *host_id; /* owned, or NULL; the resource request borrows them */
    struct constraints *constraints; /* owned, with their terms */
    struct resource_request request;
    struct environment *environment; /* of its jobs; the resource request borrows its key; NULL: none */
    uint64_t registry;               /* the registry's stamp for which largest was calculated */
    int64_t largest;                 /* the largest gang that the registered nodes could ever hold */
    size_t staging_count;            /* its jobs in STAGING */
    size_t job_count; /* live jobs with this resource request, queued or not; 0: the job class is freed */
    struct queue_entry *entries; /* of its batches, unordered */
    size_t entry_count, entry_room;
    int64_t looked_at_ms;          /* when all entries were last recalculated */
    struct job_class *prev, *next; /* job classes with waiting jobs */
    int64_t told_key;              /* the job whose wait the trace has explained */
    int64_t promised_key;          /* the job that was last promised a start */
    int64_t promised_ms;           /* the first start that it was promised */
    UT_hash_handle hh;

    /* in the current scheduling pass */
    bool closed;
    int32_t tries;      /* jobs that were skipped one by one */
    int64_t longest_ms; /* jobs that will run longer are skipped */
    int64_t best;       /* index of the best queue entry; BEST_NONE; BEST_UNKNOWN: to be found */
};

/* The properties by which waiting jobs of one job class are equal to the policy. */
struct batch_key {
    struct job_class *job_class;
    struct pattern *pattern;
    int64_t priority, time_limit_ms;
    int64_t ran_ms; /* 0 if the policy ignores it */
    int64_t alone;  /* the key of a job that equals no other; else 0 */
};

/* Equal waiting jobs: first in, first out. */
struct batch {
    struct batch_key key;
    struct job *jobs; /* by place; tasks of an array that wait again precede it */
    size_t index;     /* among the queue entries of the job class */
    UT_hash_handle hh;
};

#endif
