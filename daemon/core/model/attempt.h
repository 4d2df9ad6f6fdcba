/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt of a job to run, and the list of live ones by when they will end. */
#ifndef CORE_MODEL_ATTEMPT_H
#define CORE_MODEL_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/model/rows.h"
#include "proto/base/text/table.h"
#include "proto/states.h"

struct job;
struct member;

struct attempt {
    union {
        struct attempt_row row; /* its texts are owned; started_ms 0: START was never committed; the first
                                   cause wins */
        struct {
            ATTEMPT_ROW(ROW_FIELD, )
        };
    };
    struct job *job; /* NULL: the job has ended and left */
    char *note;      /* a remark of the node although nothing failed; owned, in no row; or NULL */
    int64_t held_since_ms, ran_since_ms; /* created_ms and started_ms, by the steady clock */
    int64_t estimate_ms;                 /* of its run time, when it was placed */
    int64_t expected_ms;                 /* steady clock: expected end at the last look */
    size_t end_index;                    /* in the heap of ends, or in the list of stopping attempts */
    const char *failed_node;             /* borrowed from the node, or NULL */
    int64_t worst_code; /* largest exit code of ranks that we did not kill; failed_code after a restart of the
                           controller while the attempt stops */
    int64_t since_ms;   /* when its current state began, or the controller started */
    int64_t idle_told_ms;    /* when its owner was told that its GPUs are idle, or the controller started */
    int64_t deadline_ms;     /* by state: prepare expiry, time limit, flush expiry */
    struct member **members; /* by node rank; owned */
    size_t member_count;
    struct attempt *prev, *next; /* live ones by attempt id; ended ones by end */
    uint32_t slot;
    UT_hash_handle hh;
};

static inline bool attempt_is_live(const struct attempt *attempt)
{
    return attempt_state_holds_gpus(attempt->state);
}

/* Whether its devices will be free soon. */
static inline bool attempt_is_leaving(const struct attempt *attempt)
{
    return attempt->state == ATTEMPT_STOPPING || attempt->state == ATTEMPT_FLUSHING;
}

/* Whether START was committed, so that ranks may have run. */
static inline bool attempt_has_started(const struct attempt *attempt)
{
    return attempt->started_ms != 0;
}

/* Live attempts by expected end. */
struct availability {
    struct attempt **ends; /* a heap: the earliest end first */
    size_t end_count, end_room;
    struct attempt **stopping; /* attempts that are about to give back their devices, unordered */
    size_t stopping_count, stopping_room;
};

#endif
