/* SPDX-License-Identifier: Apache-2.0 */
/* The core: all state that decides, and the one function that changes it. Pure: (state, input, time) ->
 * (state, row changes, orders, answer). It does no I/O, reads no clock, logs nothing and draws no random
 * numbers; those come in with the input. */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/change.h"
#include "proto/spec/account_limits.h"
#include "proto/base/err.h"
#include "proto/spec/jobspec.h"
#include "proto/wire/messages.h"

struct core;

struct core_config {
    uint32_t incarnation; /* strictly larger at every start */
    int64_t next_job_key;
    int64_t heartbeat_ms; /* how often nodes send heartbeats; SUSPECT after HEARTBEATS_MISSED of them */
    enum policy policy;
    int64_t share_half_life_ms; /* after which past use counts half; 0: DEFAULT_SHARE_HALF_LIFE_MS */
};

struct core *core_create(const struct core_config *config);
void core_destroy(struct core *core);

/* --- loading, before the first step: what was learned, limits, what was used, nodes, windows, live jobs in
 * order of key, their newest attempts, the members of those --------- */
void core_load_history(struct core *core, const struct history_row *row);
/* limits are those of row->limits; only read. */
void core_load_limits(struct core *core, const struct limits_row *row, const struct account_limits *limits);
void core_load_usage(struct core *core, const struct usage_row *row);
void core_load_node(struct core *core, const struct node_row *row);
void core_load_window(struct core *core, const struct window_row *row);
/* What a job needs on its nodes before it may be placed there (proto/wire/staging.h), as far as the core
 * cares. */
struct environment_spec {
    const char *key;  /* equal needs have equal keys */
    const char *text; /* what nodes are told: JSON, as staging_decode reads it */
};

/* Tasks come after their arrays, which are jobs as well; spec and environment of a task are those of its
 * array. spec and environment are only read; environment NULL: nothing. user_failures etc. come from life. */
void core_load_job(struct core *core, const struct job_birth *birth, const struct job_life *life,
                   const struct job_spec *spec, const struct environment_spec *environment);
/* After the jobs. */
void core_load_array(struct core *core, const struct array_row *row);
/* All of a job after all jobs. */
void core_load_dependency(struct core *core, const struct dependency_row *row);
void core_load_attempt(struct core *core, const struct attempt_row *row);
void core_load_member(struct core *core, const struct member_row *row);

/* --- inputs --------------------------------------------------------------------------------------------- */

enum input_kind {
    INPUT_BOOT, /* once, after loading: heartbeats count from now, live attempts are renewed, what fits is
                 * placed
                 */
    INPUT_SUBMIT,
    INPUT_CANCEL,
    INPUT_HOLD,
    INPUT_RELEASE,
    INPUT_CHANGE, /* of a live job's priority or time limit */
    INPUT_REGISTER,
    INPUT_HEARTBEAT,
    INPUT_REPORT,
    INPUT_STAGING,  /* a node has an environment ready, or cannot be; progress is no input */
    INPUT_NODE,     /* drain, resume, fence, expire, remove */
    INPUT_WINDOW,   /* a maintenance window is made or removed */
    INPUT_LIMITS,   /* an account's limits change */
    INPUT_ACCOUNTS, /* a question: changes nothing */
    INPUT_POOLS,    /* a question, too */
    INPUT_PREEMPT,  /* a job gives back its GPUs and waits again */
    INPUT_ASK,      /* a question about one job: changes nothing */
    INPUT_TICK,     /* time has passed: deadlines are looked at */
};

enum ask_kind {
    ASK_EXPLAIN,  /* why a live job waits, when it will start, what would start it now */
    ASK_PLAN,     /* the same of a job as if it were submitted now */
    ASK_REHEARSE, /* who would have to go for a job that waits */
};

enum node_verb {
    NODE_VERB_DRAIN,
    NODE_VERB_RESUME,
    NODE_VERB_FENCE,
    NODE_VERB_EXPIRE,
    NODE_VERB_REMOVE, /* the node is forgotten, once no attempt holds it any more */
};

/* A job on which a submission depends, as it was when the submission was read. */
struct core_dependency {
    const char *id;
    int64_t key;
    enum dependency kind;
    enum job_state state;
};

