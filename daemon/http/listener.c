/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the listening socket with the options that its connections inherit, and computes how many
 * connections the process may hold. */
#include "daemon/http/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

/* An address of either family. */
union name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool parse_address(const char *address, uint16_t port, union name *name, socklen_t *length,
                          struct err *err)
{
    memset(name, 0, sizeof *name);
    if (inet_pton(AF_INET, address, &name->v4.sin_addr) == 1) {
        name->v4.sin_family = AF_INET;
        name->v4.sin_port = htons(port);
        *length = sizeof name->v4;
        return true;
    }
    if (inet_pton(AF_INET6, address, &name->v6.sin6_addr) == 1) {
        name->v6.sin6_family = AF_INET6;
        name->v6.sin6_port = htons(port);
        *length = sizeof name->v6;
        return true;
    }
    return err_field(err, ERR_USAGE, "listen", "write 127.0.0.1 or ::1", "\"%s\" is not an IP address",
                     address);
}

int listener_open(const char *address, uint16_t port, uint16_t *ret_port, struct err *err)
{
    union name name;
    socklen_t length;
    if (!parse_address(address, port, &name, &length, err)) {
        return -1;
    }
    autoclose int fd = socket(name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int one = 1, unsent = LIMIT_UNSENT_BYTES;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent) != 0) {
        err_errno(err, "cannot make a socket");
        return -1;
    }
    if (bind(fd, &name.any, length) != 0 || listen(fd, LIMIT_LISTEN_BACKLOG) != 0) {
        err_errno(err, "cannot listen on %s port %u", address, port);
        return -1;
    }
    if (getsockname(fd, &name.any, &length) != 0) {
        err_errno(err, "cannot read the port of a socket");
        return -1;
    }
    *ret_port = ntohs(name.any.sa_family == AF_INET ? name.v4.sin_port : name.v6.sin6_port);
    return give_fd(&fd);
}

unsigned listener_connections(struct err *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        err_errno(err, "cannot read the limit of open files");
        return 0;
    }
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        err_errno(err, "cannot raise the limit of open files to %llu", (unsigned long long)limit.rlim_max);
        return 0;
    }
    if (limit.rlim_cur < 2 * LIMIT_OTHER_FILES) {
        err_set(err, ERR_USAGE, "the limit of open files is %llu", (unsigned long long)limit.rlim_cur);
        err_hint(err, "raise it to %d or more, with ulimit -Hn or LimitNOFILE",
                 LIMIT_CONNECTIONS + LIMIT_OTHER_FILES);
        return 0;
    }
    rlim_t fit = limit.rlim_cur - LIMIT_OTHER_FILES;
    return fit < LIMIT_CONNECTIONS ? (unsigned)fit : LIMIT_CONNECTIONS;
}
