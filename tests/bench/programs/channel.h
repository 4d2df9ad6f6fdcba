/* SPDX-License-Identifier: Apache-2.0 */
/* Many keep-alive connections of one client to one server on loopback: HTTP/1.1 over plain TCP or TLS, never
 * blocking, one request at a time each. */
#ifndef BENCH_CHANNEL_H
#define BENCH_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct channel_set;
struct channel;

struct channel_hooks {
    void (*answered)(void *closure, int status, const char *body, size_t length); /* may ask again */
    void (*lost)(void *closure); /* the connection could not be made or broke, and with it the request */
};

/* The token is borrowed. The server's certificate is not checked. Ends the program on failure. */
struct channel_set *channel_set_create(int port, const char *token, bool tls);
void channel_set_destroy(struct channel_set *set);

/* Does what can be done without waiting, after a wait of at most so many milliseconds; true: there is
 * something to read on stdin. */
bool channel_set_run(struct channel_set *set, int wait_ms);

/* A channel that is not connected yet. The hooks and the closure are borrowed. */
struct channel *channel_create(struct channel_set *set, const struct channel_hooks *hooks, void *closure);
void channel_destroy(struct channel *channel);

/* POSTs the document, which it takes over; connects first where that is needed. The channel must be idle. */
void channel_post(struct channel *channel, const char *path, json_t *document);
bool channel_is_idle(const struct channel *channel);

#endif
