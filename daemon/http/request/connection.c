/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the time that clients may take. While it is the client's turn to send the head or body of a
 * request, or to read a reply, the connection is cut if the client does nothing, or is slower than
 * LIMIT_CLIENT_BYTES_S. So nobody holds connections and their memory by dripping bytes. The library alone
 * would wait for ever for a client that sends a byte a minute. The kernel counts the bytes. A connection
 * that waits for the controller is never cut. */
#include "daemon/http/request/connection.h"

#include <assert.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <utlist.h>

#include "daemon/http/base/state.h"
#include "daemon/http/request/peers.h"
#include "daemon/http/request/request.h"
#include "proto/base/log.h"
#include "proto/limits.h"

#define NOT_COUNTED UINT64_MAX

struct connection {
    struct server *server;
    struct request *request; /* under way; NULL: none */
    struct peer *peer;
    int fd;
    enum connection_phase phase;
    bool cut;
    bool left;        /* the client had ended its side in the middle of a body when we looked last */
    int64_t since_ms; /* of the phase, or of the count */
    uint64_t count;   /* bytes that the client had moved then; NOT_COUNTED: to be asked for */
    struct connection *prev, *next;
};

/* --- looking -------------------------------------------------------------------------------------------- */

static const char *phase_name(enum connection_phase phase)
{
    switch (phase) {
    case CONNECTION_HEAD:
        return "head";
    case CONNECTION_IDLE:
        return "idle";
    case CONNECTION_BODY:
        return "body";
    case CONNECTION_REPLY:
        return "reply";
    case CONNECTION_OURS:
        break;
    }
    return "none";
}

/* The library sees the end of the connection and closes it; the kernel drops at once all bytes that the
 * client has not read, instead of keeping them for minutes. */
static void cut(struct connection *connection)
{
    const struct linger none = {.l_onoff = 1, .l_linger = 0};
    log_debug("connection cut", "phase=%s ms=%lld", phase_name(connection->phase),
              (long long)(connection->server->now_ms - connection->since_ms));
    connection->cut = true;
    setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    shutdown(connection->fd, SHUT_RDWR);
}

/* The bytes that the client has sent, or has taken, since the connection began. */
static uint64_t count_moved(const struct connection *connection)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
        return 0;
    }
    return connection->phase == CONNECTION_BODY ? info.tcpi_bytes_received : info.tcpi_bytes_acked;
}

bool connection_client_left(const struct connection *connection)
{
    struct pollfd poll_fd = {.fd = connection->fd, .events = POLLRDHUP};
    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & (POLLRDHUP | POLLERR | POLLHUP)) != 0;
}

/* The client has left, and the library has read all there was: the rest of the body will not come. The
 * library waits for it all the same. */
static bool body_ended(const struct connection *connection)
{
    int unread = 0;
    return connection->phase == CONNECTION_BODY && connection_client_left(connection) &&
           ioctl(connection->fd, FIONREAD, &unread) == 0 && unread == 0;
}

static int64_t patience_ms(const struct connection *connection)
{
    int64_t patience_ms = connection->server->config.patience_ms;
    bool head_or_body = connection->phase == CONNECTION_HEAD || connection->phase == CONNECTION_BODY;
    return head_or_body ? patience_ms : CLIENT_IDLE_FACTOR * patience_ms;
}

/* Over a whole span of patience the client must have moved its bytes. */
static void look_at_pace(struct connection *connection)
{
    int64_t now_ms = connection->server->now_ms;
    int64_t span_ms = now_ms - connection->since_ms;
    if (connection->count != NOT_COUNTED && span_ms < patience_ms(connection)) {
        return;
    }
    uint64_t count = count_moved(connection);
    if (connection->count != NOT_COUNTED &&
        count - connection->count < (uint64_t)(span_ms * LIMIT_CLIENT_BYTES_S / 1000)) {
        cut(connection);
        return;
    }
    connection->count = count;
    connection->since_ms = now_ms;
}

