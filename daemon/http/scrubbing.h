/* SPDX-License-Identifier: Apache-2.0 */
/* Has the pages of the database checked once while the controller serves. */
#ifndef HTTP_SCRUBBING_H
#define HTTP_SCRUBBING_H

#include <stdbool.h>

#include "daemon/http/base/state.h"

/* Begins the scrub. Damage ends the server like damage that a request meets. */
bool scrubbing_open(struct server *server, struct err *err);
/* Stops it where it is. */
void scrubbing_close(struct server *server);

#endif
