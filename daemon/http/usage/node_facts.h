/* SPDX-License-Identifier: Apache-2.0 */
/* What people are told of a node and is in no column of its row: its state by its heartbeats, and its GPUs as
 * counts. */
#ifndef HTTP_NODE_FACTS_H
#define HTTP_NODE_FACTS_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/core/model/rows.h"
#include "proto/states.h"

struct node_used;
struct server;

struct node_facts {
    enum node_state state;    /* SUSPECT when it has missed its heartbeats */
    int64_t heartbeat_age_ms; /* -1: none since the controller started */
    const char *gpu_type;     /* the only type, or "mixed"; NULL: it has no devices. Borrowed from devices */
    int64_t gpus, free_gpus;
    int64_t unavailable_gpus; /* that no job can get */
    const char *unavailable;  /* why the first of these is so; or NULL. Borrowed from devices */
};

/* devices are those of the row, parsed. */
void node_facts_read(const struct server *server, const struct node_row *row, const json_t *devices,
                     const struct node_used *used, struct node_facts *ret_facts);

#endif
