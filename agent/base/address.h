/* SPDX-License-Identifier: Apache-2.0 */
/* Which of this host's addresses and interfaces leads where. */
#ifndef AGENT_ADDRESS_H
#define AGENT_ADDRESS_H

#include <stdbool.h>

#include "proto/base/err.h"

#define ADDRESS_BYTES   64 /* a numeric address of either family, with its terminator */
#define INTERFACE_BYTES 16 /* IFNAMSIZ */

/* The numeric address of a host name or number. Asks the name service, so it may wait: only at the start. */
bool address_resolve(const char *host, char out[ADDRESS_BYTES], struct err *err);

/* This host's own address on the route to a numeric address. */
bool address_towards(const char *address, char out[ADDRESS_BYTES]);

/* The interface on the route to a numeric address: the one that has the address where it is our own. */
bool address_interface(const char *address, char out[INTERFACE_BYTES]);

/* Whether a numeric address or a name means this host itself. */
bool address_is_loopback(const char *host);

#endif
