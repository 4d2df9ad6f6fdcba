/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the kernel's routes for addresses: it connects a datagram socket, which sends nothing, and reads the
 * address from which the socket would send. */
#include "agent/base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netdb.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "proto/base/cleanup.h"

#define ANY_PORT        "9" /* the discard service; nothing is sent */
#define INTERFACES      64  /* that are looked at without getifaddrs */
#define KNOWN_ADDRESSES 16

static struct addrinfo *look_up(const char *host, int flags)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM, .ai_flags = flags};
    struct addrinfo *found = NULL;
    return getaddrinfo(host, ANY_PORT, &hints, &found) == 0 ? found : NULL;
}

static bool to_text(const struct sockaddr *address, socklen_t length, char out[ADDRESS_BYTES])
{
    return getnameinfo(address, length, out, ADDRESS_BYTES, NULL, 0, NI_NUMERICHOST) == 0;
}

bool address_resolve(const char *host, char out[ADDRESS_BYTES], struct err *err)
{
    struct addrinfo *found = look_up(host, 0);
    bool known = found != NULL && to_text(found->ai_addr, found->ai_addrlen, out);
    if (found != NULL) {
        freeaddrinfo(found);
    }
    return known || err_set(err, ERR_IO, "the host %s is not known", host);
}

bool address_towards(const char *address, char out[ADDRESS_BYTES])
{
    struct addrinfo *found = look_up(address, AI_NUMERICHOST);
    if (found == NULL) {
        return false;
    }
    struct sockaddr_storage own;
    socklen_t length = sizeof own;
    autoclose int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool known = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                 getsockname(fd, (struct sockaddr *)&own, &length) == 0 &&
                 to_text((struct sockaddr *)&own, length, out);
    freeaddrinfo(found);
    return known;
}

static socklen_t length_of(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static bool name_interface(const char *name, char out[INTERFACE_BYTES])
{
    strncpy(out, name, INTERFACE_BYTES - 1);
    out[INTERFACE_BYTES - 1] = '\0';
    return strlen(name) < INTERFACE_BYTES;
}

/* One system call for all IPv4 addresses of the host, where getifaddrs makes ten. False: it is none of
 * them, or there are too many. */
static bool find_four(const char *own, char out[INTERFACE_BYTES])
{
    struct in_addr wanted;
    struct ifreq requests[INTERFACES];
    struct ifconf list = {.ifc_len = sizeof requests, .ifc_req = requests};
    autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, own, &wanted) != 1 || fd < 0 || ioctl(fd, SIOCGIFCONF, &list) != 0) {
        return false;
    }
    for (size_t i = 0; i < (size_t)list.ifc_len / sizeof requests[0]; i++) {
        struct sockaddr_in address;
        memcpy(&address, &requests[i].ifr_addr, sizeof address);
        if (address.sin_addr.s_addr == wanted.s_addr) {
            return name_interface(requests[i].ifr_name, out);
        }
    }
    return false;
}

static bool find_any(const char *own, char out[INTERFACE_BYTES])
{
    char text[ADDRESS_BYTES];
    struct ifaddrs *list;
    bool found = false;
    if (getifaddrs(&list) != 0) {
        return false;
    }
    for (const struct ifaddrs *at = list; at != NULL && !found; at = at->ifa_next) {
        int family = at->ifa_addr != NULL ? at->ifa_addr->sa_family : AF_UNSPEC;
        if ((family == AF_INET || family == AF_INET6) &&
            to_text(at->ifa_addr, length_of(at->ifa_addr), text) && strcmp(text, own) == 0) {
            found = name_interface(at->ifa_name, out);
        }
    }
    freeifaddrs(list);
    return found;
}

static int hear_changes(void)
{
    const struct sockaddr_nl all = {.nl_family = AF_NETLINK,
                                    .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
                                                 RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE};
    autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    bool hears = fd >= 0 && bind(fd, (const struct sockaddr *)&all, sizeof all) == 0;
    return hears ? give_fd(&fd) : -1;
}

/* Whether interfaces, their addresses and routes are those of the last call. */
static bool is_unchanged(void)
{
    static int changes = -1; /* the kernel tells of them */
    char told[8192];
    if (changes < 0) {
        changes = hear_changes();
        return false;
    }
    bool unchanged = true;
    while (recv(changes, told, sizeof told, 0) >= 0 || errno == ENOBUFS || errno == EINTR) {
        unchanged = false;
    }
    return unchanged && errno == EAGAIN;
}

/* The ranks of a gang wait for this. Few addresses have rank 0 in turns. */
bool address_interface(const char *address, char out[INTERFACE_BYTES])
{
    static struct known {
        char address[ADDRESS_BYTES], interface[INTERFACE_BYTES];
    } known[KNOWN_ADDRESSES];
    static size_t next;
    char own[ADDRESS_BYTES];
    if (!is_unchanged()) {
        memset(known, 0, sizeof known);
    }
    for (size_t i = 0; i < KNOWN_ADDRESSES; i++) {
        if (*address != '\0' && strcmp(known[i].address, address) == 0) {
            return name_interface(known[i].interface, out);
        }
    }
    if (!address_towards(address, own) || !(find_four(own, out) || find_any(own, out))) {
        return false;
    }
    struct known *entry = &known[next++ % KNOWN_ADDRESSES];
    if (strlen(address) < ADDRESS_BYTES) {
        strcpy(entry->address, address);
        strcpy(entry->interface, out);
    }
    return true;
}

bool address_is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, host, &four) == 1) {
        return ntohl(four.s_addr) >> 24 == 127;
    }
    if (inet_pton(AF_INET6, host, &six) == 1) {
        return IN6_IS_ADDR_LOOPBACK(&six);
    }
    return strcmp(host, "localhost") == 0;
}
