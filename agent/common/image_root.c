/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the files of a container together with overlayfs, and has crun make the container. All mounts are in
 * namespaces that only its processes have, so the kernel takes everything back, whoever was killed. */
#include "agent/common/image_root.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

#define CGROUPS       "/sys/fs/cgroup"
#define CGROUP2_MAGIC 0x63677270
#define CONTAINER     "job"

static bool write_file(const char *path, const char *text)
{
    autoclose int file = open(path, O_WRONLY | O_CLOEXEC);
    return file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
}

/* The agent's user is root in its own user namespace, and has no more rights outside of it. */
static bool become_root(void)
{
    autofree char *users = xprintf("0 %u 1\n", (unsigned)geteuid());
    autofree char *groups = xprintf("0 %u 1\n", (unsigned)getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", users) && write_file("/proc/self/gid_map", groups);
}

/* crun refuses hosts that mix both versions of cgroups, even where it is told to leave them alone. */
static bool hide_cgroups(void)
{
    struct statfs system;
    return statfs(CGROUPS, &system) != 0 || system.f_type == CGROUP2_MAGIC ||
           mount("gpuctl", CGROUPS, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755,size=4k") == 0;
}

static bool make_folders(const char *logs)
{
    static const char *const parts[] = {"upper", "work", IMAGE_MERGED};
    autofree char *folder = xprintf("%s/" IMAGE_FOLDER, logs);
    bool made = (mkdir(folder, 0700) == 0 || errno == EEXIST) && chdir(folder) == 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && made; i++) {
        made = mkdir(parts[i], 0755) == 0 || errno == EEXIST;
    }
    return made && chmod("upper", 0755) == 0; /* whatever the umask is: it becomes the mode of / */
}

/* By a descriptor, because colons and commas of a path would be taken for separators. */
static bool mount_overlay(const char *image, bool root)
{
    autoclose int lower = open(image, O_RDONLY | O_DIRECTORY);
    autofree char *options =
        xprintf("%slowerdir=/proc/self/fd/%d,upperdir=upper,workdir=work", root ? "" : "userxattr,", lower);
    return lower >= 0 && mount("gpuctl", IMAGE_MERGED, "overlay", MS_NODEV, options) == 0;
}

void image_root_make(const char *image, const char *logs, const char *run)
{
    bool root = geteuid() == 0;
    autofree char *bundle = xprintf("%s/" IMAGE_BUNDLE, run);
    autofree char *state = xprintf("%s/" IMAGE_BUNDLE "/state", run);
    autofree char *pid_file = xprintf("%s/" IMAGE_PID_FILE, run);
    const char *what = "namespaces of their own";
    bool made = root ? unshare(CLONE_NEWNS) == 0 : become_root();
    made = made && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 && hide_cgroups();
    if (made) {
        what = "folders for what they write";
        made = make_folders(logs);
    }
    if (made) {
        what =
            "an overlay of the image; gpuagent --state must be on a file system that overlayfs can write to";
        made = mount_overlay(image, root);
    }
    if (!made) {
        dprintf(STDERR_FILENO, "the ranks cannot get %s: %s\n", what, strerror(errno));
        return;
    }
    execlp("crun", "crun", "--cgroup-manager=disabled", "--root", state, "create", "--bundle", bundle,
           "--pid-file", pid_file, CONTAINER, (char *)NULL);
    dprintf(STDERR_FILENO, "cannot execute crun: %s\n", strerror(errno));
}
