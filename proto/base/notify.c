/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the message by which a service of Type=notify says that it has started: sd_notify(3) without the
 * library. A message that cannot be sent is dropped, because systemd has its own time limit for the start. */
#include "proto/base/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "proto/base/cleanup.h"

void notify_ready(void)
{
    static const char message[] = "READY=1";
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (name == NULL || strlen(name) >= sizeof address.sun_path) {
        return;
    }
    size_t length = strlen(name);
    memcpy(address.sun_path, name, length);
    if (name[0] == '@') {
        address.sun_path[0] = '\0'; /* an abstract address */
    }
    autoclose int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        sendto(fd, message, sizeof message - 1, MSG_NOSIGNAL, (const struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    }
    unsetenv("NOTIFY_SOCKET");
}
