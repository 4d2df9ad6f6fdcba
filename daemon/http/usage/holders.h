/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds which devices: committed allocations by node. One collection serves everybody for
 * HOLDERS_FRESH_MS. */
#ifndef HTTP_HOLDERS_H
#define HTTP_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/http/request/pieces.h"
#include "proto/base/err.h"

struct holders;
struct server;

/* The devices that an attempt holds on a node. */
struct holding {
    char *job_id, *job_name; /* owned, as the next; the name may be NULL */
    char *owner, *project;
    int64_t since_ms; /* wall clock */
    int64_t first_rank, local_ranks;
    struct holding *next; /* on the same node */
    size_t device_count;
    int64_t devices[]; /* indices, in the order of the ranks */
};

/* Whether there is a collection that may be shown. */
bool holders_fresh(const struct server *server);

/* A collection that is being made. holders_step adds a piece to it; with the last one (PIECES_DONE) it
 * replaces the server's, and *collection is NULL. */
struct holders *holders_begin(void);
enum pieces_state holders_step(struct server *server, struct holders **collection, struct err *err);
void holders_destroy(struct holders *holders); /* takes NULL */

/* The holding of a device, or NULL; borrowed until the next holders_step. */
const struct holding *holders_find(const struct server *server, const char *node, int64_t index);
/* The rank whose device this is when ranks share the devices of a node evenly; -1: the attempt has none here.
 */
int64_t holding_rank(const struct holding *holding, int64_t index);

#endif
