/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of the day, which carry out orders, and what becomes of the programs that run there. */
#ifndef SIM_DAY_NODES_H
#define SIM_DAY_NODES_H

#include <jansson.h>

#include "tests/sim/day/day.h"
#include "tests/sim/day/plan.h"

#define NODE_GPUS 8

/* A type of GPU. */
struct model {
    const char *name;
    int64_t memory_bytes, watts;
};

struct node;

/* An attempt, as its nodes know it together. */
struct run {
    struct day *day;
    uint64_t attempt_id;
    const struct plan *plan;
    char job_id[ID_LENGTH + 1];
    int64_t attempt, task, nodes, gpus;
    const char *first_node;
    int64_t ordered_ms, begun_ms, ends_ms; /* of the world; begun_ms -1: not yet; ends_ms: by itself */
    int64_t pieces;                        /* that the controller wants */
    enum fate fate;                        /* of this attempt */
    int64_t failing_rank;                  /* -1: none */
    enum cause stopped;                    /* why it was told to stop; CAUSE_NONE: it was not */
    bool told;                             /* its remains are written */
    UT_hash_handle hh;
};

/* A node's part of an attempt. */
struct piece {
    struct node *node;
    struct run *run;
    int64_t node_rank, first_rank, local_ranks;
    int64_t devices[NODE_GPUS];
    bool starting, begun, stopping, over;
    int64_t busy_percent;                               /* of its GPUs, just now */
    int64_t out_bytes[NODE_GPUS], err_bytes[NODE_GPUS]; /* of its ranks, once they are over */
    lifetime life;
    struct piece *next;
};

struct cluster *nodes_create(struct day *day, int64_t heartbeat_ms);
void nodes_destroy(struct cluster *cluster);

/* The newest orders of a node. */
void nodes_ordered(struct cluster *cluster, const struct node_orders *orders);
/* The day is over: what still runs leaves what it has said so far. */
void nodes_stop(struct cluster *cluster);
/* Nodes: [{name, boot_id, agent_id, silent, gpus: [percent]}], and what they were held for, in milliseconds
 * of GPUs: {owners, projects, types}, each by name, of attempts that are over. */
json_t *nodes_tell(const struct cluster *cluster);

const char *node_name(const struct node *node);
const struct model *node_model(const struct node *node);

#endif
