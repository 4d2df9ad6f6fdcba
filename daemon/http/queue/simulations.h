/* SPDX-License-Identifier: Apache-2.0 */
/* What other policies would have made of the jobs that have ended. Simulations have a thread of their own,
 * which gives way to all others. One runs at a time, in turn between users. */
#ifndef HTTP_SIMULATIONS_H
#define HTTP_SIMULATIONS_H

#include <stdbool.h>

#include "proto/base/err.h"

struct server;

bool simulations_open(struct server *server, struct err *err);
/* After all requests have ended. Ends what runs. */
void simulations_close(struct server *server);

#endif
