/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a project, a user or a pool: plain values, and their JSON as people write it and the store
 * keeps it. */
#ifndef PROTO_ACCOUNT_LIMITS_H
#define PROTO_ACCOUNT_LIMITS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/states.h"

#define ANY_TYPE      "*"
#define WEIGHT_OF_ONE 1000 /* weights are thousandths */

struct type_limit {
    char *type; /* a GPU type, compared ignoring case; ANY_TYPE: all types together */
    int64_t gpus;
};

/* Before the name of a group of the identity provider, whose people are members. */
#define MEMBER_GROUP "group:"
/* Whether a group may have the name: printable, and at most LIMIT_GROUP_BYTES of it. */
bool member_group_is_sound(const char *group);

struct project_member {
    char *name; /* of the owner of tokens; or MEMBER_GROUP and a group */
    enum role role;
};

struct account_limits {
    struct type_limit *quota; /* of projects: GPUs that other projects cannot take; 1 or more */
    size_t quota_count;
    struct type_limit *most; /* GPUs at once; a type without an entry has no bound */
    size_t most_count;
    int64_t max_millicpus, max_memory_bytes;   /* at once; -1: no limit */
    int64_t max_running_jobs, max_queued_jobs; /* -1: no limit */
    int64_t gpu_ms;                            /* GPU time that may be used in each period */
    int64_t period_ms; /* periods begin at multiples of this since 1970; 0: no such limit */
    int64_t weight;    /* of the fair share */
    /* Of projects, after the end of a job or a run; 0: for ever; -1: as configured. */
    int64_t keep_jobs_days, keep_logs_days, keep_runs_days;
    int64_t idle_after_ms; /* of projects: GPUs that are nearly unused for so long are idle; 0: never; -1: as
                              configured */
    enum idle_action idle_action;   /* of projects, likewise */
    int64_t idle_grace_ms;          /* between the two parts of PREEMPT */
    struct project_member *members; /* of projects, whoever may submit there; ordered by name */
    size_t member_count;            /* 0: everybody */
    int64_t max_priority;           /* of projects: the highest that users may give a job */
    struct text_list pools;         /* of projects: where alone its jobs may run; none: anywhere */
    unsigned on_disconnect;         /* of projects: a bit for each rule that users may choose; 0: any */
    bool lends;                     /* of pools: jobs that ask for on-demand GPUs may borrow there */
    bool isolated;                  /* of pools: nodes there run jobs as the users of their owners */
};

/* Sets no limit at all. */
void account_limits_init(struct account_limits *limits);
void account_limits_finish(struct account_limits *limits);
/* The caller finishes the copy. */
void account_limits_copy(const struct account_limits *limits, struct account_limits *ret_copy);

/* Decodes an object strictly: refuses members that accounts of this kind do not have. ERR_FIELD names the
 * member, and then *ret_limits is left untouched. */
bool account_limits_decode(const json_t *json, enum account_kind kind, struct account_limits *ret_limits,
                           struct err *err);

/* Appends the object without the members that have no limit, so that it reads back the same. */
struct text;
void account_limits_encode(const struct account_limits *limits, enum account_kind kind, struct text *out);

#endif
