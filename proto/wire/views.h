/* SPDX-License-Identifier: Apache-2.0 */
/* What the API shows: jobs, events, nodes, windows, tokens and problems. The controller writes them straight
 * into a text buffer, the clients read them back by the decode of the same file. Strings are borrowed: in an
 * encode from the caller, in a decode from json, which the view then owns; members that are JSON themselves
 * (spec, detail, devices) become texts in it. *_finish frees all that a decode made and nothing of others. */
#ifndef PROTO_VIEWS_H
#define PROTO_VIEWS_H

#include <jansson.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/states.h"

/* Where a node's part of an attempt runs: one item of JobView.nodes. */
struct placement_view {
    const char *node;
    int64_t node_rank, first_rank, local_ranks;
    const char *devices;             /* "0,1" */
    int64_t millicpus, memory_bytes; /* that it holds; 0: not known */
    const char *isolation;           /* ISOLATION_BY_USERS, or NULL: its ranks run as the agent's user */
    enum member_state state;
};

/* A node that stages the environment of a job in STAGING: one item of JobView.staging. */
struct staging_view {
    const char *node;
    bool heard;        /* "building": it has reported; else "told" */
    const char *text;  /* its newest report, one line; or NULL */
    int64_t since_ms;  /* since it received the order */
    int64_t silent_ms; /* since its last report, or since it received the order */
};

/* The progress of an array: JobView.array. */
struct array_view {
    int64_t tasks;    /* 0: the job is no array */
    int64_t parallel; /* 0: any number at a time */
    int64_t placed, running, succeeded, failed, canceled;
};

struct job_view {
    json_t *json;
    const char *id;
    enum job_state state;
    const char *name;     /* or NULL */
    const char *program;  /* of its command; or NULL */
    const char *labels;   /* JSON object of strings, or NULL */
    const char *retry_of; /* id of the job that it repeats, or NULL */
    const char *owner;
    const char *project;
    int64_t gpus;
    const char *gpu_type; /* or NULL */
    const char *pool;     /* the pool that it was placed in; or NULL */
    int64_t priority;
    int64_t time_limit_ms;                    /* 0: none */
    int64_t attempt;                          /* 0 before the first */
    int64_t seq;                              /* of its last event */
    int64_t created_ms, started_ms, ended_ms; /* wall clock; 0: not yet */
    int64_t ran_ms;                           /* time with all its GPUs, over all ended attempts */
    int64_t exit_code;       /* of the job: worst rank, 128+signal, 130 canceled, 124 time limit; -1 while not
                                terminal */
    int64_t failed_rank;     /* the first rank that failed; -1: none */
    const char *failed_node; /* or NULL */
    int64_t idle_since_ms;   /* wall clock: its GPUs have been nearly unused since then; 0: they are used */
    int64_t kept_until_ms;   /* wall clock: a rank failed, and its nodes stay as they are until then; 0 */
    enum cause cause;
    const char *reason; /* one sentence: why it waits, or why it ended this way; NULL: nothing to say */
    struct array_view array;
    const char *array_id; /* of the task's array; or NULL */
    int64_t task;         /* the task's number, from 0; -1: no task */
    const char *sweep; /* of a task: a JSON object of its sweep values; of an array: the array of names; shown
                    only for a single job; or NULL */
    const char *spec;  /* the JSON of the spec, shown only for a single job; or NULL */
    struct placement_view *placements; /* of the newest attempt; shown only for a single job */
    size_t placement_count;
    struct staging_view *stagings; /* longest silent first; shown only for a single job in STAGING */
    size_t staging_count;
};

struct event_view {
    json_t *json;
    const char *job_id;
    int64_t seq;
    int64_t at_ms;
    enum event_kind kind;
    int64_t attempt;
    const char *detail; /* a JSON object, or NULL */
};

