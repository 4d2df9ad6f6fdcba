/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP side of the controller: one thread that parses, limits, authenticates and reads, and hands every
 * change to the writer. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdint.h>

#include "daemon/http/base/server_config.h"
#include "proto/base/err.h"

struct server;

/* Binds and opens all it needs; nothing is answered before server_run. Ignores SIGPIPE and raises
 * RLIMIT_NOFILE for the process. */
struct server *server_open(const struct server_config *config, struct err *err);

/* The port that it listens on. */
uint16_t server_port(const struct server *server);

/* Serves until it is asked to stop; then answers open requests, within CLOSE_LINGER_MS. Sets *err with
 * SERVER_END_FAILED only. */
enum server_end server_run(struct server *server, struct err *err);

/* Begins to end: waiting requests are answered, then server_run returns. The first reason counts. */
void server_stop(struct server *server, enum server_end end);

/* Closes all connections. Before writer_close, for requests may be under way to the writer. Takes NULL. */
void server_close(struct server *server);

#endif
