/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the allocations of live attempts, node by node, in pieces and never by the writer. */
#include "daemon/http/usage/holders.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/table.h"
#include "proto/limits_controller.h"

struct holder_node {
    char *node; /* owned */
    struct holding *first;
    UT_hash_handle hh;
};

struct holders {
    struct holder_node *by_node;
    int64_t made_ms;
    int64_t job_key, node_rank; /* of the last allocation */
};

bool holders_fresh(const struct server *server)
{
    return server->holders != NULL && server->now_ms - server->holders->made_ms < HOLDERS_FRESH_MS;
}

struct holders *holders_begin(void)
{
    struct holders *holders = xzalloc(sizeof *holders);
    holders->node_rank = -1;
    return holders;
}

static void holding_free(struct holding *holding)
{
    free(holding->job_id);
    free(holding->job_name);
    free(holding->owner);
    free(holding->project);
    free(holding);
}

void holders_destroy(struct holders *holders)
{
    struct holder_node *node, *next_node;
    if (holders == NULL) {
        return;
    }
    HASH_ITER (hh, holders->by_node, node, next_node) {
        HASH_DEL(holders->by_node, node);
        while (node->first != NULL) {
            struct holding *holding = node->first;
            node->first = holding->next;
            holding_free(holding);
        }
        free(node->node);
        free(node);
    }
    free(holders);
}

static struct holder_node *find_node(const struct holders *holders, const char *name)
{
    struct holder_node *node;
    HASH_FIND_STR(holders->by_node, name, node);
    return node;
}

static struct holder_node *need_node(struct holders *holders, const char *name)
{
    struct holder_node *node = find_node(holders, name);
    if (node == NULL) {
        node = xzalloc(sizeof *node);
        node->node = xstrdup(name);
        HASH_ADD_KEYPTR(hh, holders->by_node, node->node, strlen(node->node), node);
    }
    return node;
}

static void read_devices(const char *text, struct holding *holding)
{
    for (size_t i = 0; i < holding->device_count; i++) {
        char *end;
        holding->devices[i] = strtoll(text, &end, 10);
        text = end + (*end == ',');
    }
}

static void add(struct holders *holders, const struct allocation *allocation)
{
    size_t count = (size_t)allocation->gpus;
    struct holding *holding = xzalloc(sizeof *holding + count * sizeof holding->devices[0]);
    struct holder_node *node = need_node(holders, allocation->node);
    holding->job_id = xstrdup(allocation->job_id);
    holding->job_name = allocation->job_name != NULL ? xstrdup(allocation->job_name) : NULL;
    holding->owner = xstrdup(allocation->owner);
    holding->project = xstrdup(allocation->project);
    holding->since_ms = allocation->since_ms;
    holding->first_rank = allocation->first_rank;
    holding->local_ranks = allocation->local_ranks;
    holding->device_count = count;
    read_devices(allocation->devices, holding);
    holding->next = node->first;
    node->first = holding;
}

enum pieces_state holders_step(struct server *server, struct holders **collection, struct err *err)
{
    struct holders *holders = *collection;
    autorows struct rows rows =
        reader_allocations(server->reader, holders->job_key, holders->node_rank, HOLDERS_PIECE, err);
    struct allocation allocation;
    int count = 0;
    for (; rows_allocation(&rows, &allocation); count++) {
        add(holders, &allocation);
        holders->job_key = allocation.job_key;
        holders->node_rank = allocation.node_rank;
    }
    if (rows.failed || count == HOLDERS_PIECE) {
        return rows.failed ? PIECES_FAILED : PIECES_MORE;
    }
    holders->made_ms = server->now_ms;
    holders_destroy(server->holders);
    server->holders = give(*collection);
    return PIECES_DONE;
}

/* Where the device stands among those of the attempt; their number: it is none of them. */
static size_t place_of(const struct holding *holding, int64_t index)
{
    size_t i = 0;
    while (i < holding->device_count && holding->devices[i] != index) {
        i++;
    }
    return i;
}

const struct holding *holders_find(const struct server *server, const char *node, int64_t index)
{
    const struct holder_node *found = server->holders != NULL ? find_node(server->holders, node) : NULL;
    const struct holding *holding = found != NULL ? found->first : NULL;
    while (holding != NULL && place_of(holding, index) == holding->device_count) {
        holding = holding->next;
    }
    return holding;
}

int64_t holding_rank(const struct holding *holding, int64_t index)
{
    size_t place = place_of(holding, index);
    if (place == holding->device_count || holding->local_ranks <= 0) {
        return -1;
    }
    return holding->first_rank + (int64_t)place * holding->local_ranks / (int64_t)holding->device_count;
}
