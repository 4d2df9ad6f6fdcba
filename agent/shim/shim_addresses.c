/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the variables that tell ranks the addresses of their gang's nodes: GPUCTL_NODE_ADDRESSES, and
 * variables such as CLUSTER_SPEC that name each node with a port. The launch file holds these as patterns
 * with "@0", "@1" and so on in place of nodes, because the addresses are known only at the start. Every node
 * gets an address: where the agent knows none, node 0 gets the master's, and each other node a name with its
 * number. */
#include "agent/shim/shim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define WORST_ADDRESS 64 /* an IPv6 address with brackets and port, and its comma */

/* The list that the agent wrote: "ADDRESS:PORT,ADDRESS:PORT", by node rank; or an empty text. The caller
 * frees it. */
static char *list_read(void)
{
    const size_t room = LIMIT_ADDRESSED_NODES * WORST_ADDRESS;
    char *list = xalloc(room + 1);
    autoclose int fd = open(SHIM_ADDRESSES_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, list, room) : 0;
    list[got > 0 ? got : 0] = '\0';
    return list;
}

/* The item with this number, not NUL-terminated; NULL: the list has fewer items. */
static const char *item_find(const char *list, unsigned long number, size_t *ret_length)
{
    for (; number > 0 && list != NULL; number--) {
        list = strchr(list, ',');
        list = list != NULL ? list + 1 : NULL;
    }
    *ret_length = list != NULL ? strcspn(list, ",") : 0;
    return *ret_length > 0 ? list : NULL;
}

static void node_put(struct text *out, const struct addresses *addresses, unsigned long number)
{
    size_t length;
    const char *item = item_find(addresses->list, number, &length);
    if (item != NULL && length > 2 && memcmp(item + length - 2, ":0", 2) == 0) { /* the port is not known */
        text_printf(out, "%.*s%s", (int)length - 1, item, addresses->port);
    } else if (item != NULL) {
        text_printf(out, "%.*s", (int)length, item);
    } else if (number == 0) {
        text_printf(out, strchr(addresses->master, ':') != NULL ? "[%s]:%s" : "%s:%s", addresses->master,
                    addresses->port);
    } else {
        text_printf(out, "node-%lu:%s", number, addresses->port);
    }
}

/* NAME=VALUE with each "@N" replaced. */
static char *pattern_fill(const struct addresses *addresses, const char *pattern)
{
    struct text out = {0};
    for (const char *at = pattern; *at != '\0';) {
        if (at[0] == '"' && at[1] == '@') {
            char *end;
            text_append(&out, "\"");
            node_put(&out, addresses, strtoul(at + 2, &end, 10));
            at = end;
        } else {
            text_append_bytes(&out, at++, 1);
        }
    }
    return text_take(&out);
}

/* NAME=ADDRESS,ADDRESS: without ports, and without the brackets of IPv6 addresses. */
static char *hosts_list(const char *list)
{
    struct text hosts = {0};
    text_append(&hosts, "GPUCTL_NODE_ADDRESSES=");
    for (const char *at = list; *at != '\0';) {
        size_t length = strcspn(at, ",");
        size_t host = length;
        while (host > 0 && at[host] != ':') {
            host--;
        }
        bool bracketed = at[0] == '[' && host >= 2;
        text_append_bytes(&hosts, at + bracketed, host - 2 * bracketed);
        at += length;
        if (*at == ',') {
            text_append_bytes(&hosts, at++, 1);
        }
    }
    return text_take(&hosts);
}

void addresses_put(const struct launch *launch, const char *master, const char *port, char **added,
                   size_t *count)
{
    autofree char *list = list_read();
    const struct addresses addresses = {.list = list, .master = master, .port = port};
    if (*list != '\0') {
        added[(*count)++] = hosts_list(list);
    }
    for (size_t i = 0; i < launch->pattern_count; i++) {
        added[(*count)++] = pattern_fill(&addresses, launch->patterns[i]);
    }
}
