/* SPDX-License-Identifier: Apache-2.0 */
/* Counts connections by address. One address never holds more than its limit, so others still find room.
 * An IPv6 address counts by its first 64 bits, because one host is given that many. */
#include "daemon/http/request/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text/table.h"
#include "proto/base/text/text.h"

#define NETWORK_BYTES 8 /* the half of an IPv6 address that names the network */

struct peer {
    uint8_t key[sizeof(struct in6_addr)];
    size_t count;
    bool told; /* that it is at its limit */
    UT_hash_handle hh;
};

struct peers {
    struct peer *table;
    size_t limit;
};

struct peers *peers_create(size_t limit)
{
    struct peers *peers = xzalloc(sizeof *peers);
    peers->limit = limit;
    return peers;
}

void peers_destroy(struct peers *peers)
{
    if (peers == NULL) {
        return;
    }
    struct peer *peer, *next;
    HASH_ITER (hh, peers->table, peer, next) {
        HASH_DEL(peers->table, peer);
        free(peer);
    }
    free(peers);
}

/* The key of an address; false for the loopback, and for addresses outside the internet. */
static bool key_of(const struct sockaddr *address, uint8_t key[sizeof(struct in6_addr)])
{
    memset(key, 0, sizeof(struct in6_addr));
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
        memcpy(key + NETWORK_BYTES, &four->sin_addr, sizeof four->sin_addr);
        return ntohl(four->sin_addr.s_addr) >> 24 != 127;
    }
    if (address->sa_family != AF_INET6) {
        return false;
    }
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(six)) {
        memcpy(key + NETWORK_BYTES, &six->s6_addr[12], 4);
        return six->s6_addr[12] != 127;
    }
    memcpy(key, six, NETWORK_BYTES);
    return !IN6_IS_ADDR_LOOPBACK(six);
}

static struct peer *find(const struct peers *peers, const uint8_t key[sizeof(struct in6_addr)])
{
    struct peer *peer;
    HASH_FIND(hh, peers->table, key, sizeof(struct in6_addr), peer);
    return peer;
}

static void address_text(const uint8_t key[sizeof(struct in6_addr)], char out[INET6_ADDRSTRLEN])
{
    static const uint8_t none[NETWORK_BYTES];
    bool four = memcmp(key, none, NETWORK_BYTES) == 0;
    inet_ntop(four ? AF_INET : AF_INET6, four ? key + NETWORK_BYTES : key, out, INET6_ADDRSTRLEN);
}

void peers_name(const struct sockaddr *address, char out[INET6_ADDRSTRLEN])
{
    uint8_t key[sizeof(struct in6_addr)];
    if (key_of(address, key)) {
        address_text(key, out);
    } else {
        stpcpy(out, "loopback");
    }
}

bool peers_allow(const struct peers *peers, const struct sockaddr *address)
{
    uint8_t key[sizeof(struct in6_addr)];
    struct peer *peer = key_of(address, key) ? find(peers, key) : NULL;
    if (peer == NULL || peer->count < peers->limit) {
        return true;
    }
    if (!peer->told) {
        char text[INET6_ADDRSTRLEN];
        address_text(peer->key, text);
        log_warning("connection refuse", "address=%s connections=%zu", text, peer->count);
        peer->told = true;
    }
    return false;
}

struct peer *peers_take(struct peers *peers, const struct sockaddr *address)
{
    uint8_t key[sizeof(struct in6_addr)];
    if (!key_of(address, key)) {
        return NULL;
    }
    struct peer *peer = find(peers, key);
    if (peer == NULL) {
        peer = xzalloc(sizeof *peer);
        memcpy(peer->key, key, sizeof key);
        HASH_ADD(hh, peers->table, key, sizeof peer->key, peer);
    }
    peer->count++;
    return peer;
}

void peers_give(struct peers *peers, struct peer *peer)
{
    if (peer == NULL) {
        return;
    }
    peer->count--;
    peer->told = peer->told && peer->count >= peers->limit / 2;
    if (peer->count == 0) {
        HASH_DEL(peers->table, peer);
        free(peer);
    }
}
