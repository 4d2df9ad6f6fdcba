/* SPDX-License-Identifier: Apache-2.0 */
/* Manages STATE/spare. An attempt's folder is complete or does not exist. Nothing of one attempt, neither
 * process nor data, gets into the folder of another, even after a loss of power: what was used of a folder is
 * replaced before the folder serves another attempt. The file of an exit record stays. The record names its
 * attempt, and one of a single sector is on the disk as a whole or not at all. Reuse pays: making a folder
 * takes longer than starting a process, above all where the number of a removed file stays taken for minutes
 * (ext4 without a journal), and each new file searches for a free number behind those of all earlier
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

#define FIRST_OUT  "0.stdout"
#define FIRST_ERR  "0.stderr"
#define FIRST_KEPT "0.files"

/* The parts of each folder. */
static const struct part {
    const char *name;
    mode_t mode;
} parts[] = {
    {SHIM_WORK_FOLDER, S_IFDIR | 0700},
    {SHIM_ERRORS_FOLDER, S_IFDIR | 0700},
    {SHIM_RESULTS_FOLDER, S_IFDIR | 0700},
    {FIRST_OUT, S_IFREG | 0600},
    {FIRST_ERR, S_IFREG | 0600},
    {FIRST_KEPT, S_IFDIR | 0700},
    {SHIM_CHECKPOINT_FOLDER, S_IFDIR | 0700},
    {SHIM_EXIT_NEW_FILE, S_IFREG | 0600},
};
#define PART_COUNT (sizeof parts / sizeof parts[0])
#define USED_MAX   64 /* entries that are removed one by one */

struct folder_pool {
    char *folder;
    struct trash *trash;
    uint64_t first, next; /* folders with numbers from first to below next are ready */
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
static bool complete(struct folder_pool *folder_pool, const char *path, struct err *err)
{
    autoclose int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool made = folder >= 0;
    for (size_t i = 0; i < PART_COUNT && made; i++) {
        made = make_part(folder, &parts[i]) || errno == EEXIST;
    }
    folder_pool->next += made;
    return made || err_errno(err, "cannot make %s", path);
}

static bool make(struct folder_pool *folder_pool, struct err *err)
{
    autofree char *path = path_of(folder_pool, folder_pool->next);
    bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
    return made ? complete(folder_pool, path, err) : err_errno(err, "cannot make %s", path);
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
static bool is_as_made(const char *path, mode_t mode, struct stat *ret_status)
{
    return lstat(path, ret_status) == 0 && ret_status->st_mode == mode && ret_status->st_uid == geteuid() &&
           ret_status->st_gid == getegid() && llistxattr(path, NULL, 0) <= 0 &&
           (S_ISDIR(mode) || ret_status->st_nlink == 1);
}

static bool is_unused(const char *path, const struct part *part)
{
    struct stat status;
    return is_as_made(path, part->mode, &status) &&
           (S_ISDIR(part->mode) ? is_empty(path) : status.st_size == 0);
}

static bool may_stay(const char *path, const char *name)
{
    for (size_t i = 0; i < PART_COUNT - 1; i++) { /* a job has made a second exit.new */
        if (strcmp(name, parts[i].name) == 0) {
            return is_unused(path, &parts[i]);
        }
    }
    return false;
}

/* The file of a short exit record becomes that of the next. */
static bool turn_record(const char *folder)
{
    struct stat status;
    autofree char *path = xprintf("%s/" SHIM_EXIT_FILE, folder);
    autofree char *anew = xprintf("%s/" SHIM_EXIT_NEW_FILE, folder);
    return is_as_made(path, S_IFREG | 0600, &status) && status.st_size <= SHIM_RECORD_SECTOR &&
           rename(path, anew) == 0;
}

static bool is_entry(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, SHIM_EXIT_FILE) != 0;
}

/* Removes what was used of a folder, but for its exit record. *ret_stayed counts the parts that are left.
 * False: something else is left, too. */
static bool clear(struct folder_pool *folder_pool, const char *folder, size_t *ret_stayed)
{
    DIR *listing = opendir(folder);
    const struct dirent *entry;
    bool cleared = listing != NULL;
    *ret_stayed = 0;
    for (int seen = 0; cleared && (entry = readdir(listing)) != NULL;) {
        autofree char *path = xprintf("%s/%s", folder, entry->d_name);
        if (is_entry(entry->d_name) && may_stay(path, entry->d_name)) {
            (*ret_stayed)++;
        } else if (is_entry(entry->d_name)) {
            cleared = ++seen <= USED_MAX && trash_take(folder_pool->trash, path);
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
    return cleared;
}

/* The exit record is written only when no process of the attempt is left. Without it a stray process may
 * still use the folder. */
static bool is_left_by_all(const char *path)
{
    autofree char *record = xprintf("%s/" SHIM_EXIT_FILE, path);
    return access(record, F_OK) == 0;
}

static bool has_room(const struct folder_pool *folder_pool)
{
    return folder_pool->next - folder_pool->first < LIMIT_KEPT_SHIMS;
}

/* Where the disk is full, the next folder that is made completes this one. */
static void renew(struct folder_pool *folder_pool, const char *folder)
{
    size_t stayed;
    autofree char *record = xprintf("%s/" SHIM_EXIT_FILE, folder);
    bool clean = clear(folder_pool, folder, &stayed);
    bool turned = clean && turn_record(folder);
    if (!clean || (!turned && !trash_take(folder_pool->trash, record))) {
        trash_take(folder_pool->trash, folder);
    } else if (turned && stayed + 1 == PART_COUNT) {
        folder_pool->next++;
    } else {
        complete(folder_pool, folder, NULL);
    }
}

void folder_pool_return(struct folder_pool *folder_pool, const char *path)
{
    struct stat status;
    autofree char *next = path_of(folder_pool, folder_pool->next);
    if (has_room(folder_pool) && is_left_by_all(path) && is_as_made(path, S_IFDIR | 0700, &status) &&
        rename(path, next) == 0) {
        renew(folder_pool, next);
    } else {
        trash_take(folder_pool->trash, path);
    }
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
                                     name_for(ready, first_rank, FIRST_ERR, "stderr") &&
                                     name_for(ready, first_rank, FIRST_KEPT, "files"));
    return (named && rename(ready, path) == 0) || err_errno(err, "cannot make %s", path);
}

bool folder_pool_refill(struct folder_pool *folder_pool)
{
    if (folder_pool->next - folder_pool->first >= LIMIT_IDLE_SHIMS) {
        return false;
    }
    return make(folder_pool, NULL) && folder_pool->next - folder_pool->first < LIMIT_IDLE_SHIMS;
}
