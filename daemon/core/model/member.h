/* SPDX-License-Identifier: Apache-2.0 */
/* Members: one node's part of an attempt. */
#ifndef CORE_MODEL_MEMBER_H
#define CORE_MODEL_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/model/attempt.h"
#include "daemon/core/model/node.h"
#include "daemon/core/model/rows.h"
#include "proto/states.h"

struct capacity;

struct member {
    struct attempt *attempt;
    struct node *node;
    MEMBER_OWN_ROW(ROW_FIELD, ) /* texts are owned */
    int64_t *devices;           /* indices; owned */
    size_t device_count;
    int64_t port;            /* held when it was prepared; 0: none, or not known, because no row has it */
    int64_t idle_since_ms;   /* its GPUs are nearly unused; NEVER: they are used; 0: nothing was heard yet */
    int64_t results_missing; /* ranks of a function whose value is not stored yet */
    uint64_t version;        /* of its order */
    struct member *prev, *next; /* of the node, while the attempt is live */
    uint32_t slot;
};

static inline struct amount member_holds(const struct member *member)
{
    return (struct amount){member->millicpus, member->memory_bytes};
}

/* The devices that one node gives to a gang. */
struct share {
    const struct capacity *capacity;
    int64_t count;
};

/* Whether its processes may be alive. */
static inline bool member_is_up(const struct member *member)
{
    return member->state == MEMBER_ORDERED || member->state == MEMBER_PREPARED ||
           member->state == MEMBER_RUNNING;
}

/* Whether the node should have it: it is up, or its log bytes are on the way. */
static inline bool member_is_listed(const struct member *member)
{
    return member_is_up(member) || member->state == MEMBER_EXITED;
}

/* The member of a live attempt on this node; NULL: none. */
static inline struct member *member_on(const struct node *node, uint64_t attempt_id)
{
    for (struct member *member = node->members; member != NULL; member = member->next) {
        if (member->attempt->attempt_id == attempt_id) {
            return member;
        }
    }
    return NULL;
}

#endif
