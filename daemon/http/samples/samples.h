/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes use: the latest sample of each registered node in memory, and those of a day on the disk. None
 * of it passes the writer. */
#ifndef HTTP_SAMPLES_H
#define HTTP_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/blob/worker.h"
#include "daemon/http/base/state.h"
#include "proto/base/text/table.h"
#include "proto/wire/messages.h"

/* A GPU of a node, as the node registered it, and its latest sample. */
struct node_gpu {
    int64_t index;
    char *uuid; /* owned */
    struct gpu_sample use;
    bool unavailable; /* no job can get it, as the node says */
};

struct node_sample {
    char *node;            /* owned */
    struct node_gpu *gpus; /* owned; none: CPU slots */
    size_t gpu_count;
    double cpu_percent; /* -1 of what is not known */
    int64_t memory_bytes, memory_total_bytes;
    int64_t heard_ms; /* CLOCK_BOOTTIME; -1: none yet */
    int64_t window;   /* of the last record: its time by SAMPLE_RING_STEP_MS */
    size_t place;     /* among the items */
    UT_hash_handle hh;
};

struct samples {
    struct node_sample **items; /* owned; the last one takes the place of one that is removed */
    size_t count, room;
    struct node_sample *by_name;
    char *folder; /* owned */
    struct worker *worker;
    struct watch watch;
    size_t waiting; /* records that the worker has */
    bool failing;   /* the last record could not be written */
};

/* Makes the folder of the rings, and starts the thread that reads and writes them. */
bool samples_open(struct server *server, struct err *err);
void samples_close(struct server *server);

/* A node was registered, perhaps with other devices. */
void samples_register(struct server *server, const char *node);
/* A heartbeat of it was accepted. */
void samples_hear(struct server *server, const struct heartbeat_message *heartbeat);
/* It was removed: its ring is removed, too. */
void samples_forget(struct server *server, const char *node);

/* NULL: no sample of it came since the server was opened, or since it registered. */
struct node_sample *samples_find(const struct server *server, const char *node);
/* Whether its sample says something of now. */
bool samples_fresh(const struct server *server, const struct node_sample *sample);
/* How many records wait for the disk. */
size_t samples_waiting(const struct server *server);

#endif
