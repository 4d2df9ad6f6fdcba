/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP library: the sockets of clients, and the reading and writing of HTTP. The loop of server.c runs
 * it; it has no thread. */
#ifndef HTTP_LIBRARY_H
#define HTTP_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include <microhttpd.h>

#include "proto/base/err.h"

struct library;
struct server;

/* Serves those who connect to the listening socket, which stays the caller's, up to `connections` at once;
 * call gets their requests, with the server. Its loop must be open. NULL with *err. */
struct library *library_open(struct server *server, MHD_AccessHandlerCallback call, int listener,
                             size_t connections, struct err *err);
/* No request may be suspended. NULL has no effect. */
void library_close(struct library *library);

/* Serves what is ready, and what was resumed. */
void library_run(struct library *library);
/* Whether it has work for which no event comes. */
bool library_has_work(const struct library *library);

/* Resumes a connection that was suspended. */
void library_resume(struct library *library, struct MHD_Connection *connection);

/* Accepts no more connections. */
void library_quiesce(struct library *library);

size_t library_connections(const struct library *library);

#endif
