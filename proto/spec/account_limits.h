/* SPDX-License-Identifier: Apache-2.0 */
/* What a project, a user or a pool may use: plain values, and their JSON as people write it and the store
 * keeps it. */
#ifndef PROTO_ACCOUNT_LIMITS_H
#define PROTO_ACCOUNT_LIMITS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/states.h"

#define ANY_TYPE      "*"
#define WEIGHT_OF_ONE 1000 /* weights are thousandths */

struct type_limit {
    char *type; /* of GPUs, told apart without regard to case; ANY_TYPE: all together */
    int64_t gpus;
};

struct account_limits {
    struct type_limit *quota; /* of projects: GPUs that nobody takes from them; 1 and more */
    size_t quota_count;
    struct type_limit *most; /* GPUs at once; a type that is not there has no bound */
    size_t most_count;
    int64_t max_running_jobs, max_queued_jobs; /* -1: any number */
    int64_t gpu_ms;                            /* of GPU time that may be used in each period */
    int64_t period_ms; /* which begin at multiples of this since 1970; 0: no such limit */
    int64_t weight;    /* of its fair share */
    bool lends;        /* of pools: jobs that ask for on-demand GPUs may borrow there */
};

/* No limit at all. */
void account_limits_init(struct account_limits *limits);
void account_limits_finish(struct account_limits *limits);
/* The caller finishes the copy. */
void account_limits_copy(const struct account_limits *limits, struct account_limits *ret_copy);

/* Reads an object strictly: a member that accounts of this kind do not have is refused. ERR_FIELD names the
 * member; *ret_limits is then left untouched. */
bool account_limits_decode(const json_t *json, enum account_kind kind, struct account_limits *ret_limits,
                           struct err *err);

/* Appends the object; what has no limit is left out, so that it reads back the same. */
struct text;
void account_limits_encode(const struct account_limits *limits, enum account_kind kind, struct text *out);

#endif
