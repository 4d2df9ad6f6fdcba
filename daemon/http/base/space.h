/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the controller's disk has room for more. */
#ifndef HTTP_SPACE_H
#define HTTP_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct server;
struct space;

/* Reads the server's configuration; the server has its clock and deadlines already. */
struct space *space_create(struct server *server);
void space_destroy(struct space *space);

/* Calls when_low each time that the disk is looked at and has little more than its margin. */
void space_when_low(struct space *space, void (*when_low)(struct server *server));

/* Asks the file system how much is free; -1: it cannot say. */
int64_t space_free(const struct space *space);
/* The space that must stay free. */
int64_t space_margin(const struct space *space);

/* true when something of length bytes may be taken in that people add; ERR_DISK_FULL when less than the
 * margin would be left, or the disk was full and has not been given room yet. */
bool space_allows(struct space *space, int64_t length, struct err *err);

/* The same for output of ranks, which the nodes keep meanwhile. Its margin is larger, so that a flood of
 * output stops before submissions do. */
bool space_allows_output(struct space *space, int64_t length, struct err *err);

/* The same for tracking data of running jobs, with half the margin: it is small, and the jobs cannot keep it.
 */
bool space_allows_tracking(struct space *space, int64_t length, struct err *err);

/* The disk was full: from the moment when the reserve file is given up until it is there again. */
bool space_is_full(const struct space *space);

/* Looks after the reserve file; costs nothing while it is whole. Called in each turn of the loop. */
void space_tend(struct space *space);

#endif
