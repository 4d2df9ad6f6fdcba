/* SPDX-License-Identifier: Apache-2.0 */
/* How many connections each address holds. */
#ifndef HTTP_PEERS_H
#define HTTP_PEERS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct peers;
struct peer;

/* An address may hold limit connections. */
struct peers *peers_create(size_t limit);
/* All that were taken must have been given back. Takes NULL. */
void peers_destroy(struct peers *peers);

/* Whether one more connection from the address is within the limit. This host's own addresses of the loopback
 * have none: proxies and agents beside the controller speak for many. */
bool peers_allow(const struct peers *peers, const struct sockaddr *address);
/* The address as text, as it is counted; the same for all of the loopback and outside the internet. */
void peers_name(const struct sockaddr *address, char out[INET6_ADDRSTRLEN]);
/* Counts one more; NULL for those that are not counted. */
struct peer *peers_take(struct peers *peers, const struct sockaddr *address);
/* One less. Takes NULL. */
void peers_give(struct peers *peers, struct peer *peer);

#endif
