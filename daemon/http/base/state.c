/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for all parts of the HTTP thread: watching a file descriptor, waking clients that follow a job,
 * random bytes, and noting a failure. */
#include "daemon/http/base/state.h"

#include <string.h>
#include <sys/epoll.h>

#include "daemon/http/base/waiters.h"
#include "proto/base/clock.h"

bool server_watch(struct server *server, struct watch *watch, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
    if (epoll_ctl(server->loop_fd, EPOLL_CTL_ADD, watch->fd, &event) != 0) {
        return err_errno(err, "cannot watch a file descriptor");
    }
    return true;
}

void server_wake(struct server *server, int64_t job_key)
{
    waiters_wake(server->waiters, job_key, NULL);
}

void server_random(struct server *server, void *out, size_t length)
{
    if (server->random_left < length) {
        random_fill(server->random, sizeof server->random);
        server->random_left = sizeof server->random;
    }
    server->random_left -= length;
    memcpy(out, server->random + server->random_left, length);
    explicit_bzero(server->random + server->random_left, length);
}

void server_fail(struct server *server, const struct err *err)
{
    if (!server->failed) {
        server->failed = true;
        server->failure = *err;
    }
}