struct node_view {
    json_t *json;
    const char *name;
    enum node_state state;
    const char *pool;
    enum pool_kind pool_kind;
    const char *gpu_type; /* the only type, or "mixed" */
    int64_t gpus, free_gpus;
    int64_t unavailable_gpus;          /* how many of its GPUs no job can get */
    int64_t millicpus, free_millicpus; /* that jobs may have, in thousandths; 0: its agent does not say */
    int64_t memory_bytes, free_memory_bytes; /* likewise */
    const char *unavailable;                 /* why the first of them is unavailable; or NULL */
    const char *address;
    const char *version;
    const char *host_id;
    enum isolation isolation;
    bool slots;
    int64_t heartbeat_age_ms; /* since the last heartbeat; -1: none since the controller started */
    const char *reason;       /* of a drain or a loss; or NULL */
    const char *labels;       /* JSON object of strings, or NULL */
    int64_t expires_ms;       /* wall clock: when the provider takes the node back; 0: never */
    /* The maintenance window that the node is in, else the next one; 0: none. */
    int64_t window_from_ms, window_until_ms;
    bool window_hard;
    const char
        *devices; /* JSON array of {index, uuid, type, memory_bytes, group, unavailable}, or NULL in lists */
};

struct window_view {
    json_t *json;
    const char *id;
    const char *nodes; /* a JSON array of names, or NULL */
    const char *pool;  /* NULL with nodes NULL: all nodes */
    int64_t from_ms, until_ms;
    bool hard;
    const char *reason; /* or NULL */
    const char *owner;
    int64_t created_ms;
};

struct token_view {
    json_t *json;
    const char *id;
    enum role role;
    const char *owner;
    int64_t created_ms, expires_ms; /* 0: never */
    bool revoked;
    int64_t used_ms;     /* its last use, to an hour; 0: none */
    const char *node;    /* the node that it is bound to; NULL: none */
    const char *project; /* of a service account; NULL: it is of none */
    const char *subject; /* who logged in, at the identity provider; NULL: nobody did */
    const char *groups;  /* of them there, a line each; NULL: none */
    const char *secret;  /* the whole token, only when it was just made; else NULL */
};

/* What somebody did, or was not allowed to do. */
struct audit_view {
    json_t *json;
    int64_t seq; /* 1, 2, 3 ...: none is left out */
    int64_t at_ms;
    const char *owner; /* of the token; NULL: there was none, or it was not known */
    enum role role;    /* of the token */
    const char *token; /* its id; NULL: see owner */
    const char *address, *method, *path;
    const char *subject; /* the id of what was made; or NULL */
    int64_t status;      /* of the answer */
    const char *code;    /* of the error; or NULL */
    const char *detail;  /* the text of a JSON object; or NULL */
    const char *hash;    /* in hex; audit_hash */
};

struct join_token_view {
    json_t *json;
    const char *token; /* shown only once */
    int64_t expires_ms;
    const char *pool; /* or NULL */
    bool reserved;
    const char *ca_pin; /* of the authority that signs for the controller; NULL: the authority is not the
                           controller's own */
    const char *url;    /* the controller's guess at its address for nodes; or NULL */
};

/* The answer to a submission: the members of a job that identify it and its state. The store keeps it with
 * each Idempotency-Key, so it is short. job_view_decode reads it. */
void job_receipt_encode(const char *id, enum job_state state, int64_t seq, struct text *out);

/* One placement by itself. */
void placement_view_encode(const struct placement_view *view, struct text *out);

#define VIEW_DECLARE(name)                                                                                   \
    void name##_encode(const struct name *view, struct text *out);                                           \
    /* Takes over json in any case. */                                                                       \
    bool name##_decode(json_t *json, struct name *ret_view, struct err *err);                                \
    void name##_finish(struct name *view);
VIEW_DECLARE(job_view)
VIEW_DECLARE(event_view)
VIEW_DECLARE(node_view)
VIEW_DECLARE(window_view)
VIEW_DECLARE(token_view)
VIEW_DECLARE(join_token_view)
VIEW_DECLARE(audit_view)

/* application/problem+json of RFC 9457: {type, title, status, detail, code, field, hint, retryable}. */
void problem_encode(const struct err *err, struct text *out);
/* Fills *ret_problem from a problem body; from any other body it makes an error that names the HTTP
 * status. */
void problem_decode(const char *body, size_t length, int http_status, struct err *ret_problem);

#endif
