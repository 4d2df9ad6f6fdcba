/* SPDX-License-Identifier: Apache-2.0 */
/* Manages STATE/spare. An attempt's folder is complete or does not exist. Nothing of one attempt, neither
 * process nor data, gets into the folder of another, even after a loss of power: parts are reused only if
 * they are empty and unchanged. Reuse pays where the number of a removed file stays taken for minutes (ext4
 * without a journal): each new file would otherwise search for a free number behind those of all earlier
 * attempts. */
#include "agent/base/folder_pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define FIRST_OUT "0.stdout"
#define FIRST_ERR "0.stderr"

/* The parts of each folder. The exit record comes last: it is never reused. */
static const struct part {
    const char *name;
    mode_t mode;
} parts[] = {
    {SHIM_WORK_FOLDER, S_IFDIR | 0700},    {SHIM_ERRORS_FOLDER, S_IFDIR | 0700},
    {SHIM_RESULTS_FOLDER, S_IFDIR | 0700}, {FIRST_OUT, S_IFREG | 0600},
    {FIRST_ERR, S_IFREG | 0600},           {SHIM_EXIT_NEW_FILE, S_IFREG | 0600},
};
#define PART_COUNT   (sizeof parts / sizeof parts[0])
#define USABLE_COUNT (PART_COUNT - 1)

struct folder_pool {
    char *folder;
    struct trash *trash;
    uint64_t first, next;    /* folders with numbers from first to below next are ready */
    bool kept[USABLE_COUNT]; /* parts of earlier attempts that wait in the folder `next` */
};

struct folder_pool *folder_pool_create(const char *folder, struct trash *trash, struct err *err)
{
    trash_take(trash, folder);
    if (!file_make_directories(folder, 0700, err)) {
        return NULL;
    }
    struct folder_pool *folder_pool = xzalloc(sizeof *folder_pool);
    folder_pool->folder = xstrdup(folder);
    folder_pool->trash = trash;
    return folder_pool;
}

void folder_pool_destroy(struct folder_pool *folder_pool)
{
    if (folder_pool != NULL) {
        free(folder_pool->folder);
        free(folder_pool);
    }
}

static char *path_of(const struct folder_pool *folder_pool, uint64_t number)
{
    return xprintf("%s/%llu", folder_pool->folder, (unsigned long long)number);
}

/* The exit record gets its room on the disk now, so that no start waits for it; where it gets none, the shim
 * tries again. */
static bool make_file(int folder, const char *name)
{
    autoclose int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0 && strcmp(name, SHIM_EXIT_NEW_FILE) == 0) {
        int reserved = fallocate(file, FALLOC_FL_KEEP_SIZE, 0, SHIM_RECORD_BYTES(1));
        (void)reserved;
    }
    return file >= 0;
}

static bool make_part(int folder, const struct part *part)
{
    return S_ISDIR(part->mode) ? mkdirat(folder, part->name, 0700) == 0 : make_file(folder, part->name);
}

/* Some parts may exist already: those of an earlier attempt, or those made before the disk was full. */
static bool make(struct folder_pool *folder_pool, struct err *err)
{
    autofree char *path = path_of(folder_pool, folder_pool->next);
    bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
    autoclose int folder = made ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    for (size_t i = 0; i < PART_COUNT && made; i++) {
        made = folder >= 0 && (make_part(folder, &parts[i]) || errno == EEXIST);
    }
    if (!made) {
        return err_errno(err, "cannot make %s", path);
    }
    memset(folder_pool->kept, 0, sizeof folder_pool->kept);
    folder_pool->next++;
    return true;
}

static bool is_empty(const char *path)
{
    DIR *listing = opendir(path);
    size_t count = 0;
    while (listing != NULL && count <= 2 && readdir(listing) != NULL) {
        count++;
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return count == 2; /* "." and ".." */
}

/* A job may have replaced the part, or changed its rights, owner or attributes. */
static bool is_unused(const char *path, mode_t mode)
{
    struct stat status;
    return lstat(path, &status) == 0 && status.st_mode == mode && status.st_uid == geteuid() &&
           status.st_gid == getegid() && llistxattr(path, NULL, 0) <= 0 &&
           (S_ISDIR(mode) ? is_empty(path) : status.st_size == 0 && status.st_nlink == 1);
}

/* The exit record is written only when no process of the attempt is left. Without it a stray process may
 * still use the folder. */
static bool is_left_by_all(const char *path)
{
    autofree char *record = xprintf("%s/" SHIM_EXIT_FILE, path);
    return access(record, F_OK) == 0;
}

void folder_pool_return(struct folder_pool *folder_pool, const char *path)
{
    autofree char *next = path_of(folder_pool, folder_pool->next);
    bool usable = is_left_by_all(path);
    for (size_t i = 0; i < USABLE_COUNT && usable; i++) {
        autofree char *from = xprintf("%s/%s", path, parts[i].name);
        autofree char *to = xprintf("%s/%s", next, parts[i].name);
        if (!folder_pool->kept[i] && is_unused(from, parts[i].mode) &&
            (mkdir(next, 0700) == 0 || errno == EEXIST)) {
            folder_pool->kept[i] = rename(from, to) == 0;
        }
    }
    trash_take(folder_pool->trash, path);
}

static bool name_for(const char *path, int64_t rank, const char *from, const char *stream)
{
    autofree char *old = xprintf("%s/%s", path, from);
    autofree char *new = xprintf("%s/%lld.%s", path, (long long)rank, stream);
    return rename(old, new) == 0;
}

bool folder_pool_take(struct folder_pool *folder_pool, const char *path, int64_t first_rank, struct err *err)
{
    if (folder_pool->first == folder_pool->next && !make(folder_pool, err)) {
        return false;
    }
    autofree char *ready = path_of(folder_pool, folder_pool->first++);
    bool named = first_rank == 0 || (name_for(ready, first_rank, FIRST_OUT, "stdout") &&
                                     name_for(ready, first_rank, FIRST_ERR, "stderr"));
    return (named && rename(ready, path) == 0) || err_errno(err, "cannot make %s", path);
}

bool folder_pool_refill(struct folder_pool *folder_pool)
{
    if (folder_pool->next - folder_pool->first == LIMIT_IDLE_SHIMS) {
        return false;
    }
    return make(folder_pool, NULL) && folder_pool->next - folder_pool->first < LIMIT_IDLE_SHIMS;
}
