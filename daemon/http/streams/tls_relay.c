/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the TLS sessions of the library's upgraded connections, which the library does not touch
 * meanwhile: what it tries to read is "nothing yet", because the session's transport is ours. All of them
 * share an epoll set, which the server's loop watches. A relay that is idle has no buffer; while one side
 * does not take what the other has sent, nothing more is read from that one. */
#include "daemon/http/streams/tls_relay.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utlist.h>

#include "daemon/http/base/state.h"
#include "daemon/http/request/library.h"
#include "daemon/http/streams/way.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

#define EVENTS_A_TURN 64
#define RECORD_BYTES  (16 * 1024) /* the plain text of one record at most */
#define BOTH          2

/* extensions of RFC 8446, RFC 7301 and RFC 5746 */
#define TLS_SIGNATURE_ALGORITHMS 13
#define TLS_ALPN                 16
#define TLS_RENEGOTIATION_INFO   0xff01

enum { PEER, PAIR }; /* over the network, and our end of the socket pair */

struct end {
    struct tls_relay *relay;
    int number, fd;
    uint32_t events; /* that epoll was asked for; 0: it does not watch the end */
};

struct tls_relay {
    struct tls_relays *relays;
    struct MHD_Connection *connection;
    struct MHD_UpgradeResponseHandle *handle;
    gnutls_session_t session;
    struct end ends[BOTH];
    struct way ways[BOTH]; /* from the end of that number */
    int socket;            /* the other end of the pair; -1: it was closed */
    bool reading;          /* else the library asks for bytes, and gets none */
    bool over;
    struct deadline deadline; /* of the flush */
    struct tls_relay *prev, *next;
};

struct tls_relays {
    struct server *server;
    struct watch watch; /* of the epoll set */
    struct tls_relay *all;
    char piece[STREAM_PIECE_BYTES];
};

/* --- the transport of a session ------------------------------------------------------------------------- */

static ssize_t pull(gnutls_transport_ptr_t closure, void *bytes, size_t length)
{
    const struct tls_relay *relay = closure;
    ssize_t got = relay->reading ? recv(relay->ends[PEER].fd, bytes, length, MSG_DONTWAIT) : -1;
    gnutls_transport_set_errno(relay->session, relay->reading ? errno : EAGAIN);
    return got;
}

