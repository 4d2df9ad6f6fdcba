/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the attempt its own shared memory: a /dev/shm and System V objects that its ranks on this node share
 * and that no other job sees. Objects that ranks leave there go with the attempt, and killed ranks always
 * leave some; among the host's objects nobody could tell whose they are. This needs root; without it the
 * ranks use the host's shared memory.
 * The shim enters the namespaces before there is an attempt, because a person waits for the start. Later
 * mounts of the host reach them where the host's root is shared, as under systemd. Elsewhere a shim that
 * waited during a mount enters new namespaces. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#define SHM_FOLDER "/dev/shm"

/* As large as the host's /dev/shm. */
static bool shm_mount(void)
{
    struct statvfs host;
    char options[64];
    if (statvfs(SHM_FOLDER, &host) != 0) {
        return false;
    }
    snprintf(options, sizeof options, "mode=1777,size=%llu",
             (unsigned long long)host.f_blocks * (unsigned long long)host.f_frsize);
    return mount("gpuctl", SHM_FOLDER, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
}

/* Mounts made here do not show on the host. */
static bool enter(void)
{
    return unshare(CLONE_NEWNS | CLONE_NEWIPC) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
           shm_mount();
}

/* The agent has tested whether this host permits it. */
void shared_enter(struct shared *shared)
{
    shared->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    shared->host = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    shared->own = shared->host >= 0 && enter();
    if (!shared->own) {
        shim_log_error("ranks share memory with the host: %s", strerror(errno));
    }
}

void shared_renew(struct shared *shared)
{
    struct pollfd change = {.fd = shared->mounts, .events = POLLPRI};
    if (shared->own && poll(&change, 1, 0) > 0) {
        shared->own = setns(shared->host, CLONE_NEWNS) == 0 && enter();
    }
}

/* The shim may live on for long after its attempt, until it is told to end. */
void shared_release(struct shared *shared)
{
    if (shared->own) {
        shared->own = false;
        umount2(SHM_FOLDER, MNT_DETACH);
        unshare(CLONE_NEWIPC);
    }
}
