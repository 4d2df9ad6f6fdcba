/* SPDX-License-Identifier: Apache-2.0 */
/* The state that decides, for the files of the core and nobody else. Iteration follows ordered lists; hashes
 * are only for finding. */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

#include "daemon/core/core.h"
#include "proto/base/table.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#ifdef NDEBUG
#error "the core keeps its assertions in every build"
#endif

#define NEVER INT64_MAX

static inline char *copy_or_null(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

/* A copy takes the place of a text; either may be NULL. */
static inline void replace_text(const char **text, const char *with)
{
    const char *copy = copy_or_null(with);
    row_free(text);
    *text = copy;
}

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

/* One job depends on another, which has not yet done what it should. */
struct edge {
    struct job *job, *on;
    enum dependency kind;
    bool due;                 /* among those that the step has to look at */
    struct edge *next_open;   /* of the job */
    struct edge *prev, *next; /* of the dependents of the other one, by key; or of those that are due */
};

/* A job that has ended. */
struct outcome {
    int64_t key;
    enum job_state state;
};

/* Many tasks of one spec. */
struct array {
    struct job *whole; /* the job that stands for them; it owns this */
    struct array_row counts;
    char *text; /* what the first task that did not go well said, or why no more will come; owned, or NULL */
    bool due;   /* it shall wait again, and is among the core's due ones */
    struct array *next;
    int64_t seen; /* of the check that goes on */
    uint32_t slot;
};

/* Something that waits for the commit which makes it durable: its moment is that commit's. */
enum durable { DURABLE_JOB, DURABLE_ATTEMPT, DURABLE_START, DURABLE_END };

struct commit_moment {
    enum durable what;
    uint64_t id;         /* key of the job, id of the attempt */
    int64_t received_us; /* of the submission */
};

struct job {
    int64_t key;
    int64_t place; /* what its place in the queue is by: its key, of a task that of its array */
    char id[ID_LENGTH + 1];
    enum job_state state;
    int64_t seq;
    int64_t event_ms; /* wall clock of its last event: the next one is not earlier */
    struct job_class *job_class;
    struct pattern *pattern;   /* of what is known of run times */
    struct batch *batch;       /* while it waits; else NULL */
    struct job *prev, *next;   /* in the batch */
    int64_t submitted_ms;      /* steady clock, not earlier than that of an earlier job */
    int64_t received_us;       /* steady clock: its submission was there; that of a task, of its array */
    int64_t queued_us;         /* since then: the submission was on disk; 0: not known */
    struct array *array;       /* that it stands for, or is a task of; else NULL */
    int64_t task;              /* its number; -1: it is none */
    struct edge *dependencies; /* what it still waits for, while BLOCKED or HELD */
    struct edge *dependents;   /* who waits for it */
    struct account *project, *owner;

    int64_t time_limit_ms, grace_ms, lease_ms;
    struct job_early_signal early_signal;
    int64_t ran_ms; /* over all attempts that have ended */
    int32_t priority;
    int32_t retries, infra_retries;
    enum launch_mode launch_mode;
    enum on_disconnect on_disconnect;

    int64_t attempt_number;
    struct attempt *attempt; /* the newest, which may have ended; or NULL */
    int32_t user_failures, infra_failures;
    char *pool; /* of the newest attempt; owned; or NULL */
    int64_t started_ms, ended_ms;
    int64_t exit_code, failed_rank;
    const char *failed_node; /* borrowed from the node, or NULL */
    enum cause cause;        /* CANCELED while the job is live: a cancel was acknowledged */
    const char *reason;      /* set by the step that ends the job, and as short-lived; or NULL */

    uint32_t slot; /* 1 + index of its change in the open change set; 0: none */
    bool function; /* it succeeds only with a result of every rank */
    bool fresh;    /* its submission may not be on disk yet */
    bool trial;    /* it waits for the time of a question: trial.h */
    UT_hash_handle by_id, by_key;
};

struct member {
    struct attempt *attempt;
    struct node *node;
    MEMBER_OWN_ROW(ROW_FIELD, ) /* texts are owned */
    int64_t *devices;           /* indices; owned */
    size_t device_count;
    int64_t port; /* that it held when it was prepared; 0: none, or not known, as it is in no row */
    int64_t results_missing;    /* ranks of a function whose value is not stored yet */
    uint64_t version;           /* of its order */
    struct member *prev, *next; /* of the node, while the attempt is live */
    uint32_t slot;
};

struct attempt {
    union {
        struct attempt_row row; /* its texts are owned; started_ms 0: START was never committed; the first
                                   cause wins */
        struct {
            ATTEMPT_ROW(ROW_FIELD, )
        };
    };
    struct job *job; /* NULL when the job has ended and left */
    char *note;      /* what a node remarks though nothing failed; owned, in no row; or NULL */
    int64_t held_since_ms, ran_since_ms; /* created_ms and started_ms, by the steady clock */
    int64_t estimate_ms;                 /* of its run time, when it was placed */
    int64_t expected_ms;                 /* steady clock of its end, as expected when it was last looked at */
    size_t end_index;                    /* among the ends, or those that leave */
    const char *failed_node;             /* borrowed from the node, or NULL */
    int64_t worst_code; /* largest code of ranks that we did not kill; a restart while stopping starts it anew
                           at failed_code */
    int64_t since_ms;   /* when its present state began, or the controller was started */
    int64_t deadline_ms;     /* what it means follows from state: prepare expiry, time limit, flush expiry */
    struct member **members; /* by node rank; owned */
    size_t member_count;
    struct attempt *prev, *next; /* live ones by attempt id; ended ones by when */
    uint32_t slot;
    UT_hash_handle hh;
};

/* One device of a node. */
struct node_device {
    int64_t index;
    char *uuid, *type;
    int64_t memory_bytes;
    int64_t group;             /* devices near each other share it; -1: unknown */
    struct member *holder;     /* NULL: nobody has it */
    const char *unavailable;   /* why no job can get it, as the agent says; NULL: it can be had */
    struct capacity *capacity; /* NULL: not offered, because the node is LOST or the device retired */
    bool retired;              /* the node no longer has it; it goes when its holder does */
};

enum copy_state {
    COPY_FREE,    /* may be told; it may have failed before */
    COPY_ORDERED, /* told, and not answered */
    COPY_READY,
    COPY_HELD, /* failed, and is left alone for a while */
};

/* An environment as one node has it. */
struct environment_copy {
    struct environment *environment;
    struct node *node;
    enum copy_state state;
    int64_t failures;                     /* in a row */
    int64_t failed_ms, hold_until_ms;     /* of HELD; until NEVER: as long as the agent is what it is */
    char *text;                           /* of HELD: why; owned */
    struct environment_copy *prev, *next; /* of the node */
    UT_hash_handle hh;                    /* of the environment, by node */
};

/* What jobs need on their nodes. */
struct environment {
    char *key, *text;                /* owned */
    size_t job_class_count;          /* job classes with this environment; 0: it is idle */
    size_t ordered_count;            /* of its copies */
    struct environment_copy *copies; /* by node; in order of their making */
    struct environment *prev, *next; /* idle ones, the one longest idle first */
    UT_hash_handle hh;
};

struct label {
    char *key, *value; /* owned */
};

enum contact { CONTACT_FRESH, CONTACT_SILENT };

struct node {
    char *name;
    NODE_OWN_ROW(ROW_FIELD, ) /* texts are owned */
    const char
        *rival;     /* the agent_id of another agent that was refused, for this one lives; owned, or NULL */
    bool contested; /* this one was heard after that: they are two */
    struct label *labels; /* by key */
    size_t label_count;
    struct node_device *devices; /* by index */
    size_t device_count;
    struct capacity *capacities; /* its devices by type; none while LOST */

    enum contact contact; /* SILENT is shown as SUSPECT */
    int64_t leaves_ms;    /* when it goes away next: it expires, or a window begins; or NEVER */
    int64_t stops_ms;     /* when what runs there must have ended; past while that lasts; or NEVER */
    bool away;            /* it has expired, or is in a window: no new work */

    int64_t heartbeat_ms;  /* when it was last heard */
    int64_t hold_until_ms; /* it declined: no work before this; 0: none */
    int64_t declines;      /* in a row */

    struct member *members;          /* of live attempts, by attempt id */
    struct environment_copy *copies; /* what it has, or is to have, ready */
    size_t ordered_count;            /* of these */
    uint64_t orders_version;         /* incarnation << 32 | how often they changed since */
    bool dirty;                      /* its orders changed in this step */
    size_t index;                    /* in core->nodes */
    struct node *next_removed;
    uint32_t slot;
    UT_hash_handle hh;
};

/* A time in which nodes get no work. */
struct window {
    union {
        struct window_row row; /* its texts are owned */
        struct {
            WINDOW_ROW(ROW_FIELD, )
        };
    };
    struct window *prev, *next; /* by from_ms, then id */
};

/* The devices of one type on one node. */
struct capacity {
    struct node *node;
    struct partition *partition;
    int64_t total, free;
    int64_t unavailable;   /* of total, whether somebody has them or not */
    struct capacity *next; /* of the node */

    /* of the scheduling pass that goes on */
    int64_t free_then; /* free at the time that availability.c looks at */
    int64_t spare;     /* what a gang may have for longer than a reservation waits */
};

/* The nodes of one pool that have one type: what a gang may spread over. */
struct partition {
    char *pool, *type;
    enum pool_kind kind;
    int64_t total, free;
    int64_t free_then;            /* free at the time that availability.c looks at */
    int64_t widest;               /* the largest total of a node capacity */
    struct capacity **capacities; /* by node name */
    size_t count;
    size_t loopback_count; /* nodes that other hosts cannot reach */
    size_t index;
    struct partition *prev, *next; /* by pool, then type */
};

/* The step that is being made. */
struct change_set {
    struct arena *arena;
    struct change *changes;
    struct pending *pending; /* how the values of each are filled in when the change set is closed */
    size_t count, room;
    const char **dirty;
    size_t dirty_count, dirty_room;
    size_t job_count; /* changes that are of jobs */
    bool lazy;
    struct job *answer;   /* the job of a SUBMIT, CANCEL or PREEMPT */
    const char *response; /* the answer to a question, in the arena */
    uint64_t *fenced;     /* the answer to a heartbeat, in the arena */
    size_t fenced_count;
    struct job *released; /* jobs that ended */
    struct attempt *released_attempts;
    int64_t wall_ms;
};

/* Live attempts, by when they are expected to end. */
struct availability {
    struct attempt **ends; /* a heap: the first ends first */
    size_t end_count, end_room;
    struct attempt **stopping; /* those that are about to give back their devices, in no order */
    size_t stopping_count, stopping_room;
};

struct core {
    struct core_config config;
    bool booted;
    int64_t now_ms;
    int64_t deadline_ms;    /* not later than the first thing that TICK will find due */
    int64_t wall_offset_ms; /* the wall clock less now_ms, as the last BOOT or TICK had it */
    int64_t next_job_key;
    uint32_t attempt_id_count;

    struct node **nodes; /* by name */
    size_t node_count, node_room;
    struct node *nodes_by_name;
    struct node *removed;  /* not among them any more: attempts that have ended still name them */
    size_t known_count;    /* not LOST */
    size_t silent_count;   /* of these */
    bool braked;           /* too many are silent: the fault is likely ours */
    int64_t calm_since_ms; /* leases count from here at the earliest: boot, or the end of a brake */

    struct window *windows; /* that are not over */
    size_t window_count;
    int64_t judge_ms;       /* when what windows and expiries say of nodes changes next */
    size_t departing_count; /* nodes that go away some time */
    int64_t look_ms;        /* of the last look at waiting jobs: what lasts is judged as of then */

    struct partition *partitions;
    uint64_t registry; /* stamp of what is registered */
    int64_t free;      /* devices in partitions that nobody holds */

    struct job *jobs_by_id, *jobs_by_key;
    struct job_class *job_classes_by_key;
    struct edge *due;         /* to be looked at before the step ends */
    struct outcome *outcomes; /* of the last LIMIT_ENDED_JOBS, in a ring; owned */
    size_t outcome_count;     /* that there ever were */
    struct job_class *job_classes;
    int64_t demand_count;                    /* live jobs */
    uint32_t demand[LIMIT_NODE_DEVICES + 1]; /* how many of them ask for so many GPUs; those that ask for more
                                                 count at the end */
    struct batch *batches;
    int64_t wall_ms; /* of the newest input */
    /* The wall clock as it was at the start, gone on at the pace of CLOCK_BOOTTIME: what durations are
     * counted by. */
    int64_t steady_ms;
    int64_t steady_offset_ms; /* ahead of now_ms */
    int64_t submitted_ms;     /* of the newest job */
    struct pattern *patterns;
    struct array *due_arrays;
    bool place_wanted; /* something happened that may let a job be placed */
    int64_t again_ms;  /* when time alone may let one */

    struct accounts *accounts;

    struct environment *environments; /* by key */
    struct environment *idle_environments;
    size_t idle_environment_count;

    struct attempt *attempts_by_attempt_id;
    struct attempt *attempts; /* live */
    struct attempt *ended;    /* the last LIMIT_ENDED_ATTEMPTS, oldest first */
    size_t ended_count;

    int64_t at_us;                 /* steady clock of the step */
    struct commit_moment *moments; /* owned; made when the first one waits */
    size_t moment_count;

    struct availability availability;
    size_t borrowed_count; /* live attempts that may have to give way */
    struct change_set change_set;
    struct text *trace;
};

#endif
