/* SPDX-License-Identifier: Apache-2.0 */
/* A rank for the tests of gpushim, which does what a shell cannot:
 *   lines COUNT   sends COUNT metrics to $GPUCTL_SOCKET, a datagram each, with values from 0 up
 *   host          accepts one connection on SHIM_STORE_FD, writes what it says to stdout, answers "welcome",
 *                 and waits until the other side has closed it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/shim/shimwire.h"

static int send_lines(long count)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", getenv("GPUCTL_SOCKET"));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        return EXIT_FAILURE;
    }
    for (long i = 0; i < count; i++) {
        char line[128];
        int length = snprintf(line, sizeof line, "{\"metric\": \"loss\", \"value\": %ld, \"rank\": %s}\n", i,
                              getenv("RANK"));
        if (send(fd, line, (size_t)length, 0) != length) {
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}

static int host(void)
{
    static const char answer[] = "welcome";
    char text[64];
    int fd = accept4(SHIM_STORE_FD, NULL, NULL, SOCK_CLOEXEC);
    ssize_t length = recv(fd, text, sizeof text, 0);
    if (length <= 0 || write(STDOUT_FILENO, text, (size_t)length) != length ||
        send(fd, answer, strlen(answer), 0) < 0) {
        return EXIT_FAILURE;
    }
    return recv(fd, text, sizeof text, 0) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "lines") == 0) {
        return send_lines(strtol(argv[2], NULL, 10));
    }
    return argc == 2 && strcmp(argv[1], "host") == 0 ? host() : EXIT_FAILURE;
}
