/* SPDX-License-Identifier: Apache-2.0 */
/* Row changes: what a step wants to be written, as plain values. The core makes them, the store applies them,
 * nobody interprets them. Strings are borrowed from the step that carries the change. Times named _ms are
 * wall clock, for display. */
#ifndef CORE_CHANGE_H
#define CORE_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/states.h"

/* The columns of a job that never change after its submission. */
struct job_birth {
    int64_t key; /* internal, increasing */
    const char *id;
    const char *owner;
    const char *name; /* or NULL */
    const char *project;
    const char *spec; /* JSON, as it was received */
    size_t spec_length;
    const char *shown; /* the same as people are shown it; NULL: as it was received */
    int64_t gpus;
    const char *gpu_type; /* or NULL */
    int64_t created_ms;
    int64_t array_key;    /* of a task: its array, whose owner, name, project and spec are its own; 0: none */
    int64_t task;         /* its number, from 0; -1: none */
    const char *array_id; /* set by readers; NULL: none */
};

/* The columns of a job that do. */
struct job_life {
    int64_t key;
    enum job_state state;
    int64_t seq;     /* of its last event */
    int64_t attempt; /* number of the newest; 0: none yet */
    int64_t user_failures, infra_failures;
    const char *pool; /* of the newest attempt, or NULL */
    int64_t priority;
    int64_t time_limit_ms; /* 0: none */
    int64_t ran_ms;        /* with all GPUs, over all attempts that have ended */
    int64_t started_ms, ended_ms;
    int64_t event_ms;        /* when its last event was; set when live jobs are loaded, and nowhere else */
    int64_t exit_code;       /* -1 while not terminal */
    int64_t failed_rank;     /* -1: none */
    const char *failed_node; /* or NULL */
    enum cause cause;
    const char *reason; /* or NULL */
};

/* How far an array is: a job that stands for many tasks. */
struct array_row {
    int64_t job_key;
    int64_t tasks;             /* 0: the job is no array */
    int64_t parallel;          /* of them, at most so many at a time; 0: any number */
    int64_t placed;            /* tasks that have become jobs: those with a smaller number */
    int64_t running;           /* of these, have not ended */
    int64_t succeeded, failed; /* failed, timed out, or given up before they were placed */
    int64_t canceled;          /* of these, too, some may never have been placed */
    int64_t worst_code;        /* the largest exit code of a task */
};

struct event_row {
    int64_t job_key;
    int64_t seq;
    int64_t at_ms;
    enum event_kind kind;
    int64_t attempt;
    const char *detail; /* JSON object, or NULL */
};

/* A job that depends on another. */
struct dependency_row {
    int64_t job_key;
    int64_t on_key; /* the other */
    enum dependency kind;
};

/* When things were done with an attempt, by the controller's steady clock: the wall clock as it was when the
 * controller was started, and the time since. In microseconds, all but the first since that; 0: not known. */
struct attempt_timing {
    int64_t received_us; /* the submission was there */
    int64_t queued_us;   /* it was on disk */
    int64_t placed_us;   /* the job got its GPUs */
    int64_t started_us;  /* the start was on disk */
    int64_t settled_us;  /* nothing of it was left to come: that is the end, once it is on disk */
};

/* The same of one node. By the controller's clock, since the submission was received; then by the node's,
 * since the order came that it is of: START, where that left. 0: not known. */
struct member_timing {
    int64_t queued_us, started_us; /* of its attempt, as far as the row is newer than that one's */
    int64_t ordered_us;            /* PREPARE left, or RUN */
    int64_t told_us;               /* START left */
    int64_t ready_us;              /* it had said that it is prepared */
    int64_t heard_us;              /* it had said that its ranks were started */
    int64_t prepared_us, begun_us, running_us, output_us, ended_us; /* as in proto/timing.h */
    const char *start; /* how it started its ranks, for people; or NULL */
    const char *marks; /* JSON array of {name, rank, after_us}; or NULL */
};

