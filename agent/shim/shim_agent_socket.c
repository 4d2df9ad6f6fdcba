/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets to the agent: first descriptor 3, then the newest connection to shim.sock. This file remembers
 * the last message on every fact and repeats it on a new connection, so facts reach an agent that was away.
 * It never waits: if an agent does not take a message, the shim closes the connection, and the agent gets the
 * message on the next one. shim_order.c interprets the messages. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/common/fd_message.h"
#include "proto/base/cleanup.h"

static void agent_socket_close(struct agent_socket *agent_socket)
{
    cleanup_close(&agent_socket->fd);
    agent_socket->fd = -1;
}

static bool agent_socket_send(struct agent_socket *agent_socket, const char *text)
{
    if (agent_socket->fd < 0) {
        return false;
    }
    if (send(agent_socket->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        agent_socket_close(agent_socket);
        return false;
    }
    return true;
}

bool agent_socket_listen(struct shim *shim, struct why *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SHIM_SOCKET_FILE};
    autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4) != 0 ||
        !shim_watch(shim, fd, WATCH_LISTENER, 0)) {
        return why_set(why, "%s: %s", SHIM_SOCKET_FILE, strerror(errno));
    }
    shim->agent_socket.listener = give_fd(&fd);
    return true;
}

static bool peer_allowed(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static void agent_socket_greet(struct agent_socket *agent_socket)
{
    for (int fact = 0; fact < FACT_COUNT; fact++) {
        if (agent_socket->said[fact] != NULL) {
            agent_socket_send(agent_socket, agent_socket->said[fact]);
        }
    }
    agent_socket->output_told = agent_socket->said[FACT_OUTPUT] != NULL;
    agent_socket->output_grown = false;
}

void agent_socket_accept(struct shim *shim)
{
    autoclose int fd = accept4(shim->agent_socket.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && peer_allowed(fd) && shim_watch(shim, fd, WATCH_AGENT_SOCKET, 0)) {
        agent_socket_close(&shim->agent_socket);
        shim->agent_socket.fd = give_fd(&fd);
        agent_socket_greet(&shim->agent_socket);
    }
}

void agent_socket_receive(struct shim *shim)
{
    char text[LIMIT_SHIM_MESSAGE + 2];
    if (shim->agent_socket.fd < 0) {
        return; /* closed earlier in this turn */
    }
    autoclose int given = -1;
    ssize_t length = fd_message_receive(shim->agent_socket.fd, text, sizeof text, &given);
    if (length < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET)) {
        /* a reset precedes the last messages of an agent that closed with some of ours unread */
        return;
    }
    if (length <= 0) {
        agent_socket_close(&shim->agent_socket);
        shim->ended = shim->phase == PHASE_IDLE; /* no one else knows of this shim */
        return;
    }
    if (length > LIMIT_SHIM_MESSAGE) {
        shim_log_error("ignores a message of more than %d bytes", LIMIT_SHIM_MESSAGE);
        return;
    }
    shim->agent_socket.given = given;
    order_work(shim, text);
    given = shim->agent_socket.given; /* -1 where an order has kept it */
    shim->agent_socket.given = -1;
}

void agent_socket_say(struct shim *shim, enum fact fact, const char *format, ...)
{
    char text[LIMIT_SHIM_MESSAGE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    free(shim->agent_socket.said[fact]);
    shim->agent_socket.said[fact] = xstrdup(text);
    agent_socket_send(&shim->agent_socket, text);
}

void agent_socket_mention(struct shim *shim, const char *format, ...)
{
    char text[LIMIT_SHIM_MESSAGE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!agent_socket_send(&shim->agent_socket, text) && shim->phase == PHASE_IDLE) {
        shim->ended = true; /* no one else knows of this shim */
    }
}

void agent_socket_output_grown(struct shim *shim)
{
    shim->agent_socket.output_grown = true;
}

void agent_socket_output_seen(struct shim *shim)
{
    shim->agent_socket.output_told = false;
}

void agent_socket_tell_output(struct shim *shim)
{
    struct agent_socket *agent_socket = &shim->agent_socket;
    if (agent_socket->output_grown && !agent_socket->output_told) {
        agent_socket->output_grown = false;
        agent_socket->output_told = true;
        agent_socket_say(shim, FACT_OUTPUT, "output");
    }
}

void agent_socket_forget(struct shim *shim)
{
    unlink(SHIM_RANK_SOCKET);
    unlink(SHIM_SOCKET_FILE);
    shim->ended = true;
}

void agent_socket_finish(struct agent_socket *agent_socket)
{
    agent_socket_close(agent_socket);
    cleanup_close(&agent_socket->listener);
    for (int fact = 0; fact < FACT_COUNT; fact++) {
        free(agent_socket->said[fact]);
    }
}
