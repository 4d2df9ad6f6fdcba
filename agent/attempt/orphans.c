/* SPDX-License-Identifier: Apache-2.0 */
/* Kills the processes that a lost shim left behind. A killed shim takes its ranks with it, but not the
 * processes that they started. These are in the attempt's cgroup; on a node without cgroups they still carry
 * the environment of their rank. */
#include "agent/attempt/orphans.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/launch/cgroup.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define SOCKET            "GPUCTL_SOCKET="
#define ENVIRONMENT_BYTES (4 * MIB) /* near the kernel's own limit */

/* How to recognise the processes. */
struct wanted {
    const char *attempt_id; /* "GPUCTL_EPOCH=..." */
    struct stat run; /* the attempt's run folder: two clusters on one machine may use the same attempt id */
};

static bool is_in(const char *socket, const struct stat *folder)
{
    const char *slash = strrchr(socket, '/');
    autofree char *path = xprintf("%.*s", slash != NULL ? (int)(slash - socket) : 0, socket);
    struct stat status;
    return stat(path, &status) == 0 && status.st_dev == folder->st_dev && status.st_ino == folder->st_ino;
}

enum look { LOOK_OTHER, LOOK_WANTED, LOOK_UNKNOWN };

/* For a process that cannot be looked at: it is gone or a stranger's, or resources for a look were
 * missing. */
static enum look look_failed(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? LOOK_UNKNOWN : LOOK_OTHER;
}

static enum look look_at(const char *pid, const struct wanted *wanted)
{
    autofree char *path = xprintf("/proc/%s/environ", pid);
    autofree char *environment = NULL;
    size_t length;
    bool attempt_id = false, run = false;
    if (!file_read(path, ENVIRONMENT_BYTES, &environment, &length, NULL)) {
        return look_failed();
    }
    for (const char *at = environment; at < environment + length; at += strlen(at) + 1) {
        attempt_id = attempt_id || strcmp(at, wanted->attempt_id) == 0;
        run = run || (strncmp(at, SOCKET, strlen(SOCKET)) == 0 && is_in(at + strlen(SOCKET), &wanted->run));
    }
    return attempt_id && run ? LOOK_WANTED : LOOK_OTHER;
}

/* Kills the process if it is wanted; true if it needs no further look. The pidfd is opened before the look,
 * so the kill reaches the process that was looked at. */
static bool is_done(const char *pid, const struct wanted *wanted)
{
    int64_t number;
    if (!text_to_int(pid, 1, INT32_MAX, &number)) {
        return true; /* not a process */
    }
    autoclose int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)number, 0);
    enum look look = pidfd >= 0 ? look_at(pid, wanted) : look_failed();
    if (look == LOOK_WANTED) {
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    }
    return look == LOOK_OTHER;
}

static bool sweep(uint64_t attempt_id, const char *run)
{
    autofree char *variable = xprintf("GPUCTL_EPOCH=%llu", (unsigned long long)attempt_id);
    struct wanted wanted = {.attempt_id = variable};
    autonames struct file_names processes = {0};
    if (stat(run, &wanted.run) != 0) {
        return errno == ENOENT;
    }
    bool clear = file_list("/proc", &processes, NULL);
    for (size_t i = 0; i < processes.count; i++) {
        clear = is_done(processes.items[i], &wanted) && clear;
    }
    return clear;
}

bool orphans_kill(const char *cgroup, uint64_t attempt_id, const char *run)
{
    return cgroup != NULL ? cgroup_clear(cgroup) : sweep(attempt_id, run);
}
