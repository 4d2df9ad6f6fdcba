/* SPDX-License-Identifier: Apache-2.0 */
/* Listens on a port of this machine. Each connection has a stream of its own, and a process, so that a slow
 * one holds up no other. One more process waits for the end of the job. */
#include "client/cli/stream/forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/common/wait.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/channel.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/members.h"

/* --- one connection, in a process of its own ------------------------------------------------------------ */

struct connection {
    struct channel *channel;
    int socket;
    bool sends, receives; /* until each side has ended */
};

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = send(fd, bytes, length, MSG_NOSIGNAL);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        bytes += written > 0 ? written : 0;
        length -= (size_t)(written > 0 ? written : 0);
    }
    return true;
}

static bool take(struct connection *connection, const struct frame *frame, struct err *err)
{
    if (frame->kind == FRAME_FAILURE) {
        return err_set(err, ERR_CONFLICT, "%.*s", (int)frame->length, frame->bytes);
    }
    if (frame->kind == FRAME_END) {
        connection->receives = false;
        shutdown(connection->socket, SHUT_WR);
    }
    /* a program that has gone is no error */
    bool lives = frame->kind != FRAME_DATA || write_all(connection->socket, frame->bytes, frame->length);
    connection->sends = connection->sends && lives;
    connection->receives = connection->receives && lives;
    return true;
}

static bool take_all(struct connection *connection, const char *job_id, struct err *err)
{
    struct frame frame;
    enum channel_news news;
    while ((news = channel_receive(connection->channel, &frame, err)) == CHANNEL_FRAME) {
        if (!take(connection, &frame, err)) {
            return false;
        }
    }
    return news == CHANNEL_NOTHING || channel_lost(job_id, err);
}

static bool give_some(struct connection *connection, struct err *err)
{
    static char buffer[LIMIT_FRAME_BYTES];
    size_t credit = channel_credit(connection->channel);
    ssize_t got = recv(connection->socket, buffer, credit < sizeof buffer ? credit : sizeof buffer, 0);
    if (got < 0 && errno == EINTR) {
        return true;
    }
    connection->sends = got > 0;
    return got > 0 ? channel_send(connection->channel, FRAME_DATA, buffer, (size_t)got, err)
                   : channel_send(connection->channel, FRAME_END, "", 0, err);
}

static bool serve(struct connection *connection, const char *job_id, struct err *err)
{
    bool good = take_all(connection, job_id, err);
    while (good && (connection->sends || connection->receives)) {
        bool gives = connection->sends && channel_credit(connection->channel) > 0;
        struct pollfd files[] = {{.fd = channel_fd(connection->channel), .events = POLLIN},
                                 {.fd = gives ? connection->socket : -1, .events = POLLIN}};
        if (poll(files, sizeof files / sizeof files[0], -1) < 0 && errno != EINTR) {
            return err_errno(err, "cannot wait");
        }
        good = (files[0].revents == 0 || take_all(connection, job_id, err)) &&
               (files[1].revents == 0 || give_some(connection, err));
    }
    return good;
}

/* The connections of the parent to the controller are not for its children. */
static struct api *own_api(const struct api *parent)
{
    const struct context *theirs = api_context(parent);
    struct context context = {.url = xstrdup(theirs->url),
                              .token = xstrdup(theirs->token),
                              .cacert = theirs->cacert != NULL ? xstrdup(theirs->cacert) : NULL,
                              .embedded = theirs->embedded};
    return api_create(&context);
}

static void child_begin(const struct forward *forward)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    close(forward->listener);
}

static _Noreturn void child_run(const struct forward *forward, int socket)
{
    struct err err = {0};
    child_begin(forward);
    json_t *body = json_object();
    member_put_text(body, "kind", "forward");
    member_put_int(body, "rank", forward->rank);
    member_put_int(body, "port", forward->remote);
    struct connection connection = {.socket = socket, .sends = true, .receives = true};
    connection.channel = channel_open(own_api(forward->api), forward->job_id, body, &err);
    bool good = connection.channel != NULL && serve(&connection, forward->job_id, &err);
    if (!good) {
        print_error(&err);
    }
    channel_close(connection.channel);
    _exit(good ? 0 : 1);
}

/* --- the port ------------------------------------------------------------------------------------------- */

static bool listen_on(struct forward *forward, struct err *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)forward->local),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int one = 1;
    forward->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (forward->listener < 0 ||
        setsockopt(forward->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(forward->listener, (const struct sockaddr *)&address, length) != 0 ||
        listen(forward->listener, SOMAXCONN) != 0 ||
        getsockname(forward->listener, (struct sockaddr *)&address, &length) != 0) {
        err_errno(err, "cannot listen on port %lld of this machine", (long long)forward->local);
        return err_hint(err, "choose another one");
    }
    forward->local = ntohs(address.sin_port);
    return true;
}

static bool catch_signals(struct forward *forward, struct err *err)
{
    sigset_t caught;
    sigemptyset(&caught);
    sigaddset(&caught, SIGCHLD);
    sigaddset(&caught, SIGINT);
    sigaddset(&caught, SIGTERM);
    sigprocmask(SIG_BLOCK, &caught, NULL);
    forward->signals = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
    return forward->signals >= 0 || err_errno(err, "cannot watch for signals");
}

/* True: somebody wants it to end, or the job has ended. */
static bool hear_signals(struct forward *forward)
{
    struct signalfd_siginfo info;
    bool ends = false;
    while (read(forward->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        ends = ends || info.ssi_signo != SIGCHLD;
    }
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;) {
        forward->ended = forward->ended || pid == forward->watcher;
        forward->connections -= pid != forward->watcher;
    }
    return ends || forward->ended;
}

/* The end of the job ends this process, which everything here is about. */
static bool watch_job(struct forward *forward, struct err *err)
{
    forward->watcher = fork();
    if (forward->watcher == 0) {
        struct err ignored;
        child_begin(forward);
        json_decref(wait_job(own_api(forward->api), forward->job_id, -1, &ignored));
        _exit(0);
    }
    return forward->watcher > 0 || err_errno(err, "cannot watch the job");
}

static void accept_one(struct forward *forward)
{
    const int on = 1;
    autoclose int socket = accept4(forward->listener, NULL, NULL, SOCK_CLOEXEC);
    if (socket < 0) {
        return;
    }
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pid_t pid = fork();
    if (pid == 0) {
        child_run(forward, socket);
    }
    forward->connections += pid > 0;
}

bool forward_run(struct forward *forward, struct err *err)
{
    bool ends = false;
    while (!ends) {
        bool room = forward->connections < LIMIT_ATTEMPT_STREAMS;
        struct pollfd files[] = {{.fd = forward->signals, .events = POLLIN},
                                 {.fd = room ? forward->listener : -1, .events = POLLIN}};
        if (poll(files, sizeof files / sizeof files[0], -1) < 0 && errno != EINTR) {
            return err_errno(err, "cannot wait");
        }
        ends = files[0].revents != 0 && hear_signals(forward);
        if (!ends && files[1].revents != 0) {
            accept_one(forward);
        }
    }
    return true;
}

bool forward_open(struct forward *forward, struct err *err)
{
    forward->listener = forward->signals = -1;
    return listen_on(forward, err) && catch_signals(forward, err) && watch_job(forward, err);
}

void forward_close(struct forward *forward)
{
    if (forward->watcher > 0 && !forward->ended) {
        kill(forward->watcher, SIGTERM);
        waitpid(forward->watcher, NULL, 0);
    }
    cleanup_close(&forward->listener);
    cleanup_close(&forward->signals);
}
