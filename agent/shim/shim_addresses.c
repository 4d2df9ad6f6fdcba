/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the variables that tell ranks the addresses of their gang's nodes: GPUCTL_NODE_ADDRESSES, and
 * variables such as CLUSTER_SPEC that name each node with a port. The launch file holds these as patterns
 * with "@0", "@1" and so on in place of nodes, because the addresses are known only at the start. Every node
 * gets an address: where the agent knows none, node 0 gets the master's, and each other node a name with its
 * number. */
#include "agent/shim/shim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORST_ADDRESS 64 /* an IPv6 address with brackets and port, and its comma */

/* The list that the agent wrote: "ADDRESS:PORT,ADDRESS:PORT", by node rank; or an empty text. The caller
 * frees it. */
static char *list_read(void)
{
    const size_t room = LIMIT_ADDRESSED_NODES * WORST_ADDRESS;
    char *list = shim_resize(NULL, room + 1, 1);
    int fd = open(SHIM_ADDRESSES_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, list, room) : 0;
    if (fd >= 0) {
        close(fd);
    }
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

static void node_put(FILE *out, const struct addresses *addresses, unsigned long number)
{
    size_t length;
    const char *item = item_find(addresses->list, number, &length);
    if (item != NULL && length > 2 && memcmp(item + length - 2, ":0", 2) == 0) { /* the port is not known */
        fprintf(out, "%.*s%s", (int)length - 1, item, addresses->port);
    } else if (item != NULL) {
        fprintf(out, "%.*s", (int)length, item);
    } else if (number == 0) {
        fprintf(out, strchr(addresses->master, ':') != NULL ? "[%s]:%s" : "%s:%s", addresses->master,
                addresses->port);
    } else {
        fprintf(out, "node-%lu:%s", number, addresses->port);
    }
}

/* NAME=VALUE with each "@N" replaced. */
static char *pattern_fill(const struct addresses *addresses, const char *pattern)
{
    char *filled = NULL;
    size_t size;
    FILE *out = open_memstream(&filled, &size);
    if (out == NULL) {
        abort();
    }
    for (const char *at = pattern; *at != '\0';) {
        if (at[0] == '"' && at[1] == '@') {
            char *end;
            fputc('"', out);
            node_put(out, addresses, strtoul(at + 2, &end, 10));
            at = end;
        } else {
            fputc(*at++, out);
        }
    }
    if (fclose(out) != 0) {
        abort();
    }
    return filled;
}

/* NAME=ADDRESS,ADDRESS: without ports, and without the brackets of IPv6 addresses. */
static char *hosts_list(const char *list)
{
    char *hosts = shim_resize(NULL, strlen(list) + sizeof "GPUCTL_NODE_ADDRESSES=", 1);
    char *end = stpcpy(hosts, "GPUCTL_NODE_ADDRESSES=");
    for (const char *at = list; *at != '\0';) {
        size_t length = strcspn(at, ",");
        size_t host = length;
        while (host > 0 && at[host] != ':') {
            host--;
        }
        bool bracketed = at[0] == '[' && host >= 2;
        end = mempcpy(end, at + bracketed, host - 2 * bracketed);
        at += length;
        if (*at == ',') {
            *end++ = *at++;
        }
    }
    *end = '\0';
    return hosts;
}

void addresses_put(const struct launch *launch, const char *master, const char *port, char **added,
                   size_t *count)
{
    char *list = list_read();
    const struct addresses addresses = {.list = list, .master = master, .port = port};
    if (*list != '\0') {
        added[(*count)++] = hosts_list(list);
    }
    for (size_t i = 0; i < launch->pattern_count; i++) {
        added[(*count)++] = pattern_fill(&addresses, launch->patterns[i]);
    }
    free(list);
}
