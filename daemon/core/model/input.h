/* SPDX-License-Identifier: Apache-2.0 */
/* What the core is given: its configuration, and one input for each step. */
#ifndef CORE_MODEL_INPUT_H
#define CORE_MODEL_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/model/rows.h"
#include "proto/spec/account_limits.h"
#include "proto/spec/jobspec.h"
#include "proto/wire/messages.h"

struct core_config {
    uint32_t incarnation; /* strictly larger at every start */
    int64_t next_job_key;
    int64_t heartbeat_ms; /* interval of heartbeats; a node is SUSPECT after HEARTBEATS_MISSED of them */
    enum policy policy;
    int64_t share_half_life_ms; /* half-life of past use; 0: DEFAULT_SHARE_HALF_LIFE_MS */
    int64_t idle_after_ms;      /* GPUs that are nearly unused for so long are idle; 0: never */
    int64_t webhook_pause_ms;   /* before a delivery is tried again; 0: DEFAULT_WEBHOOK_PAUSE_MS */
    int64_t pass_work;          /* the most that one scheduling pass does; 0: LIMIT_PASS_WORK */
};

/* The environment spec of a job (proto/wire/staging.h), reduced to the parts that the core uses. */
struct environment_spec {
    const char *key;   /* equal environment specs have equal keys */
    const char *text;  /* for the nodes: JSON, as staging_decode reads it */
    const char *parts; /* keys of its parts that take long to stage, separated by spaces; NULL: none */
    bool unpinned;     /* its inputs may change at their sources */
};

enum input_kind {
    INPUT_BOOT, /* once, after loading: heartbeats count from now, the expiry of live attempts is renewed,
                   waiting jobs are placed */
    INPUT_SUBMIT,
    INPUT_CANCEL,
    INPUT_HOLD,
    INPUT_RELEASE,
    INPUT_CHANGE, /* of a live job's priority or time limit */
    INPUT_REGISTER,
    INPUT_HEARTBEAT,
    INPUT_REPORT,
    INPUT_STAGING,  /* a node has staged an environment or failed to; progress is no input */
    INPUT_NODE,     /* drain, resume, fence, expire, remove, leave */
    INPUT_WINDOW,   /* a maintenance window is made or removed */
    INPUT_LIMITS,   /* an account's limits change */
    INPUT_ACCOUNTS, /* a question: changes no state */
    INPUT_POOLS,    /* a question: changes no state */
    INPUT_PREEMPT,  /* a job gives back its GPUs and waits again */
    INPUT_ASK,      /* a question about jobs: changes no state */
    INPUT_REMOVE,   /* jobs that have ended are removed */
    INPUT_WEBHOOK,  /* of a webhook or its deliveries */
    INPUT_TICK,     /* time has passed: deadlines are checked */
};

enum ask_kind {
    ASK_EXPLAIN,  /* why a live job waits, when it will start, and which change would start it now */
    ASK_PLAN,     /* the same for a job that would be submitted now */
    ASK_REHEARSE, /* which attempts would have to be preempted for a waiting job */
    ASK_QUEUE,    /* which jobs wait, in the order in which the scheduler looks at them */
};

enum node_action {
    NODE_ACTION_DRAIN,
    NODE_ACTION_RESUME,
    NODE_ACTION_FENCE,
    NODE_ACTION_EXPIRE,
    NODE_ACTION_REMOVE, /* removes the node, once no attempt holds it */
    NODE_ACTION_FORGET, /* the same of a node that has not been heard since then */
    NODE_ACTION_LEAVE,  /* of its agent, which is about to end */
};

enum webhook_action {
    WEBHOOK_ACTION_MAKE,
    WEBHOOK_ACTION_CHANGE,
    WEBHOOK_ACTION_REMOVE,
    WEBHOOK_ACTION_TEST,    /* makes a delivery of no event */
    WEBHOOK_ACTION_REPLAY,  /* deliveries that are over wait again */
    WEBHOOK_ACTION_OUTCOME, /* a delivery was tried */
};

/* What became of a try. */
struct delivery_outcome {
    int64_t key, tries; /* with this one */
    bool delivered;
    bool hopeless; /* a next try would end alike: the job of the event is gone */
    int64_t code;  /* HTTP status; 0: none */
    const char *error;
    int64_t jitter; /* random, of 0 to 1023 */
};

