/* SPDX-License-Identifier: Apache-2.0 */
/* Makes pipes, terminals and sockets, and hands their other ends to the shim, which is the only process that
 * can start another one in the attempt (agent/shim/shim_command.c). */
#include "agent/stream/local.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "agent/common/fd_message.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

static const struct local no_local = {.fds = {-1, -1, -1, -1}};

static void local_close(struct local *local)
{
    for (int i = 0; i < LOCAL_ENDS; i++) {
        cleanup_close(&local->fds[i]);
    }
}

static bool fail(struct local *local, struct err *err, const char *what)
{
    err_errno(err, "the node cannot %s", what);
    local_close(local);
    return false;
}

static bool unblock(int fd)
{
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0;
}

/* --- commands ------------------------------------------------------------------------------------------- */

/* The ends of a command that it gets; closed by the agent once the shim has them. */
struct given {
    int fds[3];
    size_t count;
};

static void given_close(struct given *given)
{
    for (size_t i = 0; i < given->count; i++) {
        close(given->fds[i]);
    }
}
#define autogiven __attribute__((cleanup(given_close)))

void local_resize(const struct local *local, int64_t rows, int64_t columns)
{
    const struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    ioctl(local->fds[LOCAL_IN], TIOCSWINSZ, &size); /* what is no terminal refuses it */
}

/* Two descriptors of the master, because the loop watches each for one thing. */
static bool make_terminal(const struct stream_request *request, struct local *local, struct given *given)
{
    int master = local->fds[LOCAL_OUT] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (master < 0 || unlockpt(master) != 0 ||
        (local->fds[LOCAL_IN] = fcntl(master, F_DUPFD_CLOEXEC, 0)) < 0 ||
        (given->fds[0] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
        return false;
    }
    given->count = 1;
    local_resize(local, request->rows, request->columns);
    return true;
}

/* A command that gets nothing has a pipe that nobody writes to. It is no /dev/null, because the shim gives
 * what it starts a command with to the user. */
static bool make_pipes(const struct stream_request *request, struct local *local, struct given *given)
{
    for (int i = LOCAL_IN; i <= LOCAL_ERR; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            return false;
        }
        int own = i == LOCAL_IN;
        given->fds[given->count++] = ends[!own];
        local->fds[i] = ends[own];
        if (!unblock(ends[own])) {
            return false;
        }
    }
    if (!request->input) {
        cleanup_close(&local->fds[LOCAL_IN]);
        local->fds[LOCAL_IN] = -1;
    }
    return true;
}

static void add(struct text *message, const char *key, const char *value)
{
    text_append_bytes(message, key, strlen(key) + 1);
    text_append_bytes(message, value, strlen(value) + 1);
}

static bool tell(const struct attempt *attempt, const struct stream_request *request, int answer, int theirs,
                 const struct given *given)
{
    autotext struct text message = {0};
    char order[32];
    for (size_t i = 0; i < json_array_size(request->command); i++) {
        add(&message, "arg", json_string_value(json_array_get(request->command, i)));
    }
    if (request->term != NULL) {
        add(&message, "term", request->term);
    }
    snprintf(order, sizeof order, "exec %lld", (long long)request->rank);
    return fd_message_send(answer, message.bytes, message.length, given->fds, given->count, MSG_DONTWAIT) &&
           fd_message_send(attempt->shim.fd, order, strlen(order), &theirs, 1, MSG_DONTWAIT);
}

bool local_exec(struct attempt *attempt, const struct stream_request *request, struct local *ret_local,
                struct err *err)
{
    struct local local = no_local;
    autogiven struct given given = {0};
    int pair[2];
    if (!(request->terminal ? make_terminal : make_pipes)(request, &local, &given)) {
        return fail(&local, err, request->terminal ? "make a terminal" : "make a pipe");
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        return fail(&local, err, "make a socket");
    }
    local.fds[LOCAL_ANSWER] = pair[0];
    autoclose int theirs = pair[1];
    if (!tell(attempt, request, pair[0], theirs, &given)) {
        return fail(&local, err, "reach the supervisor of the job");
    }
    *ret_local = local;
    return true;
}

/* --- ports ---------------------------------------------------------------------------------------------- */

bool local_connect(const struct attempt *attempt, const struct stream_request *request,
                   struct local *ret_local, struct err *err)
{
    struct local local = no_local;
    const struct user *user = attempt->user.name != NULL ? &attempt->user : NULL;
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)request->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    user_begin(user); /* a socket is of the user that has made it, which firewalls of the node go by */
    int fd = local.fds[LOCAL_OUT] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    user_end(user);
    if (fd < 0 || (local.fds[LOCAL_IN] = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) {
        return fail(&local, err, "make a socket");
    }
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) {
        return fail(&local, err, "connect");
    }
    *ret_local = local;
    return true;
}
