/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses webhooks may be sent to. */
#ifndef NOTIFY_NETWORKS_H
#define NOTIFY_NETWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "proto/base/err.h"
#include "proto/limits_controller.h"

/* An IPv4 network is one of IPv6: ::ffff:0:0/96 and its bits. */
struct network {
    uint8_t address[16];
    unsigned bits;
};

struct networks {
    struct network items[LIMIT_WEBHOOK_NETWORKS];
    size_t count;
};

/* Reads "10.0.0.0/8,fd00::/8"; NULL: none. ERR_USAGE names the option. */
bool networks_parse(const char *list, struct networks *ret_networks, struct err *err);

/* Whether a webhook may connect to the address: it is a public one, or in one of the networks. */
bool networks_allow(const struct networks *networks, const struct sockaddr *address);

#endif