/* A dependency of a submission, as it was when the submission was read. */
struct core_dependency {
    const char *id;
    int64_t key;
    enum dependency kind;
    enum job_state state;
};

struct input {
    enum input_kind kind;
    /* Wall clock, for records. With BOOT and TICK it also decides when windows and expiries are due, because
     * people give these by the wall clock. Nothing else depends on it. */
    int64_t wall_ms;
    /* CLOCK_BOOTTIME, also for records: the time of the step, and the time when its request arrived; 0: the
     * same as now_ms. */
    int64_t at_us, arrived_us;
    union {
        struct {
            const char *id; /* of the new job: ID_LENGTH characters from fresh random bytes */
            const char *owner;
            const struct job_spec *spec; /* only read */
            const char
                *body; /* the spec's JSON as received; must live until the step's changes are applied */
            size_t body_length;
            const char *shown;  /* the spec as people see it; NULL: same as body; lives as long */
            const char *labels; /* of the spec, as JSON; NULL: none; lives as long */
            const struct environment_spec *environment; /* or NULL; only read */
            const struct blob_row
                *requirements; /* of its environment, to be stored with the job; or NULL; lives as long */
            const struct core_dependency *dependencies; /* one per dependency of the spec; only read */
            size_t dependency_count;
        } submit;
        struct {
            const char *id;
            const char *by; /* owner of the token, for the history */
        } cancel;
        struct {
            const char *id;
            const char *by;
        } hold; /* also of release */
        struct {
            const char *id;
            const char *by;
            int64_t if_seq; /* the job's newest event must be this one; -1: any */
            bool sets_priority, sets_time_limit;
            int64_t priority;
            int64_t time_limit_ms; /* 0: none */
        } change;
        const struct register_message *node_register;
        const struct heartbeat_message *heartbeat;
        const struct report_message *report; /* its results must live until the step's changes are applied */
        const struct staging_message *staging;
        struct {
            const char *name;
            enum node_action action;
            const char *reason; /* or NULL */
            const char *by;
            int64_t expires_at_ms;             /* of EXPIRE; 0: never */
            bool force;                        /* of REMOVE: fences a node that is not drained */
            int64_t heard_ms;                  /* of FORGET */
            const struct leave_message *leave; /* of LEAVE */
        } node;
        struct {
            const char *id;
            const char *by; /* owner of the token, for the history */
        } preempt;
        struct {
            enum ask_kind kind;
            const char *id;    /* of the job; PLAN, QUEUE: NULL */
            const char *owner; /* PLAN: as in submit, and only read; QUEUE: whose jobs, NULL: all */
            const struct job_spec *spec;
            const struct environment_spec *environment;
            bool sees_all;              /* the asker knows of all jobs */
            const char *pool, *project; /* QUEUE: only jobs that could use it, and of it; NULL: all */
            int64_t limit;              /* QUEUE: rows */
        } ask;
        struct {
            enum account_kind kind;
            const char *name;
            const struct account_limits *limits; /* only read; NULL: removes the limits */
            const char *text;                    /* limits as JSON; lives until the changes are applied */
            bool force; /* attempts that lose their entitlement continue as borrowed */
        } limits;
        struct {
            const char *viewer;     /* show only what this user may see; NULL: everything */
            const char *name;       /* NULL: all projects and users */
            enum account_kind kind; /* of name: a project or a user */
            const char *after;      /* a cursor from the previous answer; NULL: from the first */
        } accounts;
        struct {
            const int64_t *keys; /* only read */
            size_t count;
        } remove;
        struct {
            enum webhook_action action;
            const char *id;                         /* all but MAKE */
            const char *owner;                      /* the webhook must be theirs; NULL: anybody's */
            const struct webhook_row *row;          /* MAKE: all of it; only read */
            const char *url, *kinds;                /* CHANGE: NULL stays */
            bool sets_tasks, tasks;                 /* CHANGE */
            bool sets_enabled, enabled;             /* CHANGE */
            const int64_t *keys;                    /* REPLAY; only read */
            size_t count;                           /* REPLAY */
            const struct delivery_outcome *outcome; /* OUTCOME; only read */
        } webhook;
        struct {
            const char *remove;           /* the id of the window to remove; NULL: row is added */
            const struct window_row *row; /* only read; the step sets created_ms */
        } window;
    };
};

#endif
