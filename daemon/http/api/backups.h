/* SPDX-License-Identifier: Apache-2.0 */
/* The backups that the controller makes of itself: by the clock, and when an administrator asks. */
#ifndef HTTP_BACKUPS_H
#define HTTP_BACKUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct server;

/* Where a shelf is configured: begins to keep it. */
bool backups_open(struct server *server, struct err *err);
/* When the newest backup on the shelf was made, wall clock; 0: there is none. */
int64_t backups_newest_ms(const struct server *server);
/* Stops the backup that is being made, if there is one. */
void backups_close(struct server *server);

#endif
