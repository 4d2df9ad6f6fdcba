/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the attempt its own shared memory: a /dev/shm and System V objects that its ranks on this node share
 * and that no other job sees. Objects that ranks leave there go with the attempt, and killed ranks always
 * leave some; among the host's objects nobody could tell whose they are. This needs root; without it the
 * ranks use the host's shared memory.
 * The shim enters the namespaces before there is an attempt, because a person waits for the start. Later
 * mounts of the host reach them where the host's root is shared, as under systemd. Elsewhere a shim that
 * waited during a mount enters new namespaces. So does one whose attempt has mounted something, or has left
 * something in /dev/shm. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/common/image_root.h"
#include "agent/common/volume_mount.h"
#include "proto/base/cleanup.h"

#define SHM_FOLDER "/dev/shm"
#define SHM_MODE   01777
#define MOUNTS     "/proc/self/mountinfo"

/* As large as the host's /dev/shm. */
static bool shm_mount(void)
{
    struct statvfs host;
    char options[64];
    if (statvfs(SHM_FOLDER, &host) != 0) {
        return false;
    }
    snprintf(options, sizeof options, "mode=%o,size=%llu", SHM_MODE,
             (unsigned long long)host.f_blocks * (unsigned long long)host.f_frsize);
    return mount("gpuctl", SHM_FOLDER, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
}

/* Mounts made here do not show on the host. */
static bool enter(struct shared *shared)
{
    cleanup_close(&shared->own_mounts);
    shared->own_mounts = -1;
    shared->used = false;
    shared->entered++;
    return unshare(CLONE_NEWNS | CLONE_NEWIPC) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
           shm_mount() && (shared->own_mounts = open(MOUNTS, O_RDONLY | O_CLOEXEC)) >= 0;
}

/* The agent has tested whether this host permits it. */
void shared_enter(struct shared *shared)
{
    shared->mounts = open(MOUNTS, O_RDONLY | O_CLOEXEC);
    shared->host = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    shared->own = shared->host >= 0 && enter(shared);
    if (!shared->own) {
        shim_log_error("ranks share memory with the host: %s", strerror(errno));
    }
}

static bool has_changed(int mounts)
{
    struct pollfd change = {.fd = mounts, .events = POLLPRI};
    return poll(&change, 1, 0) != 0;
}

bool shared_renew(struct shared *shared)
{
    if (shared->own && (shared->used || has_changed(shared->mounts))) {
        shared->own = setns(shared->host, CLONE_NEWNS) == 0 && enter(shared);
        return shared->own;
    }
    return true;
}

/* Where every user of the host may write. */
static const char *const tmp_folders[] = {"/tmp", "/var/tmp", "/run/lock"};
#define TMP_FOLDERS (sizeof tmp_folders / sizeof tmp_folders[0])

/* The host's managers of users, which start processes outside of the attempt's cgroup; its journal, in which
 * a rank would speak as the agent's unit and use up the unit's rate; its POSIX queues, which outlive ranks.
 */
static const char *const hidden_folders[] = {"/run/user", "/run/systemd/journal", "/dev/mqueue"};
#define HIDDEN_FOLDERS (sizeof hidden_folders / sizeof hidden_folders[0])

/* Not every host has all of these folders. */
static bool hide_services(struct why *why)
{
    for (size_t i = 0; i < HIDDEN_FOLDERS; i++) {
        if (mount("gpuctl", hidden_folders[i], "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
                  "mode=555,size=4k") != 0 &&
            errno != ENOENT) {
            return why_set(why, "cannot hide %s: %s", hidden_folders[i], strerror(errno));
        }
    }
    return true;
}

static bool hide_processes(struct why *why)
{
    return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=invisible") == 0 ||
           why_set(why, "cannot hide the processes of others: %s", strerror(errno));
}

/* The attempt's folders come on top of these. */
bool shared_hide(const struct shared *shared, struct why *why)
{
    for (size_t i = 0; i < TMP_FOLDERS && shared->own; i++) {
        if (mount("gpuctl", tmp_folders[i], "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m") != 0 &&
            errno != ENOENT) {
            return why_set(why, "cannot give workers their own %s: %s", tmp_folders[i], strerror(errno));
        }
    }
    return !shared->own || (hide_services(why) && hide_processes(why));
}

/* Ends with the namespace: shared_release finds that the mounts have changed. */
bool shared_shut(struct shared *shared, const char *tmp, struct why *why)
{
    if (!shared->own || tmp == NULL) {
        return true;
    }
    for (size_t i = 0; i < TMP_FOLDERS; i++) {
        if (mount(tmp, tmp_folders[i], NULL, MS_BIND, NULL) != 0 &&
            (errno != ENOENT || access(tmp_folders[i], F_OK) == 0)) {
            return why_set(why, "cannot give the job its own %s: %s", tmp_folders[i], strerror(errno));
        }
    }
    return hide_services(why) && hide_processes(why);
}

/* In the namespaces of the attempt alone. A container has its own mounts. */
bool shared_mount(const struct shared *shared, const struct launch *launch, struct why *why)
{
    struct err err;
    if (launch->image != NULL) {
        return true;
    }
    if (launch->volume_count > 0 && !shared->own) {
        return why_set(why, "this node mounts no volumes: ranks have no mounts of their own");
    }
    for (size_t i = 0; i < launch->volume_count; i++) {
        const struct launch_volume *volume = &launch->volumes[i];
        if (!volume_mount(volume->from, volume->at, volume->read_only, &err)) {
            return why_set(why, "cannot mount a volume: %s", err.text);
        }
    }
    return true;
}

/* An empty tmpfs has one inode. */
static bool shm_is_as_made(void)
{
    struct stat folder;
    struct statvfs shm;
    return statvfs(SHM_FOLDER, &shm) == 0 && shm.f_files > 0 && shm.f_files - shm.f_ffree == 1 &&
           stat(SHM_FOLDER, &folder) == 0 && folder.st_mode == (S_IFDIR | SHM_MODE);
}

/* The shim may live on for long after its attempt. New System V objects have a namespace of their own. */
void shared_release(struct shared *shared)
{
    if (!shared->own) {
        return;
    }
    shared->used = unshare(CLONE_NEWIPC) != 0 || has_changed(shared->own_mounts) || !shm_is_as_made();
    if (shared->used) {
        umount2(SHM_FOLDER, MNT_DETACH);
    }
}

/* --- containers ----------------------------------------------------------------------------------------- */

/* Never returns. It is in the attempt's cgroup, and leads a session, so that it can be killed as a whole. */
static _Noreturn void maker_run(struct shim *shim, const char *run, int said)
{
    sigset_t none;
    secrets_forget(shim); /* its own copy; a process that is not dumpable cannot map its user */
    for (size_t i = 0; i < SHIM_IGNORED_COUNT; i++) {
        signal(shim_ignored[i], SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    int cgroup = shim->cgroup >= 0 ? openat(shim->cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC) : -1;
    bool entered = cgroup < 0 || write(cgroup, "0", 1) == 1;
    dup2(shim->null, STDIN_FILENO);
    dup2(shim->null, STDOUT_FILENO);
    dup2(said, STDERR_FILENO);
    if (entered) {
        image_root_make(shim->launch.image, shim->launch.logs, run);
    }
    _exit(1);
}

bool container_make(struct shim *shim, struct why *why)
{
    struct container *container = &shim->container;
    char *run = getcwd(NULL, 0);
    int ends[2];
    if (run == NULL || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        free(run);
        return why_set(why, "cannot make a pipe: %s", strerror(errno));
    }
    unlink(IMAGE_PID_FILE);
    pid_t pid = fork();
    if (pid == 0) {
        maker_run(shim, run, ends[1]);
    }
    close(ends[1]);
    free(run);
    container->said = ends[0];
    container->maker = pid > 0 ? pid : 0;
    container->state = CONTAINER_MAKING;
    return pid > 0 || why_set(why, "cannot start a process: %s", strerror(errno));
}

static int namespace_open(long pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/ns/%s", pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* The runtime has left a process that waits for its start, and is needed for its namespaces alone. */
static bool namespaces_take(struct container *container)
{
    char text[32] = "";
    autoclose int file = open(IMAGE_PID_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    long pid = length > 0 ? strtol(text, NULL, 10) : 0;
    if (pid <= 1) {
        return false;
    }
    container->mounts = namespace_open(pid, "mnt");
    container->users = geteuid() != 0 ? namespace_open(pid, "user") : -1;
    kill((pid_t)pid, SIGKILL);
    return container->mounts >= 0 && (geteuid() == 0 || container->users >= 0);
}

bool container_ended(struct shim *shim, pid_t pid, int status, bool *ret_made, struct why *why)
{
    struct container *container = &shim->container;
    char text[LIMIT_SHIM_TEXT / 2] = "";
    if (container->maker == 0 || pid != container->maker) {
        return false;
    }
    container->maker = 0;
    ssize_t length = read(container->said, text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    *ret_made = ended && namespaces_take(container);
    container->state = *ret_made ? CONTAINER_MADE : container->state;
    if (!*ret_made) {
        why_set(why, "no container could be made of the image: %s",
                text[0] != '\0' ? text
                : ended         ? "crun has made none"
                                : "crun was killed");
    }
    return true;
}

bool container_enter(const struct container *container)
{
    return (container->users < 0 || syscall(SYS_setns, container->users, CLONE_NEWUSER) == 0) &&
           syscall(SYS_setns, container->mounts, CLONE_NEWNS) == 0;
}

void container_close(struct shim *shim)
{
    struct container *container = &shim->container;
    if (container->maker > 0) {
        kill(-container->maker, SIGKILL);
        kill(container->maker, SIGKILL); /* it may not lead its session yet */
        waitpid(container->maker, NULL, 0);
        cgroup_kill(shim);
    }
    cleanup_close(&container->said);
    cleanup_close(&container->users);
    cleanup_close(&container->mounts);
    free(container->address);
    free(container->interface);
    *container = (struct container){.said = -1, .users = -1, .mounts = -1};
}
