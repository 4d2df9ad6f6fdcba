/* SPDX-License-Identifier: Apache-2.0 */
/* Moves bytes between a bench's client and the server. It connects, shakes hands, writes a request and reads
 * its answer, each as far as it goes without waiting. For each posted request it calls one of two hooks. A
 * channel that waits for an answer has no buffers, so that ten thousand of them are small. The caller
 * decides when to send what, and when to send it again. */
#include "tests/bench/programs/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

#define EVENTS      512
#define CHUNK_BYTES 16384
#define AGAIN       (-1) /* of transfers: nothing goes without waiting */
#define BROKEN      (-2)

enum phase { CLOSED, CONNECTING, SHAKING, OPEN };

struct channel_set {
    int epoll;
    struct sockaddr_in address;
    const char *token;
    gnutls_certificate_credentials_t credentials; /* NULL: plain */
};

struct channel {
    struct channel_set *set;
    const struct channel_hooks *hooks;
    void *closure;
    int fd; /* -1: none */
    enum phase phase;
    bool busy;         /* a request is under way */
    uint32_t interest; /* what epoll has been told */
    gnutls_session_t tls;
    struct text out, in;
    size_t sent; /* of out */
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* --- the set --- */

struct channel_set *channel_set_create(int port, const char *token, bool tls)
{
    struct channel_set *set = xzalloc(sizeof *set);
    struct epoll_event input = {.events = EPOLLIN, .data.ptr = NULL};
    set->epoll = epoll_create1(EPOLL_CLOEXEC);
    set->token = token;
    set->address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (set->epoll < 0 || epoll_ctl(set->epoll, EPOLL_CTL_ADD, STDIN_FILENO, &input) != 0) {
        die("epoll");
    }
    if (tls && gnutls_certificate_allocate_credentials(&set->credentials) != 0) {
        die("credentials");
    }
    return set;
}

void channel_set_destroy(struct channel_set *set)
{
    if (set->credentials != NULL) {
        gnutls_certificate_free_credentials(set->credentials);
    }
    close(set->epoll);
    free(set);
}

/* --- connections --- */

struct channel *channel_create(struct channel_set *set, const struct channel_hooks *hooks, void *closure)
{
    struct channel *channel = xzalloc(sizeof *channel);
    channel->set = set;
    channel->hooks = hooks;
    channel->closure = closure;
    channel->fd = -1;
    return channel;
}

static void disconnect(struct channel *channel)
{
    if (channel->tls != NULL) {
        gnutls_deinit(channel->tls);
        channel->tls = NULL;
    }
    if (channel->fd >= 0) {
        close(channel->fd);
        channel->fd = -1;
    }
    text_finish(&channel->out);
    text_finish(&channel->in);
    channel->phase = CLOSED;
    channel->busy = false;
}

void channel_destroy(struct channel *channel)
{
    disconnect(channel);
    free(channel);
}

/* A connection that breaks between requests is made anew by the next. */
static void lose(struct channel *channel)
{
    bool busy = channel->busy;
    disconnect(channel);
    if (busy) {
        channel->hooks->lost(channel->closure);
    }
}

static void listen_for(struct channel *channel, uint32_t interest)
{
    struct epoll_event event = {.events = interest, .data.ptr = channel};
    if (channel->interest != interest) {
        if (epoll_ctl(channel->set->epoll, EPOLL_CTL_MOD, channel->fd, &event) != 0) {
            die("epoll_ctl");
        }
        channel->interest = interest;
    }
}

static void start_tls(struct channel *channel)
{
    static const char *const algorithms = "NORMAL:-VERS-ALL:+VERS-TLS1.3"; /* as libcurl asks for */
    if (gnutls_init(&channel->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK) != 0 ||
        gnutls_priority_set_direct(channel->tls, algorithms, NULL) != 0 ||
        gnutls_credentials_set(channel->tls, GNUTLS_CRD_CERTIFICATE, channel->set->credentials) != 0) {
        die("TLS session");
    }
    gnutls_transport_set_int(channel->tls, channel->fd);
}

static void start_connecting(struct channel *channel)
{
    const int one = 1;
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = channel};
    channel->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (channel->fd < 0) {
        die("socket");
    }
    setsockopt(channel->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int result =
        connect(channel->fd, (struct sockaddr *)&channel->set->address, sizeof channel->set->address);
    channel->phase = CONNECTING;
    channel->interest = event.events;
    if ((result != 0 && errno != EINPROGRESS && errno != ECONNREFUSED) || /* a refusal is noticed by go_on */
        epoll_ctl(channel->set->epoll, EPOLL_CTL_ADD, channel->fd, &event) != 0) {
        die("connect");
    }
}

/* --- bytes --- */

static ssize_t result_of(struct channel *channel, ssize_t result)
{
    if (result >= 0) {
        return result;
    }
    bool again = channel->tls != NULL ? !gnutls_error_is_fatal((int)result) : errno == EAGAIN;
    return again ? AGAIN : BROKEN;
}

static ssize_t transfer_in(struct channel *channel, char *bytes, size_t room)
{
    return result_of(channel, channel->tls != NULL ? gnutls_record_recv(channel->tls, bytes, room)
                                                   : recv(channel->fd, bytes, room, 0));
}

static ssize_t transfer_out(struct channel *channel)
{
    const char *bytes = channel->out.bytes + channel->sent;
    size_t length = channel->out.length - channel->sent;
    return result_of(channel, channel->tls != NULL ? gnutls_record_send(channel->tls, bytes, length)
                                                   : send(channel->fd, bytes, length, MSG_NOSIGNAL));
}

/* true once the answer is whole; what is in front of the body, and its status, go out. */
static bool answer_is_whole(const struct channel *channel, size_t *ret_head, size_t *ret_body,
                            int *ret_status)
{
    const char *end = strstr(channel->in.bytes, "\r\n\r\n");
    const char *length = strcasestr(channel->in.bytes, "content-length:");
    if (end == NULL || length == NULL || length > end) {
        return false;
    }
    *ret_head = (size_t)(end + 4 - channel->in.bytes);
    *ret_body = strtoul(length + 15, NULL, 10);
    *ret_status = (int)strtol(channel->in.bytes + strlen("HTTP/1.1 "), NULL, 10);
    return channel->in.length >= *ret_head + *ret_body;
}

/* The answer is taken out of the channel first, for the hook may ask again. */
static void answer(struct channel *channel, size_t head, size_t body, int status)
{
    char *bytes = text_take(&channel->in);
    channel->busy = false;
    channel->hooks->answered(channel->closure, status, bytes + head, body);
    free(bytes);
}

static bool read_answers(struct channel *channel)
{
    char chunk[CHUNK_BYTES];
    for (;;) {
        ssize_t got = transfer_in(channel, chunk, sizeof chunk);
        if (got == AGAIN) {
            return true;
        }
        if (got <= 0 || !channel->busy) { /* nobody speaks unasked */
            return false;
        }
        size_t head, body;
        int status;
        text_append_bytes(&channel->in, chunk, (size_t)got);
        if (answer_is_whole(channel, &head, &body, &status)) {
            answer(channel, head, body, status);
        }
        if (channel->phase != OPEN) {
            return true;
        }
    }
}

static bool write_request(struct channel *channel)
{
    while (channel->sent < channel->out.length) {
        ssize_t sent = transfer_out(channel);
        if (sent == AGAIN) {
            listen_for(channel, EPOLLIN | EPOLLOUT);
            return true;
        }
        if (sent < 0) {
            return false;
        }
        channel->sent += (size_t)sent;
    }
    text_finish(&channel->out);
    channel->sent = 0;
    listen_for(channel, EPOLLIN);
    return true;
}

/* --- progress --- */

static bool connected(struct channel *channel)
{
    int problem = 0;
    socklen_t length = sizeof problem;
    if (getsockopt(channel->fd, SOL_SOCKET, SO_ERROR, &problem, &length) != 0 || problem != 0) {
        return false;
    }
    channel->phase = channel->set->credentials != NULL ? SHAKING : OPEN;
    if (channel->phase == SHAKING) {
        start_tls(channel);
    }
    return true;
}

static bool shake(struct channel *channel)
{
    int result = gnutls_handshake(channel->tls);
    if (result == 0) {
        channel->phase = OPEN;
        return true;
    }
    listen_for(channel, gnutls_record_get_direction(channel->tls) == 1 ? EPOLLOUT : EPOLLIN);
    return !gnutls_error_is_fatal(result);
}

static void go_on(struct channel *channel)
{
    bool good = channel->phase != CONNECTING || connected(channel);
    if (good && channel->phase == SHAKING) {
        good = shake(channel);
    }
    if (good && channel->phase == OPEN) {
        good = write_request(channel) && read_answers(channel);
    }
    if (!good) {
        lose(channel);
    }
}

bool channel_set_run(struct channel_set *set, int wait_ms)
{
    struct epoll_event events[EVENTS];
    bool input = false;
    int ready = epoll_wait(set->epoll, events, EVENTS, wait_ms);
    for (int i = 0; i < ready; i++) {
        if (events[i].data.ptr == NULL) {
            input = true;
        } else {
            go_on(events[i].data.ptr);
        }
    }
    return input;
}

void channel_post(struct channel *channel, const char *path, json_t *document)
{
    char *body = json_text(document);
    json_decref(document);
    text_printf(&channel->out,
                "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
                "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                path, ntohs(channel->set->address.sin_port), channel->set->token, strlen(body), body);
    free(body);
    channel->busy = true;
    if (channel->phase == CLOSED) {
        start_connecting(channel);
    } else if (!write_request(channel)) {
        listen_for(channel, EPOLLIN | EPOLLOUT); /* its end is noticed there: no hook is called from here */
    }
}

bool channel_is_idle(const struct channel *channel)
{
    return !channel->busy;
}
