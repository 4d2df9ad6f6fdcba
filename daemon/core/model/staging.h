/* SPDX-License-Identifier: Apache-2.0 */
/* Environments that jobs need on their nodes, and which node has them. */
#ifndef CORE_MODEL_STAGING_H
#define CORE_MODEL_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/table.h"

struct node;

enum copy_state {
    COPY_FREE,    /* may be told; it may have failed before */
    COPY_ORDERED, /* told, and not answered */
    COPY_READY,
    COPY_HELD, /* failed, and is left alone for a while */
};

/* An environment as one node has it. */
struct environment_copy {
    struct environment *environment;
    struct node *node;
    enum copy_state state;
    int64_t failures;                     /* in a row */
    int64_t failed_ms, hold_until_ms;     /* of HELD; until NEVER: as long as the agent is what it is */
    char *text;                           /* of HELD: why; owned */
    struct environment_copy *prev, *next; /* of the node */
    UT_hash_handle hh;                    /* of the environment, by node */
};

/* What jobs need on their nodes. */
struct environment {
    char *key, *text;                /* owned */
    size_t job_class_count;          /* job classes with this environment; 0: it is idle */
    size_t ordered_count;            /* of its copies */
    struct environment_copy *copies; /* by node; in order of their making */
    struct environment *prev, *next; /* idle ones, the one longest idle first */
    UT_hash_handle hh;
};

#endif
