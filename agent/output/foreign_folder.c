/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through folders of ranks by descriptors, so that nobody can put a link on the way meanwhile. */
#include "agent/output/foreign_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/wire/files/kept_files.h"

#define NS_PER_S 1000000000LL

static int64_t ns_of(const struct timespec *time)
{
    int64_t ns = (int64_t)time->tv_sec * NS_PER_S + time->tv_nsec;
    return ns > 0 ? ns : 0;
}

static struct foreign_file file_of(char *path, const struct stat *status)
{
    return (struct foreign_file){.path = path,
                                 .size = (int64_t)status->st_size,
                                 .modified_ns = ns_of(&status->st_mtim),
                                 .changed_ns = ns_of(&status->st_ctim),
                                 .inode = status->st_ino,
                                 .executable = (status->st_mode & S_IXUSR) != 0};
}

static bool is_plain(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_nlink == 1;
}

static void leave_out(struct foreign_list *list, int64_t bytes)
{
    list->left_files++;
    list->left_bytes += bytes;
}

/* Takes path over. */
static void add(struct foreign_list *list, char *path, const struct stat *status)
{
    if (!is_plain(status) || !kept_path_is_good(path)) {
        leave_out(list, S_ISREG(status->st_mode) ? (int64_t)status->st_size : 0);
        free(path);
        return;
    }
    XGROW(list->files, list->count, list->room, 16);
    list->files[list->count++] = file_of(path, status);
}

static void look(struct foreign_list *list, int folder, const char *prefix, int level);

static void look_at(struct foreign_list *list, int folder, const char *prefix, const char *name, int level)
{
    struct stat status;
    autofree char *path = xprintf("%s%s", prefix, name);
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        list->gap = GAP_UNREAD; /* perhaps it has another name now, which was not seen */
        return;
    }
    if (!S_ISDIR(status.st_mode)) {
        add(list, give(path), &status);
        return;
    }
    autofree char *inner = xprintf("%s/", path);
    int below = level < LIMIT_KEPT_LEVELS
                    ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                    : -1;
    if (below < 0) {
        list->gap = level < LIMIT_KEPT_LEVELS ? GAP_UNREAD : GAP_DEEP;
        leave_out(list, 0);
    } else {
        look(list, below, inner, level + 1);
    }
}

/* Takes the folder over. */
static void look(struct foreign_list *list, int folder, const char *prefix, int level)
{
    DIR *listing = fdopendir(folder);
    const struct dirent *entry;
    if (listing == NULL) {
        list->gap = GAP_UNREAD;
        close(folder);
        return;
    }
    while ((entry = readdir(listing)) != NULL && list->looks < LIMIT_KEPT_LOOKS) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            list->looks++;
            look_at(list, dirfd(listing), prefix, entry->d_name, level);
        }
    }
    if (entry != NULL) {
        list->gap = GAP_MANY;
        leave_out(list, 0); /* nobody knows how many more */
    }
    closedir(listing);
}

static int by_path(const void *left, const void *right)
{
    return strcmp(((const struct foreign_file *)left)->path, ((const struct foreign_file *)right)->path);
}

void foreign_list_read(int folder, struct foreign_list *ret_list)
{
    *ret_list = (struct foreign_list){0};
    int listed = folder >= 0 ? openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (listed >= 0) {
        look(ret_list, listed, "", 0);
    }
    if (ret_list->count > 0) {
        qsort(ret_list->files, ret_list->count, sizeof *ret_list->files, by_path);
    }
}

void foreign_list_finish(struct foreign_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->files[i].path);
    }
    free(list->files);
    *list = (struct foreign_list){0};
}

int foreign_open(int folder, const char *path, struct foreign_file *ret_file)
{
    const struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    struct stat status;
    autoclose int file = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (file < 0 || fstat(file, &status) != 0 || !is_plain(&status)) {
        return -1;
    }
    if (ret_file != NULL) {
        *ret_file = file_of((char *)(uintptr_t)path, &status);
    }
    return give_fd(&file);
}