struct attempt_row {
    uint64_t epoch;
    int64_t job_key;
    int64_t number;
    enum attempt_state state;
    enum claim claim;
    enum cause cause;
    const char *cause_text; /* for people, or NULL */
    const char *pool;
    const char *gpu_type;       /* NULL: of an attempt that was made before this was kept */
    const char *master_address; /* or NULL */
    int64_t master_port;        /* 0: none */
    int64_t created_ms, started_ms, ended_ms;
    int64_t failed_rank; /* -1: none */
    int64_t failed_code;
    int64_t warned_ms;     /* when its early signal was ordered; 0: it was not */
    int64_t checkpoint_ms; /* when a rank last acknowledged a checkpoint, known once its node has exited; 0 */
    struct attempt_timing timing;
};

struct member_row {
    uint64_t epoch;
    int64_t node_rank;
    const char *node; /* name */
    int64_t first_rank, local_ranks;
    const char *devices; /* "0,1,5" */
    enum member_state state;
    struct member_timing timing;
};

struct rank_row {
    uint64_t epoch;
    int64_t rank;
    int64_t code, signal, at_ms;
    int64_t out_bytes, err_bytes;
};

/* What a rank left behind. */
struct result_row {
    uint64_t epoch;
    int64_t rank;
    enum result_kind kind;
    int64_t size;
    const uint8_t *hash; /* of the pickle, a blob; NULL: there is none */
    const char *json;    /* or NULL */
};

struct node_row {
    const char *name;
    const char *boot_id, *agent_id, *host_id, *version, *address; /* agent_id: "" where it is not known */
    const char *pool;
    enum pool_kind pool_kind;
    enum node_state
        state; /* READY, DRAINING, DRAINED or LOST; SUSPECT is not stored, it follows from heartbeats */
    const char *reason; /* or NULL */
    enum isolation isolation;
    bool slots;
    const char *devices; /* JSON array of {index, uuid, type, memory_bytes, group} */
    int64_t registered_ms;
    const char *labels;    /* JSON object of strings, or NULL */
    int64_t expires_at_ms; /* when its provider takes it back; 0: never */
    int64_t
        agent_expires_at_ms; /* what its agent said of that last; a person may have said otherwise since */
};

/* A time in which nodes get no work. */
struct window_row {
    const char *id;
    const char *nodes; /* names, separated by commas; NULL: not by name */
    const char *pool;  /* NULL with nodes NULL: all nodes */
    int64_t from_ms, until_ms;
    bool hard;          /* what runs then is stopped before it begins; else it may end */
    const char *reason; /* or NULL */
    const char *owner;  /* who made it */
    int64_t created_ms;
};

/* How long jobs of one kind have run: the sums from which estimates are learned. */
struct history_row {
    const char *project, *owner;
    const char *name; /* without the digits at its end; "": none */
    int64_t gpus;
    bool limited;          /* jobs with a time limit count apart */
    int64_t count;         /* of runs that ended by themselves */
    int64_t ran_ms;        /* sum */
    int64_t limit_ms;      /* sum of their limits; 0 without */
    int64_t error_percent; /* sum of how far each estimate was off: 100 means by a factor of two */
};

/* What a project (project alone), a user (owner alone), or a user within a project (both) has used. */
struct usage_row {
    const char *project; /* or NULL */
    const char *owner;   /* or NULL */
    double gpu_ms;       /* decayed up to at_ms, for fair shares */
    double spent_ms;     /* GPU time since the period of its limit began in which at_ms lies */
    int64_t at_ms;
};

struct limits_row {
    enum account_kind kind;
    const char *name;
    const char *limits; /* JSON, see proto/account_limits.h */
};

