/* SPDX-License-Identifier: Apache-2.0 */
/* The socket that the server listens on. */
#ifndef HTTP_LISTENER_H
#define HTTP_LISTENER_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

/* Binds and listens; address is IPv4 or IPv6, port 0 any that is free. The file descriptor is the caller's;
 * -1 with *err. */
int listener_open(const char *address, uint16_t port, uint16_t *ret_port, struct err *err);

/* Raises the limit of open files as far as it goes and says how many connections fit; 0 with *err when far
 * too few do. */
unsigned listener_connections(struct err *err);

#endif
