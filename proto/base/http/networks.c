/* SPDX-License-Identifier: Apache-2.0 */
/* Judges addresses. It promises that no request which somebody else has named reaches what only this host or
 * its networks reach, unless the operator has allowed that network: loopback, private, link-local and
 * metadata addresses, those of carriers, multicast and reserved ones, also where IPv6 wraps an IPv4 address.
 */
#include "proto/base/http/networks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define V4(a, b, c, d)                                                                                       \
    {                                                                                                        \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d                                                 \
    }

/* What is not public, by the registries of special addresses of IANA. */
static const struct network refused[] = {
    {V4(0, 0, 0, 0), 96 + 8},       /* this host */
    {V4(10, 0, 0, 0), 96 + 8},      /* private */
    {V4(100, 64, 0, 0), 96 + 10},   /* carriers */
    {V4(127, 0, 0, 0), 96 + 8},     /* loopback */
    {V4(169, 254, 0, 0), 96 + 16},  /* link-local, and metadata of clouds */
    {V4(172, 16, 0, 0), 96 + 12},   /* private */
    {V4(192, 0, 0, 0), 96 + 24},    /* protocols */
    {V4(192, 0, 2, 0), 96 + 24},    /* documentation */
    {V4(192, 168, 0, 0), 96 + 16},  /* private */
    {V4(198, 18, 0, 0), 96 + 15},   /* benchmarks */
    {V4(198, 51, 100, 0), 96 + 24}, /* documentation */
    {V4(203, 0, 113, 0), 96 + 24},  /* documentation */
    {V4(224, 0, 0, 0), 96 + 4},     /* multicast */
    {V4(240, 0, 0, 0), 96 + 4},     /* reserved, and broadcast */
};
/* The only ones of IPv6 that are given to hosts of the Internet; all else is local or reserved. */
static const struct network global = {{0x20}, 3};
static const struct network global_refused[] = {
    {{0x20, 0x01}, 23},             /* protocols, with Teredo */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
    {{0x3f, 0xff}, 20},             /* documentation */
};
static const struct network mapped = {V4(0, 0, 0, 0), 96};
static const struct network sixtofour = {{0x20, 0x02}, 16};           /* then an address of IPv4 */
static const struct network translated = {{0, 0x64, 0xff, 0x9b}, 96}; /* likewise, at the end */

static bool covers(const struct network *network, const uint8_t address[16])
{
    unsigned whole = network->bits / 8, rest = network->bits % 8;
    return memcmp(network->address, address, whole) == 0 &&
           (rest == 0 || (network->address[whole] ^ address[whole]) >> (8 - rest) == 0);
}

static bool any_covers(const struct network *networks, size_t count, const uint8_t address[16])
{
    for (size_t i = 0; i < count; i++) {
        if (covers(&networks[i], address)) {
            return true;
        }
    }
    return false;
}

static void map(const void *four, uint8_t out[16])
{
    memcpy(out, mapped.address, 12);
    memcpy(out + 12, four, 4);
}

static bool is_public(const uint8_t address[16])
{
    uint8_t inner[16];
    if (covers(&mapped, address)) {
        return !any_covers(refused, sizeof refused / sizeof *refused, address);
    }
    if (covers(&translated, address)) {
        map(address + 12, inner);
        return is_public(inner);
    }
    if (covers(&sixtofour, address)) {
        map(address + 2, inner);
        return is_public(inner);
    }
    return covers(&global, address) &&
           !any_covers(global_refused, sizeof global_refused / sizeof *global_refused, address);
}

bool networks_allow(const struct networks *networks, const struct sockaddr *address)
{
    uint8_t bytes[16];
    if (address->sa_family == AF_INET) {
        struct sockaddr_in four;
        memcpy(&four, address, sizeof four);
        map(&four.sin_addr, bytes);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 six;
        memcpy(&six, address, sizeof six);
        memcpy(bytes, &six.sin6_addr, sizeof bytes);
    } else {
        return false;
    }
    return is_public(bytes) || any_covers(networks->items, networks->count, bytes);
}

/* --- the setting ---------------------------------------------------------------------------------------- */

static bool parse_one(const char *text, struct network *ret_network)
{
    const char *slash = strchr(text, '/');
    autofree char *address = slash != NULL ? xstrndup(text, (size_t)(slash - text)) : xstrdup(text);
    struct in_addr four;
    int64_t bits = 128;
    if (inet_pton(AF_INET, address, &four) == 1) {
        bits = 32;
        map(&four, ret_network->address);
    } else if (inet_pton(AF_INET6, address, ret_network->address) != 1) {
        return false;
    }
    const int64_t before = 128 - bits;
    if (slash != NULL && !text_to_int(slash + 1, 0, bits, &bits)) {
        return false;
    }
    ret_network->bits = (unsigned)(before + bits);
    return true;
}

bool networks_parse(const char *option, const char *list, struct networks *ret_networks, struct err *err)
{
    *ret_networks = (struct networks){0};
    while (list != NULL && *list != '\0') {
        list += strspn(list, " ");
        size_t length = strcspn(list, ", ");
        autofree char *one = xstrndup(list, length);
        if (ret_networks->count == LIMIT_NETWORKS) {
            return err_field(err, ERR_USAGE, option, "name larger networks",
                             "there are more than %d networks", LIMIT_NETWORKS);
        }
        if (!parse_one(one, &ret_networks->items[ret_networks->count++])) {
            return err_field(err, ERR_USAGE, option, "write 10.0.0.0/8,fd00::/8", "\"%.64s\" is no network",
                             one);
        }
        list += length;
        list += strspn(list, " ");
        list += *list == ',';
    }
    return true;
}
