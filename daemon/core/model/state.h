/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the core, only for the core's files. Iteration follows ordered lists; hashes are only for
 * lookup. */
#ifndef CORE_MODEL_STATE_H
#define CORE_MODEL_STATE_H

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

#include "daemon/core/model/array.h"
#include "daemon/core/model/attempt.h"
#include "daemon/core/model/input.h"
#include "daemon/core/model/job.h"
#include "daemon/core/model/member.h"
#include "daemon/core/model/node.h"
#include "daemon/core/model/pool.h"
#include "daemon/core/model/queue.h"
#include "daemon/core/model/staging.h"
#include "proto/base/text/table.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#ifdef NDEBUG
#error "the core keeps its assertions in every build"
#endif

#define NEVER INT64_MAX

static inline char *copy_or_null(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

/* Replaces a text with a copy of another; either may be NULL. */
static inline void replace_text(const char **text, const char *with)
{
    const char *copy = copy_or_null(with);
    row_free(text);
    *text = copy;
}

/* An event that waits for the commit that makes it durable; the time of the event is the time of that
 * commit. */
enum durable { DURABLE_JOB, DURABLE_ATTEMPT, DURABLE_START, DURABLE_END };

struct commit_moment {
    enum durable what;
    uint64_t id;         /* key of the job, id of the attempt */
    int64_t received_us; /* of the submission */
};

/* The changes of the current step. */
struct change_set {
    struct arena *arena;
    struct change *changes;
    struct pending *pending; /* how the values of each change are filled in when the change set is closed */
    size_t count, room;
    const char **dirty;
    size_t dirty_count, dirty_room;
    size_t job_count; /* changes of jobs */
    size_t told;      /* changes that webhooks have been told of */
    bool lazy;
    struct job *answer;   /* the job of a SUBMIT, CANCEL or PREEMPT */
    const char *response; /* the answer to a question, in the arena */
    uint64_t *fenced;     /* the answer to a heartbeat, in the arena */
    size_t fenced_count;
    int64_t wall_ms;
};

struct core {
    struct core_config config;
    bool booted;
    int64_t now_ms;
    int64_t deadline_ms;    /* no later than the first due work of a TICK */
    int64_t wall_offset_ms; /* the wall clock minus now_ms, at the last BOOT or TICK */
    bool asker_sees_all;    /* the question that is answered may name all jobs */
    int64_t next_job_key;
    uint32_t attempt_id_count;

    struct node **nodes; /* by name */
    size_t node_count, node_room;
    struct node *nodes_by_name;
    struct node *removed; /* not in the list any more, but named by ended attempts */
    size_t node_counts[NODE_STATE_COUNT];
    size_t known_count;    /* not LOST */
    size_t silent_count;   /* of the known ones */
    bool braked;           /* too many are silent: the controller is likely the cause */
    int64_t calm_since_ms; /* leases count from here at the earliest: boot, or the end of a brake */

    struct window *windows; /* windows that have not ended */
    size_t window_count;
    int64_t judge_ms;       /* when windows and expiries next change the state of nodes */
    size_t departing_count; /* nodes with a known time of departure */
    int64_t look_ms;        /* time of the last look at waiting jobs: expected stays are judged as of then */

    struct partition *partitions;
    size_t pool_count, type_count; /* pools and GPU types, each once, that nodes have */
    uint64_t registry;             /* stamp of the registry */
    int64_t free;                  /* unheld devices in partitions */
    int64_t free_gpuless;          /* how many more ranks without GPU they take */

    struct job *jobs_by_id, *jobs_by_key;
    size_t job_counts[JOB_STATE_COUNT]; /* live ones; of the last states, all that have ended */
    struct job_class *job_classes_by_key;
    struct job **timed; /* jobs that wait for a moment: a heap, the earliest first; owned */
    size_t timed_count, timed_room;
    struct edge *due;         /* to be processed before the step ends */
    struct outcome *outcomes; /* of the last LIMIT_ENDED_JOBS jobs, in a ring; owned */
    size_t outcome_count;     /* of all that ever ended */
    struct job_class *job_classes;
    struct job_family *job_families; /* by key */
    struct job_family *settled_families;
    struct job_class *unsettled; /* job classes with an environment */
    /* Those without one, for which nothing stages, so they are never settled: in order, with their levels. */
    struct job_class *plain[ORDER_LEVELS];
    struct turns turns;
    int64_t refreshed_ms;                    /* when all queue entries were last recalculated */
    bool fleet_changed;                      /* since the last pass */
    int64_t gpuless_count;                   /* live jobs without GPUs */
    int64_t demand_count;                    /* other live jobs */
    uint32_t demand[LIMIT_NODE_DEVICES + 1]; /* by the GPUs that they ask for; the last counts all above */
    struct batch *batches;
    int64_t wall_ms; /* of the newest input */
    /* The wall clock as of the start, advanced by CLOCK_BOOTTIME; durations are measured by it. */
    int64_t steady_ms;
    int64_t steady_offset_ms; /* ahead of now_ms */
    int64_t submitted_ms;     /* of the newest job */
    struct pattern *patterns;
    struct array *due_arrays;
    size_t pass_count;     /* scheduling passes */
    bool place_wanted;     /* an event may let a job be placed */
    int64_t again_ms;      /* when a pass is due without an event */
    int64_t look_again_ms; /* when time alone may let a job be placed */
    int64_t pass_work;     /* of the current step: see LIMIT_PASS_WORK */
    int64_t pass_rest_ms;  /* the next pass, or the rest of this one, is not done before this time */
    bool pass_in_parts; /* the last pass took several steps: what should stage may have changed meanwhile */
    bool pass_put_off;  /* an event came since the current pass has begun */
    struct pass pass;

    struct accounts *accounts;
    struct webhooks *webhooks; /* NULL: there are none */
    uint32_t delivery_count;   /* made since the start */
    size_t delivery_stamp;     /* changes when something may have become due */

    struct environment *environments; /* by key */
    struct environment *idle_environments;
    struct environment *changed_environments; /* since the last pass */
    size_t idle_environment_count;
    struct environment_part *parts; /* by key */
    struct environment_part *idle_parts;
    size_t idle_part_count;

    struct attempt *attempts_by_attempt_id;
    struct attempt *attempts; /* live */
    struct attempt *ended;    /* the last LIMIT_ENDED_ATTEMPTS, oldest first */
    size_t ended_count;

    int64_t at_us;                 /* steady clock of the step */
    struct commit_moment *moments; /* owned; allocated when the first one waits */
    size_t moment_count;

    struct availability availability;
    size_t borrowed_count; /* live attempts that may be preempted */
    struct change_set change_set;
    struct job *released; /* jobs that ended in this step: freed when it is closed */
    struct attempt *released_attempts;
    struct text *trace;
};

/* Notes that work becomes due at this time; NEVER is allowed. */
static inline void deadline_note(struct core *core, int64_t due_ms)
{
    core->deadline_ms = due_ms < core->deadline_ms ? due_ms : core->deadline_ms;
}

/* Units that jobs could get: GPUs, and places for ranks without one while there are jobs without GPUs. */
static inline int64_t core_free(const struct core *core)
{
    return core->free + (core->gpuless_count > 0 ? core->free_gpuless : 0);
}

/* The node has devices that it had not when the current pass began. The jobs that the pass has visited come
 * first: the next pass gives the devices away. */
static inline void pass_hold_back(struct core *core, const struct node *node)
{
    if (core->pass.begun && node->index < core->pass.node_count) {
        core->pass.nodes[node->index] |= 1;
        core->pass_put_off = true;
    }
}

/* Those that are there, or NULL: a node, a live job, an attempt that is live or one of the last that ended.
 */
struct node *node_find(const struct core *core, const char *name);
struct job *job_by_id(const struct core *core, const char *id);
struct job *job_by_key(const struct core *core, int64_t key);
struct attempt *attempt_find(const struct core *core, uint64_t attempt_id);

#endif
