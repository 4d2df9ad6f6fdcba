/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the last resort. A killed shim takes its ranks with it, but not what they started; that is in the
 * attempt's cgroup, or, where the node has none, still carries the environment of the rank it came from. */
#include "agent/remains.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/cgroup.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define ENVIRONMENT_BYTES (4 * MIB) /* the kernel's own limit is near it */

static bool names_epoch(const char *pid, const char *variable)
{
    autofree char *path = xprintf("/proc/%s/environ", pid);
    autofree char *environment = NULL;
    size_t length;
    if (!file_read(path, ENVIRONMENT_BYTES, &environment, &length, NULL)) {
        return false;
    }
    for (const char *at = environment; at < environment + length; at += strlen(at) + 1) {
        if (strcmp(at, variable) == 0) {
            return true;
        }
    }
    return false;
}

/* The pidfd is opened before the look, so that the process looked at is the one that is killed. */
static bool kill_if_named(const char *pid, const char *variable)
{
    int64_t number;
    if (!text_to_int(pid, 1, INT32_MAX, &number)) {
        return false;
    }
    autoclose int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)number, 0);
    if (pidfd < 0 || !names_epoch(pid, variable)) {
        return false;
    }
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    return true;
}

static bool sweep(uint64_t epoch)
{
    autofree char *variable = xprintf("GPUCTL_EPOCH=%llu", (unsigned long long)epoch);
    bool found = false;
    DIR *listing = opendir("/proc");
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        found = kill_if_named(entry->d_name, variable) || found;
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return !found;
}

bool remains_clear(const char *cgroup, int cgroup_version, uint64_t epoch)
{
    return cgroup != NULL ? cgroup_clear(cgroup, cgroup_version) : sweep(epoch);
}
