/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses how others reach this host. First comes the full name, if it resolves to an address outside the
 * loopback, else the address of the interface of the default route. All other addresses and names follow.
 * Operators can set names with --host-name. */
#include "daemon/host_names.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define ELSEWHERE "192.0.2.1" /* reserved for documentation, so it has the default route */

void host_list_add(struct host_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcasecmp(list->items[i], name) == 0) {
            return;
        }
    }
    list->items = xrealloc(list->items, (list->count + 1) * sizeof list->items[0]);
    list->items[list->count++] = xstrdup(name);
}

void host_list_finish(struct host_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct host_list){0};
}

/* The address as text; NULL for addresses of the loopback or of a single link, which others cannot reach. */
static char *address_text(const struct sockaddr *address)
{
    char text[INET6_ADDRSTRLEN];
    if (address->sa_family == AF_INET) {
        const struct in_addr *four = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
        bool local = ntohl(four->s_addr) >> 24 == 127 || ntohl(four->s_addr) >> 16 == 0xa9fe;
        return local ? NULL : xstrdup(inet_ntop(AF_INET, four, text, sizeof text));
    }
    if (address->sa_family == AF_INET6) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        bool local = IN6_IS_ADDR_LOOPBACK(six) || IN6_IS_ADDR_LINKLOCAL(six);
        return local ? NULL : xprintf("[%s]", inet_ntop(AF_INET6, six, text, sizeof text));
    }
    return NULL;
}

static void add_address(struct host_list *list, const struct sockaddr *address)
{
    autofree char *text = address_text(address);
    if (text != NULL) {
        host_list_add(list, text);
    }
}

/* Adds the source address that the kernel would choose; sends nothing. */
static void add_way_out(struct host_list *list)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(9)}, here;
    socklen_t length = sizeof here;
    autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, ELSEWHERE, &there.sin_addr);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&there, sizeof there) == 0 &&
        getsockname(fd, (struct sockaddr *)&here, &length) == 0) {
        add_address(list, (struct sockaddr *)&here);
    }
}

static void add_addresses(struct host_list *list, int family)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) {
        return;
    }
    for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
        if (one->ifa_addr != NULL && one->ifa_addr->sa_family == family) {
            add_address(list, one->ifa_addr);
        }
    }
    freeifaddrs(all);
}

/* The full name of the host; *ret_reachable: it resolves to an address that others may reach. */
static char *full_name(const char *host, bool *ret_reachable)
{
    const struct addrinfo wanted = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    *ret_reachable = false;
    if (getaddrinfo(host, NULL, &wanted, &found) != 0) {
        return xstrdup(host);
    }
    char *name = xstrdup(found->ai_canonname != NULL ? found->ai_canonname : host);
    for (const struct addrinfo *one = found; one != NULL; one = one->ai_next) {
        autofree char *text = address_text(one->ai_addr);
        *ret_reachable = *ret_reachable || text != NULL;
    }
    freeaddrinfo(found);
    return name;
}

void host_list_find(struct host_list *ret_list)
{
    char host[HOST_NAME_MAX + 1] = "localhost";
    bool reachable;
    *ret_list = (struct host_list){0};
    gethostname(host, sizeof host - 1);
    autofree char *full = full_name(host, &reachable);
    if (reachable && strchr(full, '.') != NULL) {
        host_list_add(ret_list, full);
    }
    add_way_out(ret_list);
    add_addresses(ret_list, AF_INET);
    host_list_add(ret_list, full);
    host_list_add(ret_list, host);
    add_addresses(ret_list, AF_INET6);
}
