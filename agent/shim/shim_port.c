/* SPDX-License-Identifier: Apache-2.0 */
/* The port of a gang, MASTER_PORT: found in the node's range and held until the attempt has ended. A lock per
 * port keeps shims apart: an abstract unix socket that the kernel frees when the shim ends. A TCP socket
 * bound with SO_REUSEADDR keeps other programs off. Where a rank will bind the port itself, the socket does
 * not listen: it then refuses plain and ephemeral binds, but not the SO_REUSEADDR bind of its owner. Where a
 * rank gets this very socket, it listens from the start, so early connections wait in the backlog until that
 * rank is ready. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define BACKLOG 4096 /* for the ranks of a gang that connect at once; net.core.somaxconn limits it, too */

static int port_lock(int number)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "gpuctl-port-%d", number);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 ? give_fd(&fd) : -1;
}

static int bound(int family, const struct sockaddr *address, socklen_t size)
{
    const int on = 1, off = 0;
    autoclose int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool done = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                (family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) &&
                bind(fd, address, size) == 0;
    return done ? give_fd(&fd) : -1; /* a close that succeeds leaves errno as it is */
}

static int port_bind(int number)
{
    struct sockaddr_in6 both = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)number), .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in old = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
    int fd = bound(AF_INET6, (struct sockaddr *)&both, sizeof both);
    if (fd < 0 && errno != EADDRINUSE) { /* the host has no IPv6 */
        fd = bound(AF_INET, (struct sockaddr *)&old, sizeof old);
    }
    return fd;
}

static bool port_take(struct port *port, int number, bool listens)
{
    autoclose int lock = port_lock(number);
    autoclose int fd = lock >= 0 ? port_bind(number) : -1;
    if (fd < 0 || (listens && listen(fd, BACKLOG) != 0)) { /* another program was faster */
        return false;
    }
    *port = (struct port){.number = number, .lock = give_fd(&lock), .socket = give_fd(&fd)};
    return true;
}

bool port_hold(struct port *port, int first, int last, bool listens, struct why *why)
{
    unsigned count = (unsigned)(last - first + 1);
    unsigned chance = 0;
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) < 0) {
        chance = (unsigned)getpid();
    }
    for (unsigned i = 0; i < count; i++) {
        if (port_take(port, first + (int)((chance % count + i) % count), listens)) {
            return true;
        }
    }
    return why_set(why, "no port free in %d-%d", first, last);
}

/* Whether another process listens on the port. /proc/net/tcp: "N: ADDRESS:PORT ADDRESS:PORT STATE queues
 * timer retransmits uid timeout INODE ...", listening sockets first. */
static bool is_listed(const char *table, const struct port *port)
{
    autofclose FILE *file = fopen(table, "re");
    char line[512];
    struct stat own;
    bool found = false;
    bool more = file != NULL && fstat(port->socket, &own) == 0 && fgets(line, sizeof line, file) != NULL;
    while (more && !found && fgets(line, sizeof line, file) != NULL) {
        unsigned number, state;
        unsigned long long inode;
        more =
            sscanf(line, "%*s %*[0-9A-F]:%x %*s %x %*s %*s %*s %*s %*s %llu", &number, &state, &inode) == 3 &&
            state == TCP_LISTEN;
        found = more && number == (unsigned)port->number && inode != own.st_ino;
    }
    return found;
}

bool port_is_heard(const struct port *port)
{
    return port->number != 0 && (is_listed("/proc/net/tcp", port) || is_listed("/proc/net/tcp6", port));
}

void port_release(struct port *port)
{
    if (port->number != 0) {
        close(port->socket);
        close(port->lock);
    }
    *port = (struct port){.lock = -1, .socket = -1};
}
