/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the day's nodes alone. */
#ifndef SIM_DAY_NODES_PARTS_H
#define SIM_DAY_NODES_PARTS_H

#include "proto/wire/messages.h"
#include "tests/sim/day/nodes.h"

#define NODE_NAME_BYTES 48

struct node {
    struct cluster *cluster;
    char name[NODE_NAME_BYTES], address[NODE_NAME_BYTES];
    const struct model *model;
    int64_t gpus, boots;
    bool reserved;
    bool deaf;                  /* it says and hears nothing */
    int64_t fault_ms;           /* from then on GPU 2 is broken; 0: it is not */
    struct building *buildings; /* environments that it was told to stage */
    struct piece *pieces;
};

struct cluster {
    struct day *day;
    struct node *nodes;
    size_t count;
    int64_t heartbeat_ms, heartbeats;
    struct run *runs;
    json_t *held; /* {owners, projects, types} */
};

/* Fills what each report of the node begins with. */
struct report_message node_report(const struct piece *piece, enum report_kind kind);
/* Sends it, unless the node is deaf. */
void node_say(const struct piece *piece, const struct report_message *report);

/* --- pieces.c ------------------------------------------------------------------------------------------- */

void pieces_ordered(struct node *node, const struct node_orders *orders);
/* All that runs on the node is gone at once. */
void pieces_vanish(struct node *node);
void pieces_free(struct cluster *cluster);

#endif
