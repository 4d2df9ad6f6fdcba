/* SPDX-License-Identifier: Apache-2.0 */
/* A node with its devices, and a time in which nodes get no work. */
#ifndef CORE_MODEL_NODE_H
#define CORE_MODEL_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/model/rows.h"
#include "proto/base/text/table.h"
#include "proto/spec/amounts.h"
#include "proto/states.h"

struct capacity;
struct environment_copy;
struct member;
struct part_holder;

/* One device of a node. */
struct node_device {
    int64_t index;
    char *uuid, *type;
    int64_t memory_bytes;
    int64_t group;             /* devices near each other share it; -1: unknown */
    struct member *holder;     /* NULL: free */
    const char *unavailable;   /* why no job can get it, from the agent; NULL: it is available */
    struct capacity *capacity; /* NULL: not offered, because the node is LOST or the device retired */
    bool retired;              /* the node no longer has it; it goes when its holder goes */
};

struct label {
    char *key, *value; /* owned */
};

enum contact { CONTACT_FRESH, CONTACT_SILENT };

struct node {
    char *name;
    NODE_OWN_ROW(ROW_FIELD, ) /* texts are owned */
    const char
        *rival;     /* the agent_id of another agent that was refused, for this one lives; owned, or NULL */
    bool contested; /* this one was heard after that: two agents claim the node */
    struct label *labels; /* by key */
    size_t label_count;
    struct node_device *devices; /* by index */
    size_t device_count;
    struct capacity *capacities; /* its devices by type; none while LOST */
    int64_t offered_devices;     /* in these; of a LOST node, in the last ones */
    struct amount held;          /* by its members; what is left may be below 0 after its agent offers less */

    /* in the current scheduling pass */
    struct amount left_then; /* not held at the time that prospect.c looks at */
    struct amount spare;     /* where a reservation counts on it: what others may hold beyond its start */
    int64_t spare_until_ms;  /* that start */

    enum contact contact; /* SILENT is shown as SUSPECT */
    int64_t leaves_ms;    /* when it goes away next, because it expires or a window begins; or NEVER */
    int64_t stops_ms;     /* when its work must have ended; in the past while that lasts; or NEVER */
    bool away;            /* it has expired or is in a window: no new work */

    int64_t heartbeat_ms;  /* time of the last message */
    int64_t hold_until_ms; /* after it declined: no work before this; 0: none */
    int64_t declines;      /* in a row */

    struct member *members;          /* of live attempts, by attempt id */
    struct environment_copy *copies; /* the environments that it has, or is to have */
    size_t ordered_count;            /* ordered copies */
    struct part_holder *parts;       /* parts of environments that it has */
    uint64_t orders_version;         /* incarnation << 32 | number of changes since the start */
    bool dirty;                      /* its orders changed in this step */
    size_t index;                    /* in core->nodes */
    struct node *next_removed;
    uint32_t slot;
    UT_hash_handle hh;
};

/* What jobs may have of the node, and what of that is not held; 0: its agent does not say. */
static inline struct amount node_offers(const struct node *node)
{
    return (struct amount){node->millicpus, node->memory_bytes};
}
static inline struct amount node_left(const struct node *node)
{
    return amount_plus(node_offers(node), node->held, -1);
}

/* A time in which nodes get no work. */
struct window {
    union {
        struct window_row row; /* its texts are owned */
        struct {
            WINDOW_ROW(ROW_FIELD, )
        };
    };
    struct window *prev, *next; /* by from_ms, then id */
};

#endif
