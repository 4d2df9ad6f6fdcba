/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of upgraded connections with TLS. The HTTP library would relay them itself, through what the
 * reply has left of the connection's memory: with libmicrohttpd 0.9.75 that is nothing, and then it moves
 * four bytes at a time. HTTP thread only. */
#ifndef HTTP_TLS_RELAY_H
#define HTTP_TLS_RELAY_H

#include <microhttpd.h>
#include <stdbool.h>

#include "proto/base/err.h"

struct server;
struct tls_relay;
struct tls_relays;

struct tls_relays *tls_relays_open(struct server *server, struct err *err);
/* Ends those that are left, with what they have not sent yet. */
void tls_relays_close(struct tls_relays *relays);
bool tls_relays_any(const struct tls_relays *relays);

/* Takes an upgraded connection over from the library. *ret_socket: what is written to it is sent, and what
 * comes can be read from it, until tls_relay_end. NULL: the connection has no TLS. */
struct tls_relay *tls_relay_begin(struct tls_relays *relays, struct MHD_Connection *connection,
                                  struct MHD_UpgradeResponseHandle *handle, int *ret_socket);
/* Closes the socket. The connection ends once all that was written to it has been sent, or
 * TLS_RELAY_FLUSH_MS later. */
void tls_relay_end(struct tls_relay *relay);

#endif
