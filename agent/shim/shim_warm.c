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
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/common/cgroup_tree.h"
#include "agent/common/fd_message.h"
#include "proto/base/cleanup.h"

#define BECOME_MS 5000 /* it usually takes a few ms */

/* --- who is there --------------------------------------------------------------------------------------- */

void warm_begin(struct shim *shim)
{
    int fds[2] = {-1, -1};
    size_t count = 0;
    shim->warm.source = SHIM_WARM_FD;
    if (shim->shared.own) {
        fds[count++] = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        fds[count++] = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
    }
    if (!fd_message_send(shim->warm.source, "enter", 5, fds, count, 0) ||
        !shim_watch(shim, shim->warm.source, WATCH_WARM, 0)) {
        warm_end(shim);
    }
    for (size_t i = 0; i < count; i++) {
        close(fds[i]);
    }
}

/* Starts it as the user, who sees no more of the host from there than a rank does. */
static bool source_start(struct shim *shim, struct launch *launch, struct why *why)
{
    int pair[2];
    if (launch->cgroup != NULL &&
        (shim->warm.cgroup = open(launch->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        return why_set(why, "cgroup %s: %s", launch->cgroup, strerror(errno));
    }
    if (!shared_hide(&shim->shared, why)) {
        return false;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return why_set(why, "there is no socket for workers: %s", strerror(errno));
    }
    autoclose int theirs = pair[1];
    shim->warm.source = pair[0];
    return rank_breed(shim, launch, theirs, why) &&
           ((fd_message_send(shim->warm.source, "enter", 5, NULL, 0, 0) &&
             shim_watch(shim, shim->warm.source, WATCH_WARM, 0)) ||
            why_set(why, "it has ended: %s", strerror(errno)));
}

void warm_breed(struct shim *shim, const char *folder)
{
    struct launch launch = {0};
    struct why why;
    shim->warm.bred = true;
    bool read = chdir(folder) == 0 ? launch_read(&launch, -1, &why)
                                   : why_set(&why, "%s: %s", folder, strerror(errno));
    if (chdir("/") != 0 || !read || !source_start(shim, &launch, &why)) {
        warm_end(shim);
        agent_socket_mention(shim, "unfit %s", why.text);
    }
    launch_finish(&launch);
}

/* The source has closed its end: all workers that it forked have arrived. */
static void workers_complete(struct shim *shim)
{
    const struct warm *warm = &shim->warm;
    close(warm->source);
    shim->warm.source = -1;
    if (shim->phase == PHASE_IDLE) {
        agent_socket_mention(shim, "warm %zu %d", warm->count,
                             warm->count > 0 ? (int)warm->workers[0].pid : 0);
    }
}

void warm_hear(struct shim *shim)
{
    char text[LIMIT_SHIM_MESSAGE];
    int fd;
    int64_t pid;
    ssize_t length = fd_message_receive(shim->warm.source, text, sizeof text, &fd);
    if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR)) {
        workers_complete(shim);
    } else if (fd < 0 && strncmp(text, "unfit ", 6) == 0) {
        agent_socket_mention(shim, "%s", text);
    } else if (fd >= 0 && strncmp(text, "worker ", 7) == 0 && shim->warm.count < LIMIT_NODE_DEVICES &&
               text_to_int(text + 7, 1, INT32_MAX, &pid)) {
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
    if (warm->breeder >= 0) {
        syscall(SYS_pidfd_send_signal, warm->breeder, SIGKILL, NULL, 0);
        close(warm->breeder);
        warm->breeder = -1;
    }
    if (warm->cgroup >= 0) { /* the ranks have left it */
        cgroup_tree_kill(warm->cgroup);
        close(warm->cgroup);
        warm->cgroup = -1;
    }
}

/* What runs without a cgroup of its own may have started processes that live on. */
void warm_abandon(struct shim *shim)
{
    struct pid_list list;
    if (shim->warm.bred && shim->phase == PHASE_IDLE) {
        pid_list_begin(&list);
        sweep_collect(&list);
        sweep_signal(&list, SIGKILL);
        pid_list_finish(&list);
    }
}

/* --- identities ----------------------------------------------------------------------------------------- */

static void write_identity(const struct shim *shim, const struct warm_start *start, struct text *identity)
{
    launch_put_int(identity, "shim", getpid());
    launch_put_int(identity, "cgroup", start->cgroup >= 0);
    launch_put_int(identity, "store", start->store >= 0);
    launch_put(identity, "cwd", shim->launch.cwd);
    for (size_t i = 0; i < shim->launch.argument_count; i++) {
        launch_put(identity, "arg", shim->launch.arguments[i]);
    }
    for (char *const *at = start->env; *at != NULL; at++) {
        launch_put(identity, "env", *at);
    }
}

static bool send_all(int to, const struct text *text)
{
    for (size_t done = 0; done < text->length;) {
        ssize_t sent = send(to, text->bytes + done, text->length - done, MSG_NOSIGNAL);
        if (sent <= 0 && errno != EINTR) {
            return false;
        }
        done += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

bool warm_give(const struct shim *shim, const struct warm_worker *worker, const struct warm_start *start)
{
    int fds[FD_MESSAGE_MAX] = {start->output[0], start->output[1], start->report};
    size_t count = 3;
    struct timeval patience = {.tv_sec = BECOME_MS / 1000};
    if (start->cgroup >= 0) {
        fds[count++] = start->cgroup;
    }
    if (start->store >= 0) {
        fds[count++] = start->store;
    }
    autotext struct text identity = {0};
    write_identity(shim, start, &identity);
    int64_t size = (int64_t)identity.length;
    setsockopt(worker->voice, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return fd_message_send(worker->voice, &size, sizeof size, fds, count, 0) &&
           send_all(worker->voice, &identity);
}

/* --- what became of them -------------------------------------------------------------------------------- */

static bool is_readable(int fd, int64_t until_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int64_t left_ms = until_ms - clock_boot_ms();
    int result;
    while ((result = poll(&poll_fd, 1, (int)(left_ms > 0 ? left_ms : 0))) < 0 && errno == EINTR) {
        left_ms = until_ms - clock_boot_ms();
    }
    return result > 0;
}

enum warm_end warm_await(const struct warm_worker *worker, int report, struct report *ret_report, char *said,
                         size_t room)
{
    bool ready = is_readable(report, clock_boot_ms() + BECOME_MS);
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
