/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP library: it reads and writes HTTP on the sockets of clients. It has no thread; the loop of
 * server.c runs it. */
#ifndef HTTP_LIBRARY_H
#define HTTP_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include <microhttpd.h>

#include "proto/base/err.h"

struct library;
struct server;

/* Serves up to `connections` clients of the listening socket at once, and takes the socket over. `call` gets
 * the requests, and the server as its closure. The server's loop must be open. NULL with *err. */
struct library *library_open(struct server *server, MHD_AccessHandlerCallback call, int listener,
                             size_t connections, struct err *err);
/* Call it when no request is suspended. NULL has no effect. */
void library_close(struct library *library);

/* Serves what is ready, and what was resumed. */
void library_run(struct library *library);
/* Whether it has work for which no event comes. */
bool library_has_work(const struct library *library);

/* Resumes a connection that was suspended. */
void library_resume(struct library *library, struct MHD_Connection *connection);

/* Closes a connection that was upgraded. */
void library_end_upgrade(struct library *library, struct MHD_Connection *connection,
                         struct MHD_UpgradeResponseHandle *handle);

/* Accepts no more connections. */
void library_quiesce(struct library *library);

size_t library_connections(const struct library *library);

#endif
