/* SPDX-License-Identifier: Apache-2.0 */
/* Warm workers: children that have imported the usual modules ahead of time, and become ranks
 * (agent/python/gpuctl_warm.py). The process that forks them is a child of the shim from before the shim's
 * exec. It ends once they are there, which makes them children of the shim, a subreaper. A rank is started by
 * a worker or by exec, never by both: a worker that has not answered within BECOME_MS is killed, and did not
 * become a rank. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BECOME_MS 5000 /* it usually takes a few ms */
#define FDS_MAX   5

/* --- who there is --------------------------------------------------------------------------------------- */

static bool fds_send(int to, const void *bytes, size_t size, const int *fds, size_t count)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(FDS_MAX * sizeof *fds)];
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(count * sizeof *fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), fds, count * sizeof *fds);
    }
    return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Receives a text and the descriptor that came with it (-1: none). Returns the text's length, 0 at the
 * end. */
static ssize_t fd_receive(int from, char *text, size_t room, int *ret_fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = text, .iov_len = room - 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t length = recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    const struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    *ret_fd = -1;
    if (header != NULL && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(ret_fd, CMSG_DATA(header), sizeof *ret_fd);
    }
    text[length > 0 ? length : 0] = '\0';
    return length;
}

void warm_begin(struct shim *shim)
{
    int fds[2];
    size_t count = 0;
    shim->warm.source = SHIM_WARM_FD;
    if (shim->shared.own) {
        fds[count++] = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        fds[count++] = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
    }
    if (!fds_send(shim->warm.source, "enter", 5, fds, count) ||
        !shim_watch(shim, shim->warm.source, WATCH_WARM, 0)) {
        warm_end(shim);
    }
    for (size_t i = 0; i < count; i++) {
        close(fds[i]);
    }
}

/* The source has closed its end: all workers that it forked have arrived. */
static void workers_complete(struct shim *shim)
{
    close(shim->warm.source);
    shim->warm.source = -1;
    if (shim->phase == PHASE_IDLE) {
        agent_socket_mention(shim, "warm %zu", shim->warm.count);
    }
}

void warm_hear(struct shim *shim)
{
    char text[64];
    int fd;
    int64_t pid;
    ssize_t length = fd_receive(shim->warm.source, text, sizeof text, &fd);
    if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR)) {
        workers_complete(shim);
    } else if (fd >= 0 && strncmp(text, "worker ", 7) == 0 && shim->warm.count < LIMIT_NODE_DEVICES &&
               shim_number(text + 7, 1, INT32_MAX, &pid)) {
        shim->warm.workers[shim->warm.count++] = (struct warm_worker){.pid = (pid_t)pid, .voice = fd};
    } else if (fd >= 0) {
        close(fd);
    }
}

void warm_end(struct shim *shim)
{
    struct warm *warm = &shim->warm;
    if (warm->source >= 0) {
        close(warm->source);
        warm->source = -1;
    }
    while (warm->count > 0) {
        close(warm->workers[--warm->count].voice); /* the worker ends when its socket closes */
    }
}

/* --- identities ----------------------------------------------------------------------------------------- */

struct bytes {
    char *at;
    size_t length, room;
};

static void bytes_add(struct bytes *bytes, const char *text)
{
    size_t length = strlen(text) + 1;
    while (bytes->length + length > bytes->room) {
        bytes->room = bytes->room > 0 ? 2 * bytes->room : 8 * KIB;
        bytes->at = shim_resize(bytes->at, bytes->room, 1);
    }
    memcpy(bytes->at + bytes->length, text, length);
    bytes->length += length;
}

static void field_add(struct bytes *bytes, const char *key, const char *value)
{
    bytes_add(bytes, key);
    bytes_add(bytes, value);
}

static void number_add(struct bytes *bytes, const char *key, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    field_add(bytes, key, text);
}

static struct bytes identity_make(const struct shim *shim, const struct warm_start *start)
{
    struct bytes bytes = {0};
    number_add(&bytes, "shim", getpid());
    number_add(&bytes, "cgroup", start->cgroup >= 0);
    number_add(&bytes, "store", start->store >= 0);
    field_add(&bytes, "cwd", shim->launch.cwd);
    for (size_t i = 0; i < shim->launch.argument_count; i++) {
        field_add(&bytes, "arg", shim->launch.arguments[i]);
    }
    for (char *const *at = start->env; *at != NULL; at++) {
        field_add(&bytes, "env", *at);
    }
    return bytes;
}

static bool bytes_send(int to, const struct bytes *bytes)
{
    for (size_t done = 0; done < bytes->length;) {
        ssize_t sent = send(to, bytes->at + done, bytes->length - done, MSG_NOSIGNAL);
        if (sent <= 0 && errno != EINTR) {
            return false;
        }
        done += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

bool warm_give(const struct shim *shim, const struct warm_worker *worker, const struct warm_start *start)
{
    int fds[FDS_MAX] = {start->output[0], start->output[1], start->report};
    size_t count = 3;
    struct timeval patience = {.tv_sec = BECOME_MS / 1000};
    if (start->cgroup >= 0) {
        fds[count++] = start->cgroup;
    }
    if (start->store >= 0) {
        fds[count++] = start->store;
    }
    struct bytes bytes = identity_make(shim, start);
    int64_t size = (int64_t)bytes.length;
    setsockopt(worker->voice, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    bool given = fds_send(worker->voice, &size, sizeof size, fds, count) && bytes_send(worker->voice, &bytes);
    free(bytes.at);
    return given;
}

/* --- what became of them -------------------------------------------------------------------------------- */

static bool is_readable(int fd, int64_t until_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int64_t left_ms = until_ms - shim_boot_ms();
    int result;
    while ((result = poll(&poll_fd, 1, (int)(left_ms > 0 ? left_ms : 0))) < 0 && errno == EINTR) {
        left_ms = until_ms - shim_boot_ms();
    }
    return result > 0;
}

enum warm_end warm_await(const struct warm_worker *worker, int report, struct report *ret_report, char *said,
                         size_t room)
{
    bool ready = is_readable(report, shim_boot_ms() + BECOME_MS);
    if (ready && read(report, ret_report, sizeof *ret_report) == sizeof *ret_report) {
        return WARM_FAILED;
    }
    ssize_t length = ready ? recv(worker->voice, said, room - 1, MSG_DONTWAIT) : 0;
    said[length > 0 ? length : 0] = '\0';
    if (length > 0) {
        return WARM_RANK;
    }
    kill(worker->pid, SIGKILL); /* not reaped, so the number is still its own; no rank has begun in it */
    return WARM_NOTHING;
}