struct input {
    enum input_kind kind;
    /* For records; and, of BOOT and TICK, to tell when windows and expiries, which people write by the wall
     * clock, are due. Nothing else is decided by it. */
    int64_t wall_ms;
    /* CLOCK_BOOTTIME, for records, too: when the step is done, and when what asks for it was there; 0: as
     * now_ms says. */
    int64_t at_us, arrived_us;
    union {
        struct {
            const char *id; /* of the job to be: ID_LENGTH characters from fresh random bytes */
            const char *owner;
            const struct job_spec *spec; /* only read */
            const char
                *body; /* the spec's JSON as received; must live until the step's changes are applied */
            size_t body_length;
            const char *shown; /* the spec as people are shown it, or NULL: body; lives as long */
            const struct environment_spec *environment; /* or NULL; only read */
            const struct blob_row
                *requirements; /* of its environment, to be stored with it; or NULL; lives as long */
            const struct core_dependency *dependencies; /* as many as the spec names; only read */
            size_t dependency_count;
        } submit;
        struct {
            const char *id;
            const char *by; /* owner of the token, for the history */
        } cancel;
        struct {
            const char *id;
            const char *by;
        } hold; /* and release */
        struct {
            const char *id;
            const char *by;
            int64_t if_seq; /* the job's newest event must be this one; -1: whichever */
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
            enum node_verb verb;
            const char *reason; /* or NULL */
            const char *by;
            int64_t expires_at_ms; /* of EXPIRE; 0: never */
            bool force;            /* of REMOVE: a node that is not drained is fenced */
        } node;
        struct {
            const char *id;
            const char *by; /* owner of the token, for the history */
        } preempt;
        struct {
            enum ask_kind kind;
            const char *id;    /* of the job; PLAN: NULL */
            const char *owner; /* PLAN: as in submit, and only read */
            const struct job_spec *spec;
            const struct environment_spec *environment;
        } ask;
        struct {
            enum account_kind kind;
            const char *name;
            const struct account_limits *limits; /* only read; NULL: it has none any more */
            const char *text;                    /* the same as JSON; lives until the changes are applied */
            bool force;                          /* attempts that lose their entitlement go on, borrowed */
        } limits;
        struct {
            const char *viewer;     /* what this user may see; NULL: everything */
            const char *name;       /* NULL: all projects and users */
            enum account_kind kind; /* of name: a project or a user */
            const char *after;      /* a cursor of the answer before; NULL: from the first */
        } accounts;
        struct {
            const char *remove;           /* the id of one to remove; NULL: row is made */
            const struct window_row *row; /* only read; created_ms is the step's */
        } window;
    };
};

/* --- what a step gives back ----------------------------------------------------------------------------- */

/* The job as an answer needs it; strings live as long as the step. */
struct job_touch {
    int64_t key;
    char id[17];
    enum job_state state;
    int64_t seq;
};

struct step {
    bool ok;
    struct err err;                 /* why not; then nothing was changed */
    struct job_touch job;           /* SUBMIT, CANCEL, HOLD, RELEASE and CHANGE: the job */
    const struct job_life *life;    /* as it is now, changed or not; but for its reason, if it was not */
    const struct array_row *counts; /* of an array; NULL: it is none */
    const char *answer; /* LIMITS, ACCOUNTS and POOLS: JSON. REGISTER: the nonce to repeat, NULL: taken */
    uint64_t *fenced;   /* HEARTBEAT: of the attempt ids that it lists, those that the node is not to have */
    size_t fenced_count;
    struct change *changes; /* in order; their strings live as long as the step */
    size_t change_count;
    bool lazy; /* changes may ride with a later commit, LIMIT LAZY_COMMIT_MS at most; the answer need not wait
                */
    const char **dirty_nodes; /* nodes whose orders changed: names, borrowed from the core, each once */
    size_t dirty_count;
    struct job_touch *touched; /* jobs whose state or history changed, each once */
    size_t touched_count;
    struct arena *arena; /* owns all of the above */
};

/* Does one input. now_ms is CLOCK_BOOTTIME. *ret_step is always filled and is finished by step_finish. */
void core_step(struct core *core, const struct input *input, int64_t now_ms, struct step *ret_step);
void step_finish(struct step *step);

/* All steps that were done so far are on disk, at at_us, CLOCK_BOOTTIME. Calls ended for each attempt whose
 * end that is, in microseconds since its submission was received. */
void core_committed(struct core *core, int64_t at_us,
                    void (*ended)(void *closure, uint64_t attempt_id, int64_t visible_us), void *closure);

/* The earliest time at which a TICK has something to do; INT64_MAX when there is none. */
int64_t core_deadline(const struct core *core);

/* --- orders: the whole desired state of one node, derived from the state -------------------------------- */

struct node_order {
    struct order order;   /* spec is NULL: whoever sends it reads the spec of spec_key */
    int64_t spec_key;     /* of the job; of a task, that of its array */
    uint64_t version;     /* when it last changed: sent to polls with an older version */
    int64_t *devices;     /* owned: order.devices points here */
    char job_id[17];      /* order.job_id points here */
    char array_id[17];    /* order.array_id points here, where the job is a task */
    char *master_address; /* owned, or NULL */
    char *addresses;      /* owned, or NULL */
};

/* What a node is to get ready. */
struct node_staging {
    char *key, *text; /* owned */
};

struct node_orders {
    char *node;
    char *boot_id, *agent_id;
    uint64_t version; /* incarnation << 32 | counter */
    struct node_order *items;
    size_t count;
    struct node_staging *stagings;
    size_t staging_count;
};

/* NULL when the node is not known. A copy, which the caller destroys; may be handed to another thread. */
struct node_orders *core_orders(const struct core *core, const char *node);
void node_orders_destroy(struct node_orders *orders);

/* Calls visit for every node, by name. */
void core_each_node(const struct core *core, void (*visit)(const char *name, void *closure), void *closure);

/* Whether so many nodes are silent at once that the fault is likely the controller's own: as long as this
 * lasts no lease ends. The counts are of nodes that are not LOST. */
struct silence {
    size_t silent_count, known_count;
    bool braked;
};
struct silence core_silence(const struct core *core);

/* How many jobs are live: an embedded controller ends when there are none for long. */
size_t core_live_jobs(const struct core *core);

/* --- for tests: why it decided -------------------------------------------------------------------------- */

/* From now on each decision appends a line to *trace; NULL ends it. */
struct text;
void core_trace(struct core *core, struct text *trace);

/* Aborts with a message on stderr when a global invariant does not hold; local ones are asserted after every
 * step anyway. */
void core_check(const struct core *core);

#endif
