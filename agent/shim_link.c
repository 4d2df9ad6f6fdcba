/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets to the agent: first descriptor 3, then whoever connects to shim.sock last. It remembers the
 * last words on every fact and says them again on a new connection, so that no agent has to have been there.
 * It never waits: an agent that does not take a message loses the connection and hears it on the next one.
 * What messages mean is shim_order.c's. */
#include "agent/shim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void link_close(struct link *link)
{
    if (link->fd >= 0) {
        close(link->fd);
        link->fd = -1;
    }
}

static bool link_send(struct link *link, const char *text)
{
    if (link->fd < 0) {
        return false;
    }
    if (send(link->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        link_close(link);
        return false;
    }
    return true;
}

bool link_listen(struct shim *shim, struct why *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SHIM_SOCKET_FILE};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4) != 0 ||
        !shim_watch(shim, fd, WATCH_LISTENER, 0)) {
        why_set(why, "%s: %s", SHIM_SOCKET_FILE, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    shim->link.listener = fd;
    return true;
}

static bool peer_allowed(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static void link_greet(struct link *link)
{
    for (int fact = 0; fact < FACT_COUNT; fact++) {
        if (link->said[fact] != NULL) {
            link_send(link, link->said[fact]);
        }
    }
    link->notice = link->said[FACT_OUTPUT] != NULL ? NOTICE_TOLD : NOTICE_QUIET;
}

void link_accept(struct shim *shim)
{
    int fd = accept4(shim->link.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    if (!peer_allowed(fd) || !shim_watch(shim, fd, WATCH_LINK, 0)) {
        close(fd);
        return;
    }
    link_close(&shim->link);
    shim->link.fd = fd;
    link_greet(&shim->link);
}

void link_receive(struct shim *shim)
{
    char text[LIMIT_SHIM_MESSAGE + 1];
    if (shim->link.fd < 0) {
        return; /* closed earlier in this turn */
    }
    ssize_t length = recv(shim->link.fd, text, sizeof text, MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET)) {
        /* a reset comes before the last messages of an agent that closed with some of ours unread */
        return;
    }
    if (length <= 0) {
        link_close(&shim->link);
        shim->ended = shim->phase == PHASE_IDLE; /* nobody else knows of this shim */
        return;
    }
    if (length > LIMIT_SHIM_MESSAGE) {
        shim_log_error("ignores a message of more than %d bytes", LIMIT_SHIM_MESSAGE);
        return;
    }
    text[length] = '\0';
    order_work(shim, text);
}

void link_say(struct shim *shim, enum fact fact, const char *format, ...)
{
    char text[LIMIT_SHIM_MESSAGE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t size = strlen(text) + 1;
    char *said = shim_resize(shim->link.said[fact], size, 1);
    memcpy(said, text, size);
    shim->link.said[fact] = said;
    link_send(&shim->link, said);
}

void link_mention(struct shim *shim, const char *format, ...)
{
    char text[LIMIT_SHIM_MESSAGE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!link_send(&shim->link, text) && shim->phase == PHASE_IDLE) {
        shim->ended = true; /* nobody else knows of this shim */
    }
}

void link_grown(struct shim *shim)
{
    struct link *link = &shim->link;
    if (link->notice == NOTICE_QUIET) {
        link->notice = NOTICE_DUE;
    } else if (link->notice == NOTICE_TOLD) {
        link->notice = NOTICE_TOLD_AND_DUE;
    }
}

void link_seen(struct shim *shim)
{
    struct link *link = &shim->link;
    if (link->notice == NOTICE_TOLD) {
        link->notice = NOTICE_QUIET;
    } else if (link->notice == NOTICE_TOLD_AND_DUE) {
        link->notice = NOTICE_DUE;
    }
}

void link_tell_output(struct shim *shim)
{
    if (shim->link.notice == NOTICE_DUE) {
        shim->link.notice = NOTICE_TOLD;
        link_say(shim, FACT_OUTPUT, "output");
    }
}

void link_forget(struct shim *shim)
{
    unlink(SHIM_RANK_SOCKET);
    unlink(SHIM_SOCKET_FILE);
    shim->ended = true;
}

void link_finish(struct link *link)
{
    link_close(link);
    if (link->listener >= 0) {
        close(link->listener);
    }
    for (int fact = 0; fact < FACT_COUNT; fact++) {
        free(link->said[fact]);
    }
}
