/* SPDX-License-Identifier: Apache-2.0 */
/* What waits: a resource request, the job class of those with an equal one, and its batches. */
#ifndef CORE_MODEL_QUEUE_H
#define CORE_MODEL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text/table.h"
#include "proto/spec/amounts.h"
#include "proto/states.h"

struct constraints;
struct environment;
struct job;
struct pattern;
struct reservations;

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
    int64_t units;      /* its equal parts, one for each GPU; a job without GPUs is one */
    bool gpuless;       /* its unit has no GPU */
    struct amount each; /* of a unit; 0: what belongs to a GPU of its node */
    int64_t nodes;      /* exactly this many, with equal shares; 0: any number */
};

static inline int64_t request_gpus(const struct resource_request *request)
{
    return request->gpuless ? 0 : request->units;
}

#define BEST_NONE    (-1)
#define BEST_UNKNOWN (-2)

/* The order of the queue: higher priority first, then smaller sort key, then smaller key. */
struct queue_entry {
    int64_t priority, sort_key;
    int64_t place, key;  /* of the first job */
    bool task;           /* the first job is a task that waits again: it precedes the rest of its array */
    int64_t estimate_ms; /* expected run time of the first job */
    struct batch *batch;
    uint64_t passed; /* the turn of the queue in which it was passed over */
};

/* Job classes whose resource requests differ in their environment alone. */
#define ORDER_LEVELS 10
struct job_family {
    char *key; /* the resource request as text, without the environment */
    size_t job_class_count;
    UT_hash_handle hh;
    struct job_class *settled[ORDER_LEVELS];   /* its settled job classes, in queue order: a skip list */
    struct job_family *prev, *next;            /* families with settled job classes */
    int64_t least_estimate_ms, least_limit_ms; /* no waiting job of the family is shorter */
    uint64_t least_turn;                       /* the turn in which these were last found */

    /* in one turn of the queue */
    uint64_t turn;                                   /* which; another one: the rest is outdated */
    bool closed;                                     /* its settled job classes are skipped */
    int64_t hopeless_estimate_ms, hopeless_limit_ms; /* jobs that last as long fit on no free devices */
};

/* Whether what stages for a job class has been considered. */
enum job_class_standing {
    JOB_CLASS_IDLE,      /* it has no waiting jobs */
    JOB_CLASS_UNSETTLED, /* it is to be considered */
    JOB_CLASS_SETTLED,   /* it was, and nothing has happened since that could change the answer */
};

/* Waiting jobs with one resource request. */
struct job_class {
    char *key;                       /* the resource request as text */
    char *gpu_type, *pool, *host_id; /* owned, or NULL; the resource request borrows them */
    struct constraints *constraints; /* owned, with their terms */
    struct resource_request request;
    struct job_family *family;
    struct environment *environment; /* of its jobs; the resource request borrows its key; NULL: none */
    struct job_class *prev_sharing, *next_sharing; /* with the same environment */
    uint64_t registry;                             /* the registry's stamp for which largest was calculated */
    int64_t largest;      /* the largest gang that the registered nodes could ever hold */
    size_t staging_count; /* its jobs in STAGING */
    size_t job_count;     /* live jobs with this resource request, queued or not; 0: the job class is freed */
    struct queue_entry *entries; /* of its batches, unordered */
    size_t entry_count, entry_room;
    struct job_class *prev, *next; /* job classes with waiting jobs */
    int64_t told_key;              /* the job whose wait the trace has explained */
    int64_t promised_key;          /* the job that was last promised a start */
    int64_t promised_ms;           /* the first start that it was promised */
    UT_hash_handle hh;

    int64_t first; /* index of the first queue entry; BEST_UNKNOWN: to be found */
    enum job_class_standing standing;
    bool considered; /* in this pass, which settles it */
    bool stuck;      /* no node could stage for it: it is considered again when any node has changed */
    enum pool_kind settled_kind;           /* the kind of pool that it was led to when it was settled */
    struct queue_entry order;              /* in a list in order: its first queue entry */
    struct job_class *after[ORDER_LEVELS]; /* of SETTLED in the family, and of those without environment */
    struct job_class *prev_unsettled, *next_unsettled; /* of UNSETTLED with an environment */

    /* in the current turn of the queue */
    size_t turn_index;  /* in the heap of turns; NO_TURN: it does not come any more */
    uint64_t turn;      /* the last one in which it came */
    bool leads;         /* it stands for those after it in the list in order */
    bool wants;         /* a visit even if no device is free, because nodes could stage for it */
    bool whole;         /* what stages for it is considered, too */
    int32_t tries;      /* jobs that were skipped one by one */
    int64_t longest_ms; /* jobs that will run longer are skipped */
    int64_t best;       /* index of the best queue entry that was not skipped; BEST_NONE */
};

#define NO_TURN SIZE_MAX

/* The job classes that may come next in the current turn of the queue, as a heap by their best entries. */
struct turns {
    struct job_class **items; /* owned */
    size_t count, room;
    size_t wanting;  /* of these, those that want a visit even if no device is free */
    uint64_t number; /* of the turn */
    uint64_t last;   /* the highest number so far */
    bool all;        /* all job classes are considered as if none were settled */
    bool ready;      /* the settled ones that are ready on free devices come in any case */
    bool partial;    /* entries before this one do not come: */
    struct queue_entry from;
};

/* A scheduling pass that is too long for one step: a later step goes on with it. */
struct pass {
    bool open;
    struct reservations *reservations; /* so far; owned */
    uint8_t
        *nodes; /* by index, of the reservations; bit 0: its devices are for jobs that were visited already */
    uint64_t registry; /* the registry, and the number of nodes, that they are about */
    size_t node_count;
    uint64_t turn;           /* the number of its turn */
    bool begun;              /* the queue is visited from this entry on; false: from its first */
    struct queue_entry from; /* without its batch */
    bool moved;              /* there was a move, or an entry was renewed */
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
