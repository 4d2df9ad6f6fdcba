/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the last resort. A killed shim takes its ranks with it, but not what they started; that is in the
 * attempt's cgroup, or, where the node has none, still carries the environment of the rank it came from. */
#include "agent/remains.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/cgroup.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define SOCKET            "GPUCTL_SOCKET="
#define ENVIRONMENT_BYTES (4 * MIB) /* the kernel's own limit is near it */

/* The processes that are looked for. */
struct wanted {
    const char *epoch; /* "GPUCTL_EPOCH=..." */
    struct stat run;   /* the attempt's run folder: epochs of two clusters on one machine may be the same */
};

static bool is_in(const char *socket, const struct stat *folder)
{
    const char *slash = strrchr(socket, '/');
    autofree char *path = xprintf("%.*s", slash != NULL ? (int)(slash - socket) : 0, socket);
    struct stat status;
    return stat(path, &status) == 0 && status.st_dev == folder->st_dev && status.st_ino == folder->st_ino;
}

static bool is_wanted(const char *pid, const struct wanted *wanted)
{
    autofree char *path = xprintf("/proc/%s/environ", pid);
    autofree char *environment = NULL;
    size_t length;
    bool epoch = false, run = false;
    if (!file_read(path, ENVIRONMENT_BYTES, &environment, &length, NULL)) {
        return false;
    }
    for (const char *at = environment; at < environment + length; at += strlen(at) + 1) {
        epoch = epoch || strcmp(at, wanted->epoch) == 0;
        run = run || (strncmp(at, SOCKET, strlen(SOCKET)) == 0 && is_in(at + strlen(SOCKET), &wanted->run));
    }
    return epoch && run;
}

/* The pidfd is opened before the look, so that the process looked at is the one that is killed. */
static bool kill_if_wanted(const char *pid, const struct wanted *wanted)
{
    int64_t number;
    if (!text_to_int(pid, 1, INT32_MAX, &number)) {
        return false;
    }
    autoclose int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)number, 0);
    if (pidfd < 0 || !is_wanted(pid, wanted)) {
        return false;
    }
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    return true;
}

static bool sweep(uint64_t epoch, const char *run)
{
    autofree char *variable = xprintf("GPUCTL_EPOCH=%llu", (unsigned long long)epoch);
    struct wanted wanted = {.epoch = variable};
    bool found = false;
    DIR *listing = stat(run, &wanted.run) == 0 ? opendir("/proc") : NULL;
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        found = kill_if_wanted(entry->d_name, &wanted) || found;
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return !found;
}

bool remains_clear(const char *cgroup, int cgroup_version, uint64_t epoch, const char *run)
{
    return cgroup != NULL ? cgroup_clear(cgroup, cgroup_version) : sweep(epoch, run);
}
