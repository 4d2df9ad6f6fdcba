/* SPDX-License-Identifier: Apache-2.0 */
/* Finds damaged pages of a database before anybody asks for them. */
#ifndef STORE_SCRUB_H
#define STORE_SCRUB_H

#include <stdbool.h>

#include "daemon/store/database/connection.h"
#include "daemon/store/database/copy.h"

/* Reads every page of the database at path once, beside a controller that serves, on a connection of its own
 * and a little at a time. ERR_DAMAGED: a page that is in use is not as it was written. Returns true early
 * when the watch stops it. It holds no snapshot while all is well. */
bool scrub_run(const char *path, const struct copy_watch *watch, struct err *err);

/* Reads every page that is in use, and compares how they hang together (quick_check). */
bool scrub_whole(struct connection *connection, struct err *err);

#endif
