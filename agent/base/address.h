/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the addresses and interfaces of this host that lead to a given address. */
#ifndef AGENT_ADDRESS_H
#define AGENT_ADDRESS_H

#include <stdbool.h>

#include "proto/base/err.h"

#define ADDRESS_BYTES   64 /* a numeric address of either family, with its NUL */
#define INTERFACE_BYTES 16 /* IFNAMSIZ */

/* Resolves a host name or number to a numeric address. It may wait for the name service: use it only at the
 * start. */
bool address_resolve(const char *host, char out[ADDRESS_BYTES], struct err *err);

/* This host's own address on the route to a numeric address. */
bool address_towards(const char *address, char out[ADDRESS_BYTES]);

/* The interface on the route to a numeric address; for an address of this host, the interface that has it. */
bool address_interface(const char *address, char out[INTERFACE_BYTES]);

/* Whether a numeric address or a name means this host itself. */
bool address_is_loopback(const char *host);

#endif