/* The first answer to a request that carried an Idempotency-Key. */
struct reply_row {
    uint8_t scope[32]; /* SHA-256 of owner, route and key */
    uint8_t body[32];  /* SHA-256 of the raw request body */
    int64_t job_key;   /* that lives as long as this row; 0: none */
    int64_t status;
    const char *answer;
    size_t answer_length;
    int64_t at_ms;
};

struct token_row {
    const char *id;
    uint8_t secret[32]; /* SHA-256 */
    enum role role;
    const char *owner;
    int64_t created_ms, expires_ms; /* 0: never */
    bool revoked;
    const char *node; /* that the token is bound to; NULL: none */
};

/* What a node trades for a token of its own, once. */
struct join_row {
    const char *id;
    uint8_t secret[32]; /* SHA-256 */
    const char *pool;   /* of the node to be; NULL: as its agent says */
    bool reserved;
    const char *owner; /* who made it */
    int64_t created_ms, expires_ms;
    const char *node;  /* that used it; NULL: not used yet */
    const char *token; /* what it was traded for: id of that token; NULL: likewise */
};

struct blob_row {
    uint8_t hash[32];
    int64_t size;
    const void *bytes; /* NULL: the bytes are a file */
    int64_t created_ms;
};

/* An attempt that a node tells of, and that a database which was put back from a backup does not know. */
struct lost_row {
    uint64_t epoch;
    const char *node;
    const char *job_id;
    bool known;                 /* the job is there, only the attempt is not */
    int64_t began_ms, ended_ms; /* wall clock of the node; 0: it does not tell */
    int64_t code;               /* the largest exit code of its ranks there; -1: none is known */
};

enum change_kind {
    CHANGE_JOB_INSERT, /* birth and life */
    CHANGE_JOB_UPDATE, /* life */
    CHANGE_ARRAY_PUT,  /* of a job that was inserted */
    CHANGE_EVENT_INSERT,
    CHANGE_DEPENDENCY_INSERT,
    CHANGE_ATTEMPT_INSERT,
    CHANGE_ATTEMPT_UPDATE, /* state, claim, cause, master_*, *_ms but created_ms, failed_*, timing of attempt
                            */
    CHANGE_MEMBER_INSERT,
    CHANGE_MEMBER_UPDATE, /* state, timing of member */
    CHANGE_RANK_PUT,
    CHANGE_RESULT_PUT,
    CHANGE_NODE_PUT,
    CHANGE_NODE_DELETE, /* node.name; tokens that are bound to it are revoked */
    CHANGE_REPLY_INSERT,
    CHANGE_TOKEN_INSERT,
    CHANGE_TOKEN_REVOKE, /* token.id */
    CHANGE_JOIN_INSERT,  /* those that expired long ago go */
    CHANGE_JOIN_USE,     /* id, node and token of join */
    CHANGE_BLOB_PUT,     /* a hash that is there already is left as it is */
    CHANGE_HISTORY_PUT,
    CHANGE_USAGE_PUT,
    CHANGE_USAGE_DELETE, /* project and owner of usage; there need not be such a row */
    CHANGE_LIMITS_PUT,
    CHANGE_LIMITS_DELETE, /* kind and name of limits */
    CHANGE_WINDOW_INSERT,
    CHANGE_WINDOW_DELETE, /* window.id */
    CHANGE_LOST_PUT,      /* beyond LIMIT_LOST_ROWS nothing is kept */
};

struct change {
    enum change_kind kind;
    union {
        struct {
            struct job_birth birth;
            struct job_life life;
        } job;
        struct array_row array;
        struct event_row event;
        struct dependency_row dependency;
        struct attempt_row attempt;
        struct member_row member;
        struct rank_row rank;
        struct result_row result;
        struct node_row node;
        struct reply_row reply;
        struct token_row token;
        struct join_row join;
        struct blob_row blob;
        struct history_row history;
        struct usage_row usage;
        struct limits_row limits;
        struct window_row window;
        struct lost_row lost;
    };
};

#endif
