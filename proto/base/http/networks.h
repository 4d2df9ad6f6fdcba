/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses a program may connect to for others: for webhooks, and for inputs of jobs. */
#ifndef BASE_NETWORKS_H
#define BASE_NETWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "proto/base/err.h"
#include "proto/limits.h"

/* An IPv4 network is one of IPv6: ::ffff:0:0/96 and its bits. */
struct network {
    uint8_t address[16];
    unsigned bits;
};

struct networks {
    struct network items[LIMIT_NETWORKS];
    size_t count;
};

/* Reads "10.0.0.0/8,fd00::/8"; NULL: none. ERR_USAGE names the option. */
bool networks_parse(const char *option, const char *list, struct networks *ret_networks, struct err *err);

/* Whether the address is a public one, or in one of the networks. */
bool networks_allow(const struct networks *networks, const struct sockaddr *address);

#endif
