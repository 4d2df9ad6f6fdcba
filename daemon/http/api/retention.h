/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of retention: by the clock, when the disk gets low, and when an administrator asks. */
#ifndef HTTP_RETENTION_H
#define HTTP_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct server;

/* Begins the rounds, where there are logs and blobs. */
bool retention_open(struct server *server, struct err *err);
/* Ends the round that runs, soon. */
void retention_close(struct server *server);

/* Runs a round within RETENTION_SOON_MS, unless the last one has ended within this time. */
void retention_soon(struct server *server, int64_t not_within_ms);

/* What is on the disk, as of the last round that has counted it. */
struct retention_sizes {
    int64_t log_bytes, blob_bytes; /* files of output and metrics, and of large blobs; -1: not known yet */
    int64_t log_share_bytes;       /* above this the oldest output goes; 0: never */
};
struct retention_sizes retention_sizes(const struct server *server);

#endif
