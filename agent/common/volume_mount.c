/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts volumes. The job chooses the place, and root mounts there: so no link is followed on the way, a
 * place that holds anything is refused, and folders are made only where no user can. All of it goes by
 * descriptors, so nothing changes between a check and the mount. */
#include "agent/common/volume_mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define FOLDER_MODE 0755

/* Folders that root makes others in. */
static const char *const parents[] = {"", "/data", "/media", "/mnt", "/srv"};
#define PARENTS (sizeof parents / sizeof parents[0])

static int open_folder(const char *path)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                 .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

static bool may_make(const char *at)
{
    size_t length = (size_t)(strrchr(at, '/') - at);
    for (size_t i = 0; i < PARENTS; i++) {
        if (strlen(parents[i]) == length && strncmp(at, parents[i], length) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether a folder, opened as a path, has no entries. */
static bool is_empty(int folder)
{
    int readable = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = readable >= 0 ? fdopendir(readable) : NULL;
    if (entries == NULL) {
        cleanup_close(&readable);
        return false;
    }
    size_t count = 0;
    while (count <= 2 && readdir(entries) != NULL) {
        count++;
    }
    closedir(entries);
    return count <= 2; /* . and .. */
}

static bool refuse(const char *at, const char *what, struct err *err)
{
    return err_field(err, ERR_FIELD, "volumes",
                     "mount it at /mnt/NAME, or at a folder that is there and empty",
                     "nothing can be mounted at %.200s of this node: %s", at, what);
}

bool volume_place_check(const char *at, struct err *err)
{
    autoclose int folder = open_folder(at);
    if (folder >= 0) {
        return is_empty(folder) || refuse(at, "it is a folder that is not empty", err);
    }
    return (errno == ENOENT && may_make(at)) ||
           refuse(at, errno == ENOENT ? "there is no such folder" : strerror(errno), err);
}

static bool is_same(int a, int b)
{
    struct stat one, other;
    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* The place as a descriptor. */
static int take_place(const char *at, int tree, struct err *err)
{
    int place = open_folder(at);
    if (place < 0 && errno == ENOENT && may_make(at) && (mkdir(at, FOLDER_MODE) == 0 || errno == EEXIST)) {
        place = open_folder(at);
    }
    if (place < 0) {
        err_errno(err, "%.200s", at);
        return -1;
    }
    if (!is_same(place, tree) && !is_empty(place)) {
        refuse(at, "it is a folder that is not empty", err);
        cleanup_close(&place);
        return -1;
    }
    return place;
}

bool volume_mount(const char *from, const char *at, bool read_only, struct err *err)
{
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                (read_only ? MOUNT_ATTR_RDONLY : 0)};
    autoclose int tree =
        (int)syscall(SYS_open_tree, AT_FDCWD, from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0 || syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
                            sizeof attributes) != 0) {
        return err_errno(err, "%.200s", from);
    }
    autoclose int place = take_place(at, tree, err);
    return place >= 0 && (syscall(SYS_move_mount, tree, "", place, "",
                                  MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0 ||
                          err_errno(err, "%.200s", at));
}