static ssize_t push(gnutls_transport_ptr_t closure, const void *bytes, size_t length)
{
    const struct tls_relay *relay = closure;
    ssize_t sent = send(relay->ends[PEER].fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    gnutls_transport_set_errno(relay->session, errno);
    return sent;
}

/* After the relay, when the library says goodbye to the peer; the closure is the socket. */
static ssize_t pull_nothing(gnutls_transport_ptr_t closure, void *bytes, size_t length)
{
    return 0;
}

static ssize_t push_plainly(gnutls_transport_ptr_t closure, const void *bytes, size_t length)
{
    return send((int)(intptr_t)closure, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* GnuTLS keeps 1 KiB of what the peer has said in the handshake, for a second handshake in the same session.
 * The relay answers none. */
static void forget_handshake(gnutls_session_t session)
{
    const unsigned extensions[] = {TLS_SIGNATURE_ALGORITHMS, TLS_ALPN, TLS_RENEGOTIATION_INFO};
    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
        gnutls_ext_set_data(session, extensions[i], NULL);
    }
}

static void take_session(struct tls_relay *relay)
{
    forget_handshake(relay->session);
    gnutls_transport_set_ptr(relay->session, relay);
    gnutls_transport_set_pull_function(relay->session, pull);
    gnutls_transport_set_push_function(relay->session, push);
}

static void leave_session(const struct tls_relay *relay)
{
    gnutls_transport_set_ptr(relay->session, (gnutls_transport_ptr_t)(intptr_t)relay->ends[PEER].fd);
    gnutls_transport_set_pull_function(relay->session, pull_nothing);
    gnutls_transport_set_push_function(relay->session, push_plainly);
}

/* --- moving --------------------------------------------------------------------------------------------- */

/* How many bytes came; 0: none now; -1: none any more. From the network whole records alone, so that none is
 * left in the session, of which epoll does not know. */
static ssize_t take_bytes(struct tls_relay *relay, int from, char *piece)
{
    if (from == PAIR) {
        ssize_t got = recv(relay->ends[PAIR].fd, piece, RECORD_BYTES, MSG_DONTWAIT);
        return got > 0 ? got : got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    }
    ssize_t got = 0, all = 0;
    relay->reading = true;
    while (all + RECORD_BYTES <= STREAM_PIECE_BYTES &&
           (got = gnutls_record_recv(relay->session, piece + all, RECORD_BYTES)) > 0) {
        all += got;
    }
    relay->reading = false;
    bool more = got > 0 || (got < 0 && gnutls_error_is_fatal((int)got) == 0);
    relay->ways[PEER].ended = !more;
    return all > 0 || more ? all : -1;
}

/* How many bytes the other side has taken; -1: it takes none any more. A record that was sent in part goes on
 * when it is sent again. */
static ssize_t give_bytes(struct tls_relay *relay, int to, const char *bytes, size_t length)
{
    if (to == PAIR) {
        ssize_t sent = send(relay->ends[PAIR].fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
    }
    ssize_t sent = gnutls_record_send(relay->session, bytes, length);
    return sent < 0 && gnutls_error_is_fatal((int)sent) == 0 ? 0 : sent;
}

static void flush(struct tls_relay *relay, int from)
{
    struct way *way = &relay->ways[from];
    ssize_t sent = give_bytes(relay, !from, way->held + way->from, way->length);
    if (sent < 0) {
        relay->over = true;
        return;
    }
    way_taken(way, (size_t)sent);
}

static void move(struct tls_relay *relay, int from)
{
    struct way *way = &relay->ways[from];
    char *piece = relay->relays->piece;
    ssize_t got = take_bytes(relay, from, piece);
    if (got <= 0) {
        way->ended = way->ended || got < 0;
        return;
    }
    ssize_t sent = give_bytes(relay, !from, piece, (size_t)got);
    if (sent < 0) {
        relay->over = true;
    } else if (sent < got) {
        way_hold(way, piece + sent, (size_t)(got - sent));
    }
}

static void serve(struct end *end, uint32_t events)
{
    struct tls_relay *relay = end->relay;
    struct way *own = &relay->ways[end->number];
    if ((events & EPOLLOUT) != 0 && relay->ways[!end->number].length > 0) {
        flush(relay, !end->number);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && own->length == 0 && !own->ended && !relay->over) {
        move(relay, end->number);
    } else if ((events & (EPOLLHUP | EPOLLERR)) != 0 && end->number == PEER) {
        own->ended = true;
    }
}

static void watch(struct end *end)
{
    struct tls_relay *relay = end->relay;
    const struct way *own = &relay->ways[end->number], *other = &relay->ways[!end->number];
    uint32_t wanted = (own->length == 0 && !own->ended ? EPOLLIN : 0) | (other->length > 0 ? EPOLLOUT : 0);
    /* a peer that nothing is waited for is watched for its failure; the pair has more to read when it hangs
     * up */
    wanted |= own->ended || end->number == PAIR ? 0 : EPOLLHUP;
    if (wanted == end->events) {
        return;
    }
    struct epoll_event event = {.events = wanted, .data.ptr = end};
    int operation = end->events == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    relay->over |= epoll_ctl(relay->relays->watch.fd, operation, end->fd, &event) != 0;
    end->events = relay->over ? end->events : wanted;
}

static bool has_ended(const struct way *way)
{
    return way->ended && way->length == 0;
}

/* What the peer has sent last is still to be read from the pair, which the end of the pair's other side
 * tells. */
static void settle(struct tls_relay *relay)
{
    if (has_ended(&relay->ways[PEER])) {
        shutdown(relay->ends[PAIR].fd, SHUT_WR);
    }
    relay->over = relay->over || has_ended(&relay->ways[PAIR]);
    for (int i = 0; i < BOTH && !relay->over; i++) {
        watch(&relay->ends[i]);
    }
}

/* --- the end -------------------------------------------------------------------------------------------- */

/* Gives the connection back to the library, once nobody uses the socket any more. */
static void relay_free(struct tls_relay *relay)
{
    struct tls_relays *relays = relay->relays;
    for (int i = 0; i < BOTH; i++) {
        if (relay->ends[i].events != 0) {
            epoll_ctl(relays->watch.fd, EPOLL_CTL_DEL, relay->ends[i].fd, NULL);
        }
        free(relay->ways[i].held);
    }
    /* the library would wait for the peer to close first */
    gnutls_bye(relay->session, GNUTLS_SHUT_WR);
    shutdown(relay->ends[PEER].fd, SHUT_RDWR);
    leave_session(relay);
    close(relay->ends[PAIR].fd);
    deadline_clear(relays->server->deadlines, &relay->deadline);
    library_end_upgrade(relays->server->library, relay->connection, relay->handle);
    DL_DELETE(relays->all, relay);
    free(relay);
}

/* One whose socket is in use stays until that has been told, and is no longer watched. */
static void sweep(struct tls_relays *relays)
{
    struct tls_relay *relay, *next;
    DL_FOREACH_SAFE (relays->all, relay, next) {
        if (relay->over && relay->socket < 0) {
            relay_free(relay);
        } else if (relay->over) {
            shutdown(relay->ends[PAIR].fd, SHUT_RDWR);
            for (int i = 0; i < BOTH; i++) {
                epoll_ctl(relays->watch.fd, EPOLL_CTL_DEL, relay->ends[i].fd, NULL);
                relay->ends[i].events = 0;
            }
        }
    }
}

static void flush_is_over(struct deadline *deadline)
{
    struct tls_relay *relay = deadline->closure;
    relay_free(relay);
}

void tls_relay_end(struct tls_relay *relay)
{
    struct server *server = relay->relays->server;
    struct way *unread = &relay->ways[PEER];
    close(relay->socket);
    relay->socket = -1;
    free(unread->held);
    *unread = (struct way){.ended = true};
    if (!relay->over) {
        settle(relay);
    }
    if (relay->over) {
        relay_free(relay);
    } else {
        deadline_set(server->deadlines, &relay->deadline, server->now_ms + TLS_RELAY_FLUSH_MS);
    }
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void relays_ready(struct watch *watch)
{
    struct tls_relays *relays = watch->closure;
    struct epoll_event events[EVENTS_A_TURN];
    bool over = false;
    int count = epoll_wait(watch->fd, events, EVENTS_A_TURN, 0);
    for (int i = 0; i < count; i++) {
        struct end *end = events[i].data.ptr;
        if (!end->relay->over) {
            serve(end, events[i].events);
            settle(end->relay);
            over = over || end->relay->over;
        }
    }
    if (over) { /* events of one turn may name a relay twice */
        sweep(relays);
    }
}

struct tls_relays *tls_relays_open(struct server *server, struct err *err)
{
    struct tls_relays *relays = xzalloc(sizeof *relays);
    relays->server = server;
    relays->watch =
        (struct watch){.fd = epoll_create1(EPOLL_CLOEXEC), .ready = relays_ready, .closure = relays};
    if (relays->watch.fd < 0) {
        err_errno(err, "cannot make an epoll set");
        free(relays);
        return NULL;
    }
    if (!server_watch(server, &relays->watch, err)) {
        tls_relays_close(relays);
        return NULL;
    }
    return relays;
}

void tls_relays_close(struct tls_relays *relays)
{
    if (relays == NULL) {
        return;
    }
    while (relays->all != NULL) {
        relay_free(relays->all);
    }
    close(relays->watch.fd);
    free(relays);
}

bool tls_relays_any(const struct tls_relays *relays)
{
    return relays->all != NULL;
}

struct tls_relay *tls_relay_begin(struct tls_relays *relays, struct MHD_Connection *connection,
                                  struct MHD_UpgradeResponseHandle *handle, int *ret_socket)
{
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    int pair[BOTH];
    if (tls == NULL || tls->tls_session == NULL) {
        return NULL;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        log_warning("stream slow", "problem=\"%s\"", strerror(errno)); /* the library relays it */
        return NULL;
    }
    struct tls_relay *relay = xzalloc(sizeof *relay);
    *relay = (struct tls_relay){
        .relays = relays,
        .connection = connection,
        .handle = handle,
        .session = tls->tls_session,
        .socket = pair[1],
        .deadline = {.due = flush_is_over, .closure = relay},
    };
    const int fds[BOTH] = {MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                           pair[0]};
    for (int i = 0; i < BOTH; i++) {
        relay->ends[i] = (struct end){.relay = relay, .number = i, .fd = fds[i]};
    }
    take_session(relay);
    DL_APPEND(relays->all, relay);
    settle(relay);
    *ret_socket = relay->socket;
    return relay;
}
