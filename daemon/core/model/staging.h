/* SPDX-License-Identifier: Apache-2.0 */
/* Environments that jobs need on their nodes, their parts, and which node has them. */
#ifndef CORE_MODEL_STAGING_H
#define CORE_MODEL_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/text/table.h"

struct node;

enum copy_state {
    COPY_FREE,    /* may be ordered; it may have failed before */
    COPY_ORDERED, /* ordered, without an answer yet */
    COPY_READY,
    COPY_HELD, /* failed, and not ordered again for a while */
};

/* An environment on one node. */
struct environment_copy {
    struct environment *environment;
    struct node *node;
    enum copy_state state;
    bool known;                           /* of FREE: it was ready, and only has to look again */
    int64_t failures;                     /* in a row */
    int64_t failed_ms, hold_until_ms;     /* of HELD; until NEVER: until the agent restarts */
    char *text;                           /* of HELD: the reason; owned */
    struct environment_copy *prev, *next; /* of the node */
    UT_hash_handle hh;                    /* of the environment, by node */
};

/* A part of environments that takes a node long: an image, packages, an input. */
struct environment_part {
    char *key;                            /* owned */
    size_t environment_count;             /* environments with it; 0: idle */
    struct part_holder *holders;          /* by node; in order of creation */
    struct environment_part *prev, *next; /* idle ones, longest idle first */
    UT_hash_handle hh;
};

/* A node that had the part when it was ready for an environment. */
struct part_holder {
    struct environment_part *part;
    struct node *node;
    struct part_holder *prev, *next; /* of the node */
    UT_hash_handle hh;               /* of the part, by node */
};

/* Packages and blobs that jobs need on their nodes. */
struct environment {
    char *key, *text;                /* owned */
    size_t job_class_count;          /* job classes with this environment; 0: idle */
    struct job_class *job_classes;   /* the same, as a list */
    size_t ordered_count;            /* of its copies */
    struct environment_copy *copies; /* by node; in order of creation */
    struct environment_part **parts; /* owned, as an array */
    size_t part_count;
    struct environment *prev, *next; /* idle ones, longest idle first */
    bool unpinned;                   /* its inputs may change at their sources */
    bool changed;                    /* its copies, or their nodes, since the last pass */
    struct environment *prev_changed, *next_changed;
    UT_hash_handle hh;
};

#endif
