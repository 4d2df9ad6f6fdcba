/* SPDX-License-Identifier: Apache-2.0 */
/* Streams into running jobs: a client and a node meet at a stream, and the controller joins their
 * connections. */
#ifndef HTTP_STREAMS_H
#define HTTP_STREAMS_H

#include <stdbool.h>

#include "proto/base/err.h"

struct server;

bool streams_open(struct server *server, struct err *err);
/* Ends all streams. To be called before the HTTP library is closed. */
void streams_close(struct server *server);
/* Whether there are any with connections, or the last bytes of one are still to be sent. */
bool streams_any(const struct server *server);
/* The server ends: so do all streams, as soon as the loop comes to it. */
void streams_stop(struct server *server);

#endif
