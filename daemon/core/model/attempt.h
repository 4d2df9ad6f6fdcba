/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt of a job to run, and the list of live ones by when they will end. */
#ifndef CORE_MODEL_ATTEMPT_H
#define CORE_MODEL_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/model/rows.h"
#include "proto/base/table.h"
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

static inline bool attempt_is_live(const struct attempt *attempt)
{
    return attempt_state_holds_gpus(attempt->state);
}

/* Its devices will be free soon. */
static inline bool attempt_is_leaving(const struct attempt *attempt)
{
    return attempt->state == ATTEMPT_STOPPING || attempt->state == ATTEMPT_FLUSHING;
}

/* START was committed: ranks may have run. */
static inline bool attempt_has_started(const struct attempt *attempt)
{
    return attempt->started_ms != 0;
}

/* Live attempts, by when they are expected to end. */
struct availability {
    struct attempt **ends; /* a heap: the first ends first */
    size_t end_count, end_room;
    struct attempt **stopping; /* those that are about to give back their devices, in no order */
    size_t stopping_count, stopping_room;
};

#endif