static void look_at(struct connection *connection)
{
    bool moves = connection->phase == CONNECTION_BODY || connection->phase == CONNECTION_REPLY;
    bool left = connection->left;
    if (connection->cut) {
        return;
    }
    if (!moves) {
        if (connection->server->now_ms - connection->since_ms >= patience_ms(connection)) {
            cut(connection);
        }
    } else if (connection->request != NULL && connection->request->suspended) {
        connection->count = NOT_COUNTED; /* the client waits for the next part of a stream */
    } else if ((connection->left = body_ended(connection)) && left) {
        cut(connection); /* at the second look: the bytes read at the first may have been the end of the body
                          */
    } else {
        look_at_pace(connection);
    }
}

static void look_due(struct deadline *deadline)
{
    struct server *server = deadline->closure;
    struct connection *connection, *next;
    DL_FOREACH_SAFE (server->watched, connection, next) {
        look_at(connection);
    }
    if (server->watched != NULL) {
        int64_t pause_ms = server->config.patience_ms / CLIENT_LOOKS;
        deadline_set(server->deadlines, deadline, server->now_ms + (pause_ms > 0 ? pause_ms : 1));
    }
}

void connections_open(struct server *server)
{
    server->look = (struct deadline){.due = look_due, .closure = server};
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void watch(struct connection *connection)
{
    struct server *server = connection->server;
    DL_APPEND(server->watched, connection);
    if (server->look.place == 0) {
        deadline_set(server->deadlines, &server->look,
                     server->now_ms + server->config.patience_ms / CLIENT_LOOKS);
    }
}

static void unwatch(struct connection *connection)
{
    DL_DELETE(connection->server->watched, connection);
}

void connection_enter(struct connection *connection, enum connection_phase phase)
{
    if (phase == CONNECTION_OURS && connection->phase != CONNECTION_OURS) {
        unwatch(connection);
    } else if (phase != CONNECTION_OURS && connection->phase == CONNECTION_OURS) {
        watch(connection);
    }
    connection->phase = phase;
    connection->left = false;
    connection->since_ms = connection->server->now_ms;
    connection->count = NOT_COUNTED;
}

struct request *connection_request(const struct connection *connection)
{
    return connection->request;
}

void connection_serve(struct connection *connection, struct request *request)
{
    assert(request == NULL || connection->request == NULL);
    connection->request = request;
    if (request == NULL) {
        connection_enter(connection, CONNECTION_IDLE);
    } else if (connection->phase == CONNECTION_IDLE) {
        connection_enter(connection, CONNECTION_HEAD);
    }
}

enum MHD_Result connection_accept(void *closure, const struct sockaddr *address, socklen_t length)
{
    const struct server *server = closure;
    return peers_allow(server->peers, address) ? MHD_YES : MHD_NO;
}

static void begin(struct server *server, struct MHD_Connection *library, void **slot)
{
    struct connection *connection = xzalloc(sizeof *connection);
    connection->server = server;
    connection->fd = MHD_get_connection_info(library, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    connection->peer = peers_take(
        server->peers, MHD_get_connection_info(library, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
    connection->phase = CONNECTION_OURS; /* so that the next line makes it watched */
    connection_enter(connection, CONNECTION_HEAD);
    *slot = connection;
}

void connection_notify(void *closure, struct MHD_Connection *library, void **slot,
                       enum MHD_ConnectionNotificationCode code)
{
    struct server *server = closure;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        begin(server, library, slot);
        return;
    }
    struct connection *connection = *slot;
    if (connection == NULL) {
        return;
    }
    request_drop(connection->request); /* one that the library never came to tells of no end */
    if (connection->phase != CONNECTION_OURS) {
        unwatch(connection);
    }
    peers_give(server->peers, connection->peer);
    free(connection);
    *slot = NULL;
}

struct connection *connection_of(struct MHD_Connection *library)
{
    return MHD_get_connection_info(library, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}
