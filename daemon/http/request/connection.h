/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: whose turn it is on it, and how long a client may take when it is the client's. */
#ifndef HTTP_CONNECTION_H
#define HTTP_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <microhttpd.h>

struct connection;
struct request;
struct server;

enum connection_phase {
    CONNECTION_HEAD,  /* new, or a request has begun: the rest of its first line and headers is to come */
    CONNECTION_IDLE,  /* a request was answered; the next may come */
    CONNECTION_BODY,  /* a body is to come */
    CONNECTION_OURS,  /* nothing is expected of the client */
    CONNECTION_REPLY, /* the client is to read */
};

/* Called by the HTTP library: before it accepts a connection, and at the beginning and end of each. closure
 * is the server. */
enum MHD_Result connection_accept(void *closure, const struct sockaddr *address, socklen_t length);
void connection_notify(void *closure, struct MHD_Connection *library, void **slot,
                       enum MHD_ConnectionNotificationCode code);

/* The connection that a request came on. It lives longer than its requests. */
struct connection *connection_of(struct MHD_Connection *library);
/* The request that is under way on it; NULL: none. */
struct request *connection_request(const struct connection *connection);
void connection_serve(struct connection *connection, struct request *request);
/* Whether the client has ended its side. The library does not see this while a request waits. */
bool connection_client_left(const struct connection *connection);
void connection_enter(struct connection *connection, enum connection_phase phase);

/* For server.c: begins to look, once the deadlines are there. */
void connections_open(struct server *server);

#endif
